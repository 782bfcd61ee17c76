package replay

import (
	"slices"

	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reports/record"
)

// burstNeeded is the peak, in units, of a leaky meter: every attempt adds a
// token, time drains it at the rate. It is the bucket seen from below: until the
// first rejection the meter's level and what the bucket holds add up to the
// burst, so no attempt is rejected for its rate if and only if the burst is at
// least the peak.
func burstNeeded(times []int64, rate int64) (peak int64) {
	var level, at int64
	for i, t := range times {
		if i == 0 {
			at = t
		}
		if t > at {
			elapsed := uint64(t) - uint64(at)
			if elapsed > uint64(level/rate) {
				level = 0
			} else {
				level -= int64(elapsed) * rate
			}
			at = t
		}
		level += bucket.Token
		peak = max(peak, level)
	}
	return peak
}

// needs summarises the peaks of all users at one rate by nearest rank: the
// p-quantile of n values is the ceil(p*n)-th smallest. It sorts them.
func needs(rate int64, peaks []int64) record.Needs {
	slices.Sort(peaks)
	at := func(percent int) float64 {
		rank := (len(peaks)*percent + 99) / 100
		return float64(peaks[rank-1]) / float64(bucket.Token)
	}
	return record.Needs{Rate: rate, P50: at(50), P90: at(90), P95: at(95), P99: at(99), Max: at(100)}
}
