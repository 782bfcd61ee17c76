package main

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/fault"
)

// TestServeFault is wrong, and says so first.
func TestServeFault(t *testing.T) {
	s := runServe(t, "--users", "1", "--fault", "health-rl-headers")
	first, rest, _ := strings.Cut(s.stdout.String(), "\n")
	require.Equal(t, "WRONG ON PURPOSE: health-rl-headers breaks SCOPE-2, /health carries RateLimit headers", first)
	url := regexp.MustCompile(`^listening on (\S+) `).FindStringSubmatch(rest)
	require.NotNil(t, url, rest)
	resp, err := http.Get(url[1] + "/health")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "9", resp.Header.Get("RateLimit-Remaining"))
	require.Equal(t, exitHolds, s.ended())
}

func TestServeFaultRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a mistyped fault": {[]string{"--fault", "cost-to"}, `unknown fault "cost-to": did you mean cost-two?; --list-faults shows them all`},
		"no fault at all":  {[]string{"--fault", ""}, `unknown fault ""; --list-faults shows them all`},
		"nothing alike":    {[]string{"--fault", "nope"}, `unknown fault "nope"; --list-faults shows them all`},
		"other machines":   {[]string{"--fault", "cost-two", "--allow-remote"}, "stays on loopback"},
		"another address":  {[]string{"--fault", "cost-two", "--listen", "0.0.0.0:0"}, "not a loopback address"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			args := append([]string{"serve", "--listen", "127.0.0.1:0"}, c.args...)
			code := run(t.Context(), args, world{getenv: noEnvironment, stdin: strings.NewReader(""), stdout: &out, stderr: &errs})
			require.Equal(t, exitUsage, code)
			require.Contains(t, errs.String(), c.want)
			require.Equal(t, 1, strings.Count(errs.String(), "\n"), errs.String())
			require.Empty(t, out.String())
		})
	}
}

func TestServeListsFaults(t *testing.T) {
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"serve", "--list-faults"}, world{getenv: noEnvironment, stdin: strings.NewReader(""), stdout: &out, stderr: &errs})
	require.Equal(t, exitHolds, code)
	require.Empty(t, errs.String())
	for _, f := range fault.All() {
		require.Regexp(t, "(?m)^  "+f.Name+" +"+f.Clause+" +"+regexp.QuoteMeta(f.Wrong)+"$", out.String())
	}
}
