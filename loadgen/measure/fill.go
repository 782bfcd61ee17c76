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
	if m.late.histogram != nil {
		if r.Generator.Late, err = m.late.whole(); err != nil {
			return err
		}
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
	p.HeaderFaults = p.faults.named()
	p.OtherStatuses, p.TransportErrors, p.Latency = p.others(), p.unanswered(), []record.RunLatency{} // a list, even if empty
	for _, code := range sorted(p.codes) {
		p.ErrorCodes = append(p.ErrorCodes, record.Count{Name: code, N: p.codes[code]})
	}
	for _, outcome := range record.Outcomes() {
		t := p.times[outcome]
		if t == nil {
			continue
		}
		l, err := t.whole(outcome)
		if err != nil {
			return err
		}
		p.Latency = append(p.Latency, l)
	}
	p.PerSecond = p.seconds.finish()
	return nil
}

// others and unanswered are lists, even if empty.
func (p *plan) others() []record.Count {
	list := []record.Count{}
	for _, status := range sorted(p.statuses) {
		list = append(list, record.Count{Name: strconv.Itoa(status), N: p.statuses[status]})
	}
	return list
}

func (p *plan) unanswered() []record.Count {
	list := []record.Count{}
	for _, kind := range sorted(p.errors) {
		list = append(list, record.Count{Name: kind, N: p.errors[kind]})
	}
	return list
}

// whole is everything of an outcome's times, for the record.
func (t *times) whole(outcome record.Outcome) (record.RunLatency, error) {
	l := record.RunLatency{Outcome: outcome}
	var err error
	if l.FromDue, err = t.fromDue.whole(); err != nil {
		return l, err
	}
	if l.FromSend, err = t.fromSend.whole(); err != nil {
		return l, err
	}
	if t.firstByte.histogram != nil {
		l.FirstByte, err = t.firstByte.whole()
	}
	return l, err
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
func (m *Meter) Snapshot() []record.RunPlan { return m.Live() }

// Live is [Meter.Snapshot], where the times of some outcomes can be merged.
func (m *Meter) Live(merged ...record.Outcome) []record.RunPlan {
	return m.stand(func(outcome record.Outcome, t *times) record.RunLatency {
		of := (*latency).quantiles
		if slices.Contains(merged, outcome) {
			of = (*latency).live
		}
		return record.RunLatency{Outcome: outcome, FromDue: of(&t.fromDue), FromSend: of(&t.fromSend), FirstByte: of(&t.firstByte)}
	})
}

// stand is the plans as they stand now; of is asked under the lock.
func (m *Meter) stand(of func(outcome record.Outcome, t *times) record.RunLatency) []record.RunPlan {
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
		plans[i].HeaderFaults = p.faults.named()
		plans[i].OtherStatuses, plans[i].TransportErrors = p.others(), p.unanswered()
		plans[i].Latency = nil // once the record is filled it has them already
		for _, outcome := range record.Outcomes() {
			if t := p.times[outcome]; t != nil {
				plans[i].Latency = append(plans[i].Latency, of(outcome, t))
			}
		}
	}
	return plans
}
