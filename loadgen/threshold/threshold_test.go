package threshold_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/loadgen/threshold"
)

func TestParse(t *testing.T) {
	for text, plan := range map[string]string{
		"free.rejected.rate < 5%":                     "free",
		"pro.admitted.latency.p99 < 250ms":            "pro",
		"pro.admitted.latency.service.p99.9<=1.5s":    "pro",
		"admitted.latency.first-byte.mean < 800us":    "",
		"undue-429 == 0":                              "",
		"missing-429.count == 0":                      "",
		"dropped.rate < 1%":                           "",
		"admitted.per-second >= 300/min":              "",
		"rejected.rejected == 3":                      "rejected",
		"tier.one.errors.rate <= 0.125%":              "tier.one",
		"p99.admitted.latency.p99 < 1s":               "p99",
		"users-affected.rate > 0%":                    "",
		"free.rejected-concurrency.latency.max > 1µs": "free",
	} {
		got, err := threshold.Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, plan, got.Plan(), text)
		require.Equal(t, text, got.String())
		again, err := threshold.Parse(got.String())
		require.NoError(t, err)
		require.True(t, got == again, "equal texts are equal thresholds")
	}
}

func TestWhatIsNoThreshold(t *testing.T) {
	for text, want := range map[string]string{
		"":                              `"" is no threshold; accepted: a figure, one of <, <=, ==, >=, > and a value, such as free.rejected.rate < 5%`,
		"free.rejected.rate":            "is no threshold",
		"free.rejected.rate != 5%":      "is no threshold",
		"free.rejected.rate = 5%":       "is no threshold",
		"free.rejected.rate < 5 %":      "is no threshold",
		"a b.rejected.rate < 5%":        "is no threshold",
		"1% < rejected.rate < 5%":       "is no threshold",
		"free.refused.rate < 5%":        `"free.refused.rate" names nothing that is counted; accepted, after a plan's name and a point or alone: admitted, rejected, rejected-rate`,
		"latency.p99 < 5ms":             "names nothing that is counted",
		".rejected < 5":                 "begins with a point",
		"rejected.share < 5%":           `"share" is not told of rejected; accepted: count, rate, per-second, latency.p99`,
		"dropped.latency.p99 < 5ms":     `"latency.p99" is not told of dropped; accepted: count, rate, per-second`,
		"undue-429.per-second < 1/s":    `"per-second" is not told of undue-429; accepted: count, rate`,
		"admitted.latency.p98 < 5ms":    `"p98" is no figure of latencies; accepted: p50, p90, p95, p99, p99.9, mean, min, max, after service. or first-byte.`,
		"admitted.latency.due.p99 < 1s": `"due.p99" is no figure of latencies`,
		"rejected.rate < 5":             `"5" does not fit; accepted: a share such as 5%`,
		"rejected.rate < 101%":          "101% is more than all",
		"rejected < 5%":                 `"5%" does not fit; accepted: a whole number`,
		"rejected < 5.0":                "accepted: a whole number",
		"rejected < -1":                 `"-1" is no value; accepted: a whole number`,
		"rejected < 99999999999":        "is no value",
		"admitted.latency.p99 < 250":    `"250" does not fit; accepted: a time such as 250ms`,
		"admitted.latency.p99 < 5m":     "accepted: a time such as 250ms",
		"admitted.per-second > 5":       "accepted: a rate such as 12.5/s",
		"rejected < 0":                  "it can never hold",
		"rejected.rate > 100%":          "it can never hold",
		"rejected >= 0":                 "it always holds",
		"rejected.rate <= 100.00%":      "it always holds",
		strings.Repeat("x", 201):        "a threshold of 201 bytes; accepted: at most 200",
	} {
		_, err := threshold.Parse(text)
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "\n")
	}
}

// FuzzParse looks for texts that crash, or that are read and not said back.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"free.rejected.rate < 5%", "pro.admitted.latency.service.p99.9 <= 1.5s", "undue-429==0", "admitted.per-second>=12.5/min", "x.y.errors > 0", "a<b", "",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := threshold.Parse(text)
		if err != nil {
			return
		}
		require.Equal(t, text, got.String())
		require.True(t, got.Plan() == "" || strings.HasPrefix(text, got.Plan()+"."))
		_, err = threshold.Evaluate([]threshold.Threshold{got}, run())
		require.NoError(t, err)
		_, _, err = threshold.NewWatch([]threshold.Threshold{got}).Look(run())
		require.NoError(t, err)
	})
}
