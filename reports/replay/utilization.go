package replay

import (
	"slices"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reports/record"
)

// utilization measures how much of today's allowance (R, B, C) users take:
//
//	U_burst = peak of the meter drained at R / B
//	U_rate  = most attempts in any 60 s, told to the millisecond / R
//	U_sust  = most attempts in any hour, told to the second / 60R
//	U_conc  = most in flight at once without a cap, of attempts that got a token / C
//
// U_burst is above 1 if and only if an attempt is rejected for the rate, U_conc
// if and only if one is for concurrency; the former for users whose bucket was
// full when they came to the plan.
type utilization struct {
	durations bool
	rows      ledger[use]
}

// use is one user's part.
type use struct {
	at           int64
	meter        meter
	minute, hour window
	flying       inFlight
	overlap      int64
}

const (
	milli       = 1_000
	minuteMilli = 60_000
	hourSeconds = 3_600
)

func (u *utilization) take(v *visit) {
	if v.override || v.limit.IsZero() {
		return
	}
	r, _ := u.rows.at(v)
	if v.moved || v.fresh {
		r.meter.level, r.flying = 0, v.flying.copy()
	}
	r.meter.add(v.limit.RequestsPerMinute(), since(r.at, v.At))
	r.at = v.At
	r.minute.add(floorDiv(v.At, milli), minuteMilli)
	r.hour.add(floorDiv(v.At, second), hourSeconds)
	if u.durations && v.decision.Outcome != admission.RateRejected {
		r.flying.at(v.At)
		r.overlap = max(r.overlap, int64(len(r.flying.ends))+1)
		r.flying.add(v.At, v.Hold)
	}
}

// utilizations sums up the users of one plan.
func utilizations(rows []*use, l limit, durations bool) record.ReportUtilization {
	r := record.ReportUtilization{Users: len(rows), Missing: []string{}}
	switch {
	case l.IsZero():
		r.Missing = append(r.Missing, "today's allowance is not known")
		return r
	case len(rows) == 0:
		r.Missing = append(r.Missing, "nobody on the plan made an attempt")
		return r
	}
	rate := float64(l.RequestsPerMinute())
	r.Burst = ecdf(rows, func(u *use) float64 { return float64(u.meter.peak) / float64(l.Burst()*bucket.Token) })
	r.Rate = ecdf(rows, func(u *use) float64 { return float64(u.minute.most) / rate })
	r.Sustained = ecdf(rows, func(u *use) float64 { return float64(u.hour.most) / (60 * rate) })
	switch {
	case !durations:
		r.Missing = append(r.Missing, "concurrency: the log has no durations that could carry it")
	case !l.capped:
		r.Missing = append(r.Missing, "concurrency: today's cap is not known")
	default:
		r.Concurrency = ecdf(rows, func(u *use) float64 { return float64(u.overlap) / float64(l.Concurrency()) })
	}
	return r
}

// Shares of an allowance from which on a user is near it, and up to which it is
// generous.
const (
	near     = 0.8
	generous = 0.25
)

// ecdf is how a figure is spread over users.
func ecdf(rows []*use, figure func(*use) float64) *record.ReportECDF {
	values := make([]float64, len(rows))
	for i, r := range rows {
		values[i] = figure(r)
	}
	slices.Sort(values)
	n := float64(len(values))
	e := &record.ReportECDF{
		P50: nearest(values, 500), P90: nearest(values, 900), P95: nearest(values, 950), P99: nearest(values, 990), Max: nearest(values, 1000),
	}
	var points []record.ReportPoint
	for i, x := range values {
		if x >= near {
			e.Near++
		}
		if x <= generous {
			e.Generous++
		}
		if i+1 == len(values) || values[i+1] != x {
			points = append(points, record.ReportPoint{X: x, Y: float64(i+1) / n})
		}
	}
	e.Near, e.Generous = e.Near/n, e.Generous/n
	e.Points = thinned(points)
	return e
}

// maxPoints is as many as a chart can show.
const maxPoints = 200

// thinned leaves out points whose neighbours are as good as the same: those that
// are left are evenly many steps apart, the first and the last among them.
func thinned(points []record.ReportPoint) []record.ReportPoint {
	if len(points) <= maxPoints {
		return points
	}
	few := make([]record.ReportPoint, maxPoints)
	for i := range few {
		few[i] = points[i*(len(points)-1)/(maxPoints-1)]
	}
	return few
}
