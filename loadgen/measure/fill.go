package measure

import (
	"slices"
	"strconv"
	"time"

	"github.com/invoicespec/brimline/reports/record"
)

// Fill writes what was measured into a record: plans, users, and what the meter
// knows of the generator. End is when the run was over.
func (m *Meter) Fill(r *record.Run, end time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Plans, r.Users = []record.RunPlan{}, []record.RunUser{}
	r.Generator.Results, r.Generator.Attempts = m.totals.results, m.totals.attempts
	var err error
	if r.Generator.Lag, err = m.lag.whole(); err != nil {
		return err
	}
	for _, p := range m.plans {
		if err := p.finish(); err != nil {
			return err
		}
	}
	for i := range m.users {
		m.users[i].finish(m.judges[i].Verdicts(), m.plans[m.planOf[i]], end)
		r.Users = append(r.Users, m.users[i].RunUser)
	}
	for _, p := range m.plans {
		r.Plans = append(r.Plans, p.RunPlan)
	}
	return nil
}

// finish turns the plan's working figures into those of its record.
func (p *plan) finish() error {
	p.OtherStatuses, p.TransportErrors, p.Latency = []record.Count{}, []record.Count{}, []record.RunLatency{} // lists, even if empty
	for _, status := range sorted(p.statuses) {
		p.OtherStatuses = append(p.OtherStatuses, record.Count{Name: strconv.Itoa(status), N: p.statuses[status]})
	}
	for _, kind := range sorted(p.errors) {
		p.TransportErrors = append(p.TransportErrors, record.Count{Name: kind, N: p.errors[kind]})
	}
	for _, outcome := range record.Outcomes() {
		t := p.times[outcome]
		if t == nil {
			continue
		}
		l := record.RunLatency{Outcome: outcome}
		var err error
		if l.FromDue, err = t.fromDue.whole(); err != nil {
			return err
		}
		if l.FromSend, err = t.fromSend.whole(); err != nil {
			return err
		}
		p.Latency = append(p.Latency, l)
	}
	column := func(of func(second) int64) []int64 {
		list := make([]int64, len(p.seconds))
		for i, s := range p.seconds {
			list[i] = of(s)
		}
		return list
	}
	p.PerSecond = record.RunSeconds{
		Due:                 column(func(s second) int64 { return s.due }),
		Sent:                column(func(s second) int64 { return s.sent }),
		Admitted:            column(func(s second) int64 { return s.admitted }),
		RejectedRate:        column(func(s second) int64 { return s.rejectedRate }),
		RejectedConcurrency: column(func(s second) int64 { return s.rejectedConcurrency }),
		Dropped:             column(func(s second) int64 { return s.dropped }),
	}
	return nil
}

func sorted[K int | string](counts map[K]int64) []K {
	keys := make([]K, 0, len(counts))
	for k := range counts {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// finish adds what the judge found to the user and to the plan.
func (u *user) finish(v Verdicts, p *plan, end time.Duration) {
	u.admit(end)
	u.LongestWaitMS = u.longest.Milliseconds()
	u.Undue, u.Missing = v.Rate.Undue+v.Concurrency.Undue, v.Missing
	p.RateJudged = p.RateJudged.Plus(v.Rate)
	p.ConcurrencyJudged = p.ConcurrencyJudged.Plus(v.Concurrency)
	p.Missing += v.Missing
}

// Snapshot is the plans as they stand now, without histograms and seconds. It
// asks every judge, so call it a few times a second at most.
func (m *Meter) Snapshot() []record.RunPlan {
	verdicts := make([]Verdicts, len(m.plans))
	for i, j := range m.judges {
		v, sum := j.Verdicts(), &verdicts[m.planOf[i]]
		sum.Rate, sum.Concurrency = sum.Rate.Plus(v.Rate), sum.Concurrency.Plus(v.Concurrency)
		sum.Missing += v.Missing
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	plans := make([]record.RunPlan, len(m.plans))
	for i, p := range m.plans {
		plans[i] = p.RunPlan
		plans[i].RateJudged, plans[i].ConcurrencyJudged = verdicts[i].Rate, verdicts[i].Concurrency
		plans[i].Missing = verdicts[i].Missing
		for _, outcome := range record.Outcomes() {
			if t := p.times[outcome]; t != nil {
				plans[i].Latency = append(plans[i].Latency, record.RunLatency{
					Outcome: outcome, FromDue: t.fromDue.quantiles(), FromSend: t.fromSend.quantiles(),
				})
			}
		}
	}
	return plans
}
