package replay

import (
	"slices"

	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reports/record"
)

// meter is a leaky meter, in units: every attempt adds a token, time drains it at
// the rate, level = max(0, level - rate*elapsed) + token. It is the bucket seen
// from below: until the first rejection the meter's level and what the bucket
// holds add up to the burst, so no attempt is rejected for its rate if and only
// if the burst is at least the meter's peak.
type meter struct{ level, peak int64 }

// drained is as many microseconds of draining as surely overflow nothing at any
// rate in range.
const drained = 1 << 40

// add is an attempt, the given microseconds after the one before.
func (m *meter) add(rate, elapsed int64) {
	switch {
	case elapsed <= 0:
	case elapsed < drained:
		m.level = max(0, m.level-elapsed*rate)
	case elapsed > m.level/rate:
		m.level = 0
	default:
		m.level -= elapsed * rate
	}
	m.level += bucket.Token
	m.peak = max(m.peak, m.level)
}

// needs summarises the peaks of all users at one rate, which it sorts.
func needs(rate int64, peaks []int64) record.Needs {
	slices.Sort(peaks)
	at := func(percent int) float64 { return float64(nearest(peaks, percent*10)) / float64(bucket.Token) }
	return record.Needs{Rate: rate, P50: at(50), P90: at(90), P95: at(95), P99: at(99), Max: at(100)}
}

// nearest is a quantile of sorted values by nearest rank: the p-quantile of n
// values is the ceil(p*n)-th smallest.
func nearest[T int64 | float64](sorted []T, permille int) T {
	return sorted[(len(sorted)*permille+999)/1000-1]
}
