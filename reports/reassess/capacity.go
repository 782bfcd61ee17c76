package reassess

import (
	"fmt"
	"slices"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// S6, capacity: what the engine can take by a capacity search, what the
// allowances could ask of it, and what the traffic would at its busiest.

// getCapacity is how the engine's capacity is measured.
const getCapacity = `"brimline load --find-capacity" against the deployment measures it, and its folder is an input of the report`

// engine is what is known of the engine's capacity.
type engine struct {
	name      string
	found     *record.Capacity // nil: no search was given
	saturated *float64         // share of its places in use at the busiest, by its meters; nil: not known
}

// room reports whether the engine has room for a peak, where today's is so much,
// and why not; known: a search says so, or else the meters of today, in proportion.
func (e engine) room(peak, today float64, rules record.ReportRules) (ok, known bool, why string) {
	if e.found == nil && e.saturated != nil && today > 0 {
		share := *e.saturated * peak / today
		return share <= rules.PeakShare, true, fmt.Sprintf("the busiest 10 s would take %s of its places, where %s are allowed",
			figure.Short(share), figure.Short(rules.PeakShare))
	}
	if e.found == nil {
		return false, false, "no capacity search was given"
	}
	if e.found.Holds == nil {
		return false, true, "its SLO held under no load that was tried"
	}
	most := rules.PeakShare * *e.found.Holds
	if peak > most {
		return false, true, fmt.Sprintf("the busiest 10 s would ask for %s a second, where %s are %s of its capacity",
			rate(peak), rate(most), figure.Short(rules.PeakShare))
	}
	if us, ok := e.p99(peak); ok && us > rules.P99US {
		return false, true, fmt.Sprintf("its p99 at that peak is %s, where %s are allowed", figure.Micros(us), figure.Micros(rules.P99US))
	}
	return true, true, ""
}

// p99 is the engine's latency at a peak: that of the smallest load of the search
// that is no smaller.
func (e engine) p99(peak float64) (us int64, ok bool) {
	best := -1
	for i, s := range e.found.Steps {
		if s.Verdict != record.CapacityGenerator && s.P99US > 0 && s.Load >= peak && (best < 0 || s.Load < e.found.Steps[best].Load) {
			best = i
		}
	}
	if best < 0 {
		return 0, false
	}
	return e.found.Steps[best].P99US, true
}

// section is S6 but for what comes from elsewhere: latency by plan, runs, and the
// meters of the running engine.
func (e engine) section(today, candidate *record.ReportPeaks, worst *float64, rules record.ReportRules) record.ReportCapacity {
	s := record.ReportCapacity{
		SLO: []string{}, Steps: []record.ReportCapacityStep{}, Today: today, Candidate: candidate, Worst: worst, MostShare: rules.PeakShare,
		Observed: []record.ReportObserved{}, Runs: []string{}, Latency: []record.ReportPlanLatency{}, Missing: []string{},
	}
	if today == nil {
		s.Missing = append(s.Missing, "the busiest seconds of the traffic: it takes recorded traffic and every plan's allowance")
	}
	if worst == nil {
		s.Missing = append(s.Missing, "what everybody at full rate would ask for: it takes every plan's allowance and its users")
	}
	if e.found == nil {
		s.Missing = append(s.Missing, "the engine's capacity: "+getCapacity)
		if e.saturated != nil && today != nil && candidate != nil && today.Ten > 0 {
			share := *e.saturated * candidate.Ten / today.Ten
			s.Share = &share
		}
		return s
	}
	s.Source, s.SLO = e.name, append(s.SLO, e.found.SLO...)
	s.Holds, s.Saturation, s.Warning = e.found.Holds, e.found.Knee, e.found.Warning
	for _, x := range e.found.Steps {
		s.Steps = append(s.Steps, record.ReportCapacityStep{Offered: x.Load, Goodput: x.Goodput, P50US: x.P50US, P99US: x.P99US, Verdict: x.Verdict})
	}
	if s.Holds == nil {
		s.Missing = append(s.Missing, "a load under which the SLO holds: "+s.Source+" found none")
		return s
	}
	if worst != nil {
		s.Oversubscription = ratio(*worst, *s.Holds)
	}
	if candidate != nil {
		s.Share = ratio(candidate.Ten, *s.Holds)
		if us, ok := e.p99(candidate.Ten); ok {
			s.P99US = &us
		}
	}
	if s.Saturation == nil {
		s.Missing = append(s.Missing, "where goodput stops to follow the load: the search did not get that far")
	}
	return s
}

// conditions are the gates of all plans together.
func (e engine) conditions(s record.ReportCapacity, rules record.ReportRules) conditions {
	l := conditions{}
	need := fmt.Sprintf("the busiest 10 s take %s of its capacity at most", figure.Short(rules.PeakShare))
	if s.Share == nil {
		l.add("engine at the peak", need, "not known", record.GateMissing)
	} else {
		l.add("engine at the peak", need, figure.Short(*s.Share), holds(*s.Share <= rules.PeakShare))
	}
	need = figure.Micros(rules.P99US) + " at most"
	if s.P99US == nil {
		l.add("latency at the peak, p99", need, "not known", record.GateMissing)
	} else {
		l.add("latency at the peak, p99", need, figure.Micros(*s.P99US), holds(*s.P99US <= rules.P99US))
	}
	return l
}

// worst is what all users of all plans ask for at full rate, a second; nil where
// a plan's allowance is unknown.
func worst(plans []record.ReportPlan) *float64 {
	sum, known := 0.0, false
	for _, p := range plans {
		if p.WhatIf == nil {
			continue
		}
		if p.Allowance == nil {
			return nil
		}
		known = true
		sum += float64(p.WhatIf.Users) * float64(p.Allowance.RequestsPerMinute) / 60
	}
	if !known {
		return nil
	}
	return &sum
}

// atPeak splits what a run measured of a plan by how busy its seconds were: the
// tenth with most requests, and the half with fewest. The figures are means of
// the seconds' own quantiles, which no merging can sharpen.
func atPeak(r *record.Run, p *record.RunPlan) (peak, off *record.ReportLatency) {
	all := make([]int64, len(p.PerSecond.Sent))
	for i := range r.Plans {
		for j, n := range r.Plans[i].PerSecond.Sent {
			if j < len(all) {
				all[j] += n
			}
		}
	}
	var seconds []int
	for i := range all {
		if i < len(p.PerSecond.P99US) && i < len(p.PerSecond.P50US) && p.PerSecond.P99US[i] > 0 {
			seconds = append(seconds, i)
		}
	}
	if len(seconds) < 20 {
		return nil, nil
	}
	slices.SortStableFunc(seconds, func(a, b int) int { return int(min(1, max(-1, all[b]-all[a]))) })
	mean := func(list []int) *record.ReportLatency {
		var l record.ReportLatency
		for _, i := range list {
			l.P50US += p.PerSecond.P50US[i]
			l.P99US += p.PerSecond.P99US[i]
		}
		n := int64(len(list))
		return &record.ReportLatency{P50US: l.P50US / n, P99US: l.P99US / n, From: "due"}
	}
	return mean(seconds[:len(seconds)/10]), mean(seconds[len(seconds)/2:])
}

func ratio(a, b float64) *float64 {
	if b == 0 {
		return nil
	}
	x := a / b
	return &x
}

func rate(x float64) string { return fmt.Sprintf("%.3g", x) }
