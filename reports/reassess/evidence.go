package reassess

import (
	"fmt"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// filled goes through the six kinds that the contract asks for before an
// allowance is changed. Each is filled, or says what it would take.
func (w *weighing) filled(s *subject, p record.ReportPlan) []record.ReportEvidence {
	kind := func(name record.EvidenceKind, missing string, found []string) record.ReportEvidence {
		if len(found) > 0 {
			missing = ""
		}
		return record.ReportEvidence{Kind: name, Found: append([]string{}, found...), Missing: missing}
	}
	return []record.ReportEvidence{
		kind(record.EvidenceUtilization, "it takes recorded traffic and today's allowance", utilization(p)),
		kind(record.EvidenceFrequency, "it takes recorded traffic or a load run", frequency(p.Scores)),
		kind(record.EvidenceSaturation, getCapacity, append(w.evidence.engine.saturation(), metered(w.opt.Metrics, record.MetricSaturation)...)),
		kind(record.EvidenceLatency, "it takes a capacity search, a load run, or a log with durations", append(latency(p.Scores), append(w.evidence.engine.latency(), metered(w.opt.Metrics, record.MetricEngineLatency)...)...)),
		kind(record.EvidenceExhaustion, "it takes a log or a load run that shows 402, or the operations that were used", append(s.outOfOperations(), exhaustion(p.Binding)...)),
		kind(record.EvidenceSupport, "--tickets FILE gives what customers wrote, and an empty one says that there is nothing", complained(w.tickets, s.plan)),
	}
}

// saturation is what a capacity search says.
func (e engine) saturation() []string {
	switch c := e.found; {
	case c == nil:
		return nil
	case c.Holds == nil:
		return []string{e.name + ": its SLO held under no load that was tried."}
	default:
		text := fmt.Sprintf("%s: its SLO holds up to %s a second", e.name, rate(*c.Holds))
		if c.Knee != nil {
			text += fmt.Sprintf("; goodput stops to follow at %s (95 %% %s–%s)", rate(c.Knee.At), rate(c.Knee.From), rate(c.Knee.To))
		}
		return []string{text + "."}
	}
}

// latency is that of the largest load under which the SLO held.
func (e engine) latency() []string {
	if e.found == nil || e.found.Holds == nil {
		return nil
	}
	us, ok := e.p99(*e.found.Holds)
	if !ok {
		return nil
	}
	return []string{fmt.Sprintf("%s: p99 %s at %s a second.", e.name, figure.Micros(us), rate(*e.found.Holds))}
}

func utilization(p record.ReportPlan) []string {
	if p.Allowance == nil || p.WhatIf == nil {
		return nil
	}
	for _, n := range p.WhatIf.BurstNeeded {
		if n.Rate == p.Allowance.RequestsPerMinute {
			return []string{fmt.Sprintf("At %s a minute half of the %ss need a burst of %s at most, 90 %% of %s, 99 %% of %s, and the one with most needs %s; %s are allowed.",
				figure.Grouped(n.Rate), who(p.WhatIf), tokens(n.P50), tokens(n.P90), tokens(n.P99), tokens(n.Max), figure.Grouped(p.Allowance.Burst))}
		}
	}
	return nil
}

func tokens(x float64) string { return fmt.Sprintf("%.4g", x) }

func frequency(scores []record.ReportScore) (found []string) {
	for _, s := range scores {
		text := fmt.Sprintf("%s, %s: %s of %s (%s) rejected; %s of %s affected", s.Source, s.Basis,
			figure.Grouped(s.Rejected), figure.Count(s.Attempts, "attempt"), figure.Short(s.RejectedShare),
			figure.Grouped(int64(s.UsersAffected.N)), figure.Count(int64(s.Users), noun(s.Pool)))
		if i := s.RejectedShare95; i != nil {
			text += fmt.Sprintf("; 95 %% interval of the share of attempts %s %%, design effect %.3g", figure.Interval(*i), *s.DesignEffect)
		}
		found = append(found, text+".")
	}
	return found
}

func (s *subject) saturation() (found []string) {
	for _, r := range s.runs {
		p := r.plan
		var failed int64
		for _, c := range p.OtherStatuses {
			if c.Name >= "500" {
				failed += c.N
			}
		}
		var broken int64
		for _, c := range p.TransportErrors {
			broken += c.N
		}
		found = append(found, fmt.Sprintf("%s: of %s due, %s found every worker waiting for the engine, %s ended in a server error, %s without an answer; one load is no capacity.",
			r.name, figure.Count(p.Offered, "request"), figure.Grouped(p.DroppedBusy), figure.Grouped(failed), figure.Grouped(broken)))
	}
	return found
}

func latency(scores []record.ReportScore) (found []string) {
	for _, s := range scores {
		if l := s.Latency; l != nil {
			since := map[string]string{"due": "from when a request was due", "received": "inside the server"}[l.From]
			found = append(found, fmt.Sprintf("%s: admitted requests took %s at the median and %s at the 99th percentile, %s.",
				s.Source, figure.Micros(l.P50US), figure.Micros(l.P99US), since))
		}
	}
	return found
}

// outOfOperations is what logs of the server's own and load runs saw of 402.
func (s *subject) outOfOperations() (found []string) {
	if s.src != nil && s.src.log.Quality.Format == record.FormatAPI {
		found = append(found, fmt.Sprintf("%s: %s of all plans found no paid operation left (402).", s.src.name,
			figure.Count(answers(s.src.log.Quality.Statuses, exhausted), "request")))
	}
	for _, r := range s.runs {
		found = append(found, fmt.Sprintf("%s: %s found no paid operation left (402).", r.name, figure.Count(answers(r.plan.OtherStatuses, exhausted), "request")))
	}
	return found
}
