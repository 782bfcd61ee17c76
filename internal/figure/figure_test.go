package figure_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/internal/figure"
)

func TestFigures(t *testing.T) {
	for got, want := range map[string]string{
		figure.Grouped(0):              "0",
		figure.Grouped(999):            "999",
		figure.Grouped(1000):           "1,000",
		figure.Grouped(-1234567):       "-1,234,567",
		figure.Grouped(math.MinInt64):  "-9,223,372,036,854,775,808",
		figure.Count(1, "user"):        "1 user",
		figure.Count(0, "client"):      "0 clients",
		figure.Count(12345, "request"): "12,345 requests",

		figure.Percent(0.0185387):                 "1.85 %",
		figure.Percent(1):                         "100.00 %",
		figure.Interval([2]float64{0.0116, 0.03}): "1.16–3.00",

		figure.Short(0):        "0 %",
		figure.Short(1):        "100 %",
		figure.Short(0.00001):  "under 0.01 %",
		figure.Short(0.999999): "over 99.99 %",
		figure.Short(0.0185):   "1.85 %",
		figure.Short(0.04):     "4 %",
		figure.Short(0.6199):   "62 %",
		figure.Short(0.314):    "31.4 %",
		figure.Short(0.99672):  "99.67 %",

		figure.Micros(0):           "0 µs",
		figure.Micros(999):         "999 µs",
		figure.Micros(2_104):       "2.10 ms",
		figure.Micros(11_449):      "11.4 ms",
		figure.Micros(250_000):     "250 ms",
		figure.Micros(999_499):     "999 ms",
		figure.Micros(999_500):     "1.00 s",
		figure.Micros(90_000_000):  "1.5 min",
		figure.Seconds(0):          "0 s",
		figure.Seconds(25.04):      "25 s",
		figure.Seconds(90):         "1.5 min",
		figure.Seconds(3600):       "1.0 h",
		figure.Seconds(2 * 86400):  "2.0 days",
		figure.Bytes(999):          "999 B",
		figure.Bytes(218_526):      "219 kB",
		figure.Bytes(2_043_560):    "2.04 MB",
		figure.Bytes(12_000_000_0): "120 MB",
	} {
		require.Equal(t, want, got)
	}
}
