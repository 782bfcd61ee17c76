package reassess

import (
	"cmp"
	"context"
	"slices"

	"github.com/invoicespec/brimline/reports/evidence"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/replay"
	"github.com/invoicespec/brimline/reports/roster"
)

// weighing goes from what was read to every plan's part of the report.
type weighing struct {
	evidence Evidence
	opt      Options
	rules    record.ReportRules
	date     string
	subjects []*subject
	tickets  record.ReportSupport
	weighed  []*weighed // in the order of subjects
}

// weighed is a plan on its way into the report.
type weighed struct {
	subject *subject
	claim   claim
	plan    record.ReportPlan
	aim     aim
	found   candidate
}

// replay asks a log all that does not hang on a target, for all its plans at once.
func (w *weighing) replay(ctx context.Context, src *source) error {
	if src.described.Refused != "" {
		return nil
	}
	of := w.of(src)
	asks, tries := make([]replay.Ask, len(of)), make([]tried, len(of))
	for i, s := range of {
		if s != nil {
			tries[i] = s.try()
			asks[i] = s.ask(tries[i])
		}
	}
	answers, err := src.traffic.WhatIf(ctx, asks)
	if err != nil {
		return err
	}
	today, err := src.traffic.Today(ctx)
	if err != nil {
		return err
	}
	for i, s := range of {
		if s != nil {
			s.tried, s.answer, s.each, s.today = tries[i], answers[i], answers[i].Each, today.Plans[i]
		}
	}
	for _, o := range today.Overrides {
		if s := of[o.Plan]; s != nil {
			s.overrides = append(s.overrides, o)
		}
	}
	if !slices.ContainsFunc(src.traffic.Roster.Plans, func(p roster.Plan) bool { return p.Today == nil }) {
		peaks, err := src.traffic.Peaks(ctx, src.allowances(of, nil, nil))
		if err != nil {
			return err
		}
		peaks.Source = src.name
		src.peaks = &peaks
	}
	return nil
}

// of is a log's plans in the order of its roster; nil: another log tells more of
// it.
func (w *weighing) of(src *source) []*subject {
	list := make([]*subject, len(src.traffic.Roster.Plans))
	for _, s := range w.subjects {
		if s.src == src {
			list[s.at] = s
		}
	}
	return list
}

// allowances are those of all plans, with another in place of one plan's.
func (src *source) allowances(of []*subject, change *subject, to *record.Cell) []*record.ReportAllowance {
	list := make([]*record.ReportAllowance, len(of))
	for i, s := range of {
		list[i] = src.traffic.Roster.Plans[i].Today
		if s == nil {
			continue
		}
		if list[i] = s.told(); s == change {
			list[i] = &record.ReportAllowance{RequestsPerMinute: to.Rate, Burst: to.Burst, Concurrency: to.Concurrency}
		}
	}
	return list
}

// weigh makes a plan's part of the report.
func (w *weighing) weigh(ctx context.Context, s *subject) error {
	p := record.ReportPlan{Plan: s.plan, Allowance: s.allowance, AllowanceFrom: s.from, Paid: s.paid, Scores: []record.ReportScore{}}
	c := claim{plan: s.plan, today: s.allowance, unpaid: s.paid != nil && !*s.paid}
	if s.next != nil {
		c.next, p.Next = &neighbour{s.next.plan, *s.next.allowance}, s.next.plan
	}
	if s.src != nil {
		what := s.whatIf(s.tried, s.answer)
		p.WhatIf, c.whatIf = &what, &what
		if s.allowance != nil && what.Refused == "" {
			p.Utilization, p.Anatomy = &s.today.Utilization, &s.today.Anatomy
		}
	}
	recorded := s.src != nil && s.src.log.Quality.Format == record.FormatAPI || s.was != nil && s.was.lost > 0
	if w.opt.Usage != nil && !recorded && s.src != nil {
		s.usedUp(evidence.FirstExhausted(w.opt.Usage))
		recorded = true
	}
	b := binding(s.today.Binding, s.allowance, s.operations, recorded)
	p.Binding, c.binding = &b, &b
	c.earlier, c.relieved = asked(w.opt.Earlier, s.plan, s.allowance)
	c.engine = w.engineToday(s)
	x := &weighed{subject: s}
	x.aim = c.aim(w.rules)
	p.Verdict = x.aim.verdict
	p.Scores = s.scores(p.Verdict.Today)
	p.Evidence = w.filled(s, p)
	c.evidence = p.Evidence
	found, err := w.candidate(ctx, c, s, x.aim)
	if err != nil {
		return err
	}
	x.found = found
	if p.WhatIf != nil {
		p.WhatIf.Moved = found.moved
		if s.src.peaks != nil {
			p.WhatIf.Today, p.WhatIf.Then = s.src.peaks, found.peaks
		}
	}
	p.Verdict = c.settle(x.aim, found, w.rules)
	p.Decision = c.rows(x.aim, p.Verdict, w.rules)
	p.Gates = c.conditions(p, found, w.rules)
	p.Verdict.Headline = headline(p)
	if p.Verdict.Word == record.Raise || p.Verdict.Word == record.Lower {
		p.Effective = w.date
	}
	var then *record.ReportPeaks
	if p.Verdict.Uncapped != nil {
		then = found.peaks
	}
	cost := cost(s.peaks(), then, s.service())
	p.Cost = &cost
	losses, err := w.losses(ctx, c, s, p.Verdict)
	if err != nil {
		return err
	}
	notice := c.notice(p.Verdict, losses, w.date, w.opt.Gates.Exempt, w.rules)
	p.Notice = &notice
	p.Verdict.Because = append(because(p, w.rules), s.doubted()...)
	x.claim, x.plan = c, p
	w.weighed = append(w.weighed, x)
	return nil
}

// candidate replays what is left of an aim under the caps.
func (w *weighing) candidate(ctx context.Context, c claim, s *subject, a aim) (x candidate, err error) {
	steps := c.below(a.course)
	if len(a.course) == 0 || len(steps) == 0 {
		return x, nil
	}
	x.below = &steps[len(steps)-1]
	x.fits = x.below
	peak := func(to *record.Cell) error {
		if s.src.peaks == nil {
			return nil
		}
		p, err := s.src.traffic.Peaks(ctx, s.src.allowances(w.of(s.src), s, to))
		if err != nil {
			return err
		}
		p.Source = s.src.name
		x.peaks = &p
		return nil
	}
	if err := peak(x.below); err != nil {
		return x, err
	}
	today := 0.0
	if s.src.peaks != nil {
		today = s.src.peaks.Ten
	}
	if _, known, _ := w.evidence.engine.room(0, today, w.rules); known && x.peaks != nil {
		whole := x.peaks
		for i := len(steps) - 1; ; i-- {
			if i < 0 {
				x.fits, x.peaks = nil, whole
				break
			}
			if err := peak(&steps[i]); err != nil {
				return x, err
			}
			ok, _, why := w.evidence.engine.room(x.peaks.Ten, today, w.rules)
			if ok {
				x.fits = &steps[i]
				break
			}
			x.room = cmp.Or(x.room, why)
		}
	}
	to := cmp.Or(x.fits, x.below)
	pairs := make([]*[2]record.ReportAllowance, len(s.src.traffic.Roster.Plans))
	pairs[s.at] = &[2]record.ReportAllowance{*s.told(), {RequestsPerMinute: to.Rate, Burst: to.Burst, Concurrency: to.Concurrency}}
	days, err := s.src.traffic.Paired(ctx, pairs)
	if err != nil {
		return x, err
	}
	list := make([]pairing, len(days[s.at]))
	for i, d := range days[s.at] {
		list[i] = pairing{user: d.User, day: int(d.Day), attempts: d.Attempts, today: d.Rejected[0], then: d.Rejected[1]}
	}
	m := moved(list, w.rules.Draws, w.opt.Seed)
	m.Rate, m.Burst = to.Rate, to.Burst
	x.moved = &m
	return x, nil
}

// engineToday is whether the engine holds the busiest seconds of today.
func (w *weighing) engineToday(s *subject) engineToday {
	if s.peaks() == nil {
		return engineToday{}
	}
	ok, known, why := w.evidence.engine.room(s.peaks().Ten, s.peaks().Ten, w.rules)
	return engineToday{known: known, over: known && !ok, found: why}
}

// peaks are those of the log that tells of the plan; nil: not known.
func (s *subject) peaks() *record.ReportPeaks {
	if s.src == nil {
		return nil
	}
	return s.src.peaks
}

// service is how long the engine works on a request of the plan, on average; nil:
// no input tells. A server's own log comes before a load run, which has the network
// in it.
func (s *subject) service() *float64 {
	if s.was != nil {
		if x := s.was.service(); x != nil {
			return x
		}
	}
	for _, r := range s.runs {
		if x := r.service(); x != nil && len(r.doubts) == 0 {
			return x
		}
	}
	return nil
}

// together is S6: all plans at once, with every recommended change made.
func (w *weighing) together(ctx context.Context, sources []*source, r *record.Report) error {
	var today, then *record.ReportPeaks
	for _, src := range sources {
		if src.peaks == nil || today != nil && src.peaks.Ten <= today.Ten {
			continue
		}
		today = src.peaks
		list := src.allowances(w.of(src), nil, nil)
		changed := false
		for _, x := range w.weighed {
			if v := x.plan.Verdict; x.subject.src == src && v.Uncapped != nil && (v.Target != nil || x.found.fits != nil) {
				to := v.Target
				if to == nil {
					to = x.found.fits
				}
				list[x.subject.at] = &record.ReportAllowance{RequestsPerMinute: to.Rate, Burst: to.Burst, Concurrency: to.Concurrency}
				changed = true
			}
		}
		then = today
		if changed {
			p, err := src.traffic.Peaks(ctx, list)
			if err != nil {
				return err
			}
			p.Source, then = src.name, &p
		}
	}
	var plans []record.ReportPlan
	for _, x := range w.weighed {
		plans = append(plans, x.plan)
	}
	s := w.evidence.engine.section(today, then, worst(plans), w.rules)
	s.Latency, s.Observed = w.latencies(), append(s.Observed, observed(w.opt.Metrics)...)
	for _, x := range w.weighed {
		for _, text := range x.subject.saturation() {
			s.Runs = append(s.Runs, x.subject.plan+", "+text)
		}
	}
	r.Capacity = &s
	r.Gates = w.evidence.engine.conditions(s, w.rules)
	return nil
}

// latencies is how long each plan's admitted requests took, with runs split by how
// busy they were.
func (w *weighing) latencies() []record.ReportPlanLatency {
	list := []record.ReportPlanLatency{}
	for _, x := range w.weighed {
		for _, s := range x.plan.Scores {
			if s.Latency == nil || s.Override {
				continue
			}
			l := record.ReportPlanLatency{Plan: x.plan.Plan, Source: s.Source, All: *s.Latency}
			for _, run := range x.subject.runs {
				if run.name == s.Source && s.Basis == record.BasisMeasured {
					l.Peak, l.OffPeak = atPeak(run.run, run.plan)
				}
			}
			list = append(list, l)
		}
	}
	return list
}

// todayShare is what the busiest seconds of today take of the engine's capacity.
func (w *weighing) todayShare() *float64 {
	if c := w.evidence.engine.found; c != nil && c.Holds != nil {
		for _, x := range w.weighed {
			if p := x.subject.peaks(); p != nil {
				return ratio(p.Ten, *c.Holds)
			}
		}
	}
	return nil
}

// fair is every plan as S8 sees it.
func (w *weighing) fair() (list []fair) {
	for _, x := range w.weighed {
		s := x.subject
		f := fair{plan: s.plan, allowance: s.allowance, price: s.price, service: s.service(), users: s.seen.Users}
		if u := x.plan.Utilization; u != nil && u.Rate != nil && s.allowance != nil {
			d := u.Rate.P99 * float64(s.allowance.RequestsPerMinute)
			f.demand = &d
		}
		failing, too := 0, 0
		for _, e := range s.each {
			admitted := float64(e.Attempts - e.Rejected[0])
			f.admitted += admitted
			f.shares = append(f.shares, admitted/float64(e.Attempts))
			if e.Rejected[0] > 0 {
				failing++
				if len(e.Rejected) > 1 && e.Rejected[1] > 0 {
					too++
				}
			}
		}
		if len(s.each) > 0 {
			f.failing = &failing
			if s.next != nil {
				f.failingToo = &too
			}
		} else {
			f.service = nil
		}
		list = append(list, f)
	}
	return list
}
