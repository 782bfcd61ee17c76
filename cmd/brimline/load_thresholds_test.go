package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reports/record"
)

// tooSlow reports whether a run says that this machine could not carry it out.
func tooSlow(errs string) bool { return strings.Contains(errs, "this machine was too slow") }

func TestLoadThresholds(t *testing.T) {
	for name, c := range map[string]struct {
		thresholds []string
		code       int
		out, errs  string
	}{
		"all hold": {[]string{"admitted > 0", "undue-429 == 0"}, exitHolds, `(?m)^thresholds\n  ✓ admitted > 0    \d+ of \d+\n  ✓ undue-429 == 0  0 of \d+$`, `^$`},
		"one is broken": {
			[]string{"admitted > 0", "free.rejected.rate < 0.5%"}, exitFails,
			`(?m)^  ✗ free.rejected.rate < 0.5%  [\d.]+ % \(\d+ of \d+\)$`,
			`^brimline: 1 of 2 thresholds broken: free.rejected.rate < 0.5%: [\d.]+ % `,
		},
		"one has no data": {
			[]string{"anonymous.latency.p99 < 5s", "admitted > 0"}, exitCannotTell,
			`(?m)^  – anonymous.latency.p99 < 5s  no data: nothing was timed$`,
			`^brimline: 1 of 2 thresholds without data: anonymous.latency.p99 < 5s: nothing was timed`,
		},
		"one is broken and one has no data": {[]string{"anonymous.latency.p99 < 5s", "free.rejected == 0"}, exitFails, `✗ free`, `thresholds broken: free.rejected == 0: `},
	} {
		t.Run(name, func(t *testing.T) {
			site := openLoadSite(t, server.Config{Users: 5}, nil)
			scenario := "duration: 1s\npopulations:\n  - { plan: free, users: 5, arrival: constant, rate: 1800, on-429: ignore }\nthresholds:\n  - " +
				strings.Join(c.thresholds, "\n  - ") + "\n"
			code, out, errs := site.load(t.Context(), t, scenario)
			r := site.record(t)
			require.Len(t, r.Thresholds, len(c.thresholds))
			require.Empty(t, r.Ended)
			if tooSlow(errs) {
				require.Equal(t, exitCannotTell, code, "whatever the thresholds say")
				return
			}
			require.Equal(t, c.code, code, errs)
			require.Regexp(t, c.out, out)
			_, after, _ := strings.Cut(errs, "brimline: ")
			require.Regexp(t, regexp.MustCompile(c.errs), strings.TrimSuffix("brimline: "+after, "brimline: "))
		})
	}
}

func TestLoadEndsAtABreach(t *testing.T) {
	site := openLoadSite(t, server.Config{Users: 5}, nil)
	code, out, errs := site.load(t.Context(), t, `duration: 1h
populations:
  - { plan: free, users: 5, arrival: constant, rate: 1800, on-429: ignore }
thresholds:
  - admitted > 0
  - free.rejected == 0
`, "--abort-on-breach")
	require.Equal(t, !tooSlow(errs), code == exitFails, errs)
	require.Regexp(t, `(?m)^ended after [\d.]+ s of 60 min 0 s`, out)
	require.Regexp(t, `(?m)^!! the run was ended: the threshold free.rejected == 0 was broken: \d+ of \d+$`, out)
	r := site.record(t) // whole, or it could not be read
	require.True(t, r.Interrupted)
	require.Contains(t, r.Ended, "the threshold free.rejected == 0 was broken")
	require.Equal(t, record.ThresholdHolds, r.Thresholds[0].Verdict)
	require.Equal(t, record.ThresholdBroken, r.Thresholds[1].Verdict)
	require.Positive(t, r.Plans[0].Unsent)
}

func TestAbortNeedsThresholds(t *testing.T) {
	site := openLoadSite(t, server.Config{Users: 5}, nil)
	code, _, errs := site.load(t.Context(), t, shortLoad, "--abort-on-breach")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "load.yaml has no thresholds that could be broken")
	require.NoFileExists(t, site.dir+"/run/run.json")
}
