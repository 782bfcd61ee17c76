package replay

import (
	"slices"
	"time"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/timeline"
)

// anatomy looks at today's rejections: whose they are, what would have made them
// vanish, when they were, and what their users did next.
type anatomy struct {
	durations bool
	plans     []*rejections
	rows      ledger[pathology]
}

// rejections is what is counted over all users of a plan.
type rejections struct {
	hours              [7][24]int64
	minutes            [60]int64
	followed, tooEarly int64
	episodes           episodes
}

// pathology is one user's part.
type pathology struct {
	attempts, rate, concurrency int64
	wide                        bucket.State // with an hour of burst
	wideRate                    int64        // rejected by it
	unrated                     inFlight     // were there no rate limit
	unratedConcurrency          int64
	first                       firstLimit
	rejected                    bool  // the latest attempt was
	until                       int64 // when the Retry-After of the latest rejection runs out
	episode                     episode
}

// firstLimit is the limit that a user meets first.
type firstLimit uint8

const (
	noLimit firstLimit = iota
	operationsLimit
	rateLimit
	burstLimit
	concurrencyLimit
	engineLimit
)

func newAnatomy(t Traffic, users int) *anatomy {
	a := &anatomy{durations: t.Durations, rows: newLedger[pathology](len(t.Roster.Plans), users)}
	for range t.Roster.Plans {
		a.plans = append(a.plans, &rejections{episodes: newEpisodes()})
	}
	return a
}

func (a *anatomy) take(v *visit) {
	if v.override || v.limit.IsZero() {
		return
	}
	p, plan := a.row(v), a.plans[v.plan]
	p.attempts++
	if p.rejected {
		plan.followed++
		if v.At < p.until {
			plan.tooEarly++
		}
	}
	hourly := a.counterfactual(p, v)
	switch p.rejected = v.decision.Outcome != admission.Admitted; {
	case !p.rejected:
		p.episode.admitted(v.At, &plan.episodes)
	default:
		wait := retryAfter(v.decision)
		p.until = v.At + wait
		p.episode.rejected(v.At, wait, &plan.episodes)
		plan.stamp(v.At)
	}
	if p.first == noLimit {
		p.first = first(v, hourly)
	}
	switch v.decision.Outcome {
	case admission.RateRejected:
		p.rate++
	case admission.ConcurrencyRejected:
		p.concurrency++
	}
}

func (a *anatomy) row(v *visit) *pathology {
	p, _ := a.rows.at(v)
	if v.moved || v.fresh {
		p.wide, p.unrated = v.before, v.flying.copy()
	}
	return p
}

// counterfactual decides the attempt with an hour of burst, of which it tells the
// outcome, and without any rate limit.
func (a *anatomy) counterfactual(p *pathology, v *visit) admission.Outcome {
	state, d := admission.Decide(p.wide, 0, hour(v.limit.Allowance), bucket.Instant(v.At))
	p.wide = state
	if d.Outcome == admission.RateRejected {
		p.wideRate++
	}
	if !a.durations || !v.limit.capped {
		return d.Outcome
	}
	if p.unrated.at(v.At) >= v.limit.Concurrency() {
		p.unratedConcurrency++
	} else {
		p.unrated.add(v.At, v.Hold)
	}
	return d.Outcome
}

// first is the limit that an attempt met, if any.
func first(v *visit, hourly admission.Outcome) firstLimit {
	switch {
	case v.Fate == timeline.OutOfOperations:
		return operationsLimit
	case v.decision.Outcome == admission.RateRejected && hourly == admission.RateRejected:
		return rateLimit
	case v.decision.Outcome == admission.RateRejected:
		return burstLimit
	case v.decision.Outcome == admission.ConcurrencyRejected:
		return concurrencyLimit
	case v.Fate == timeline.Overloaded:
		return engineLimit
	}
	return noLimit
}

// stamp notes when a rejection was, in UTC.
func (r *rejections) stamp(at int64) {
	t := time.UnixMicro(at).UTC()
	r.hours[(t.Weekday()+6)%7][t.Hour()]++
	r.minutes[t.Minute()]++
}

func (r *rejections) merge(o *rejections) {
	for day := range r.hours {
		for h := range r.hours[day] {
			r.hours[day][h] += o.hours[day][h]
		}
	}
	for m := range r.minutes {
		r.minutes[m] += o.minutes[m]
	}
	r.followed += o.followed
	r.tooEarly += o.tooEarly
	r.episodes.merge(&o.episodes)
}

// anatomies sums up the users of one plan.
func (r *rejections) anatomies(rows []*pathology, l limit, durations bool) record.ReportAnatomy {
	a := record.ReportAnatomy{
		Users: len(rows), Hours: r.hours, Minutes: r.minutes, Followed: r.followed, TooEarly: r.tooEarly, Episodes: r.episodes.record(),
		Lorenz: []record.ReportPoint{}, Undefined: []string{},
	}
	if l.IsZero() {
		a.Undefined = append(a.Undefined, "today's allowance is not known")
		return a
	}
	if !durations || !l.capped {
		a.Undefined = append(a.Undefined, "concurrency: no rejection for it is among these")
	}
	var rate, concurrency, wideRate, unrated int64
	counts := make([]int64, len(rows))
	for i, p := range rows {
		counts[i] = p.rate + p.concurrency
		if counts[i] > 0 {
			a.Affected++
		}
		rate, concurrency = rate+p.rate, concurrency+p.concurrency
		wideRate, unrated = wideRate+p.wideRate, unrated+p.unratedConcurrency
	}
	a.Rejected = rate + concurrency
	a.Causes = causes(rate, concurrency, wideRate, unrated)
	slices.Sort(counts)
	if c, ok := concentrated(counts); ok {
		a.Lorenz, a.Gini, a.Top1, a.Top1Pct = c.lorenz, c.gini, c.top, c.percent
	}
	return a
}

// causes sorts N = rate + concurrency rejections:
//
//	concurrency = N - N(C = inf)
//	burst       = those for the rate that are gone with B = 60R
//	both        = what N - N(R = inf) and concurrency leave of N
//	sustained   = the rest
func causes(rate, concurrency, wideRate, unrated int64) record.ReportCauses {
	c := record.ReportCauses{Concurrency: concurrency}
	c.Both = min(rate, max(0, unrated-concurrency))
	c.Burst = min(rate-c.Both, max(0, rate-wideRate))
	c.Sustained = rate - c.Both - c.Burst
	return c
}
