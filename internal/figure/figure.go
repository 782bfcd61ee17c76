// Package figure writes numbers for people: thousands grouped, shares in
// percent, times in a unit that suits them.
package figure

import (
	"fmt"
	"strconv"
	"strings"
)

// Grouped is n with commas between thousands.
func Grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// Count is n of a thing: "1 user", "2,000 users".
func Count(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Grouped(n) + " " + noun + "s"
}

// Percent is a share with two decimals, as columns want it.
func Percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }

// Short is a share as a sentence wants it: with the decimals that tell
// something. It is never 0 % or 100 % unless the share is exactly that.
func Short(share float64) string {
	switch p := 100 * share; {
	case p == 0 || p == 100:
		return fmt.Sprintf("%.0f %%", p)
	case p < 0.005:
		return "under 0.01 %"
	case p > 99.995:
		return "over 99.99 %"
	case p >= 10 && p <= 90:
		return trimmed(p, 1) + " %"
	default:
		return trimmed(p, 2) + " %"
	}
}

// Interval is an interval of a share, without the sign.
func Interval(i [2]float64) string { return fmt.Sprintf("%.2f–%.2f", 100*i[0], 100*i[1]) }

func trimmed(x float64, decimals int) string {
	text := strconv.FormatFloat(x, 'f', decimals, 64)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}

// Micros is a time in the unit that suits it, to three digits.
func Micros(us int64) string {
	switch {
	case us >= 60_000_000:
		return fmt.Sprintf("%.1f min", float64(us)/60e6)
	case us >= 999_500:
		return digits3(float64(us)/1e6) + " s"
	case us >= 1000:
		return digits3(float64(us)/1e3) + " ms"
	}
	return strconv.FormatInt(us, 10) + " µs"
}

// Seconds is a span in the unit that suits it.
func Seconds(s float64) string {
	switch {
	case s >= 36*3600:
		return fmt.Sprintf("%.1f days", s/86400)
	case s >= 3600:
		return fmt.Sprintf("%.1f h", s/3600)
	case s >= 60:
		return fmt.Sprintf("%.1f min", s/60)
	}
	return fmt.Sprintf("%.3g s", s)
}

func digits3(x float64) string {
	switch {
	case x >= 99.95:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case x >= 9.995:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// Bytes is a size in a decimal unit.
func Bytes(n int64) string {
	switch {
	case n >= 999_500_000:
		return digits3(float64(n)/1e9) + " GB"
	case n >= 999_500:
		return digits3(float64(n)/1e6) + " MB"
	case n >= 1000:
		return digits3(float64(n)/1e3) + " kB"
	}
	return Grouped(n) + " B"
}
