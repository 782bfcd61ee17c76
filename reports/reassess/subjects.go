package reassess

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/evidence"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/replay"
	"github.com/invoicespec/brimline/reports/roster"
)

// Everybody is the plan of an access log's clients where nobody names it.
const Everybody = "all clients"

// unnamed is the plan of recorded decisions that name none.
const unnamed = "no plan named"

// source is a log with whose each pool is.
type source struct {
	name      string
	log       *accesslog.Log
	traffic   replay.Traffic
	described record.Replay  // what was read, assumed and found missing
	from      string         // who names the plans and allowances
	names     []string       // pseudonyms, by user
	userOf    map[string]int // by id
	seen      replay.Survey
	was       []*recorded
	peaks     *record.ReportPeaks // today's; nil: an allowance is unknown
}

// pool is what a user of the log is.
func (s *source) pool() record.Pool {
	if s.log.Quality.Format == record.FormatAPI {
		return record.PoolUser
	}
	return record.PoolClient
}

// told is a count that only logs of the server's own can hold.
func (s *source) told(n int64) *int64 {
	if n == 0 && s.log.Quality.Format != record.FormatAPI {
		return nil
	}
	return &n
}

// subject is all that is known of one plan.
type subject struct {
	plan       string
	allowance  *record.ReportAllowance
	from       string // who states the allowance
	paid       *bool
	price      *float64 // of a user and month
	operations *int64   // of a user and month

	part             // of the log with most days; without a source no log tells of the plan
	others    []part // of other logs, which only say how it was
	tried     tried
	answer    replay.Answer
	today     replay.PlanToday
	overrides []replay.Override
	each      []replay.UserCounts // under today's allowance, and the next plan's where there is one
	runs      []planRun

	next *subject // the plan with the next larger rate; nil: none is known
}

// part is what a log has of a plan.
type part struct {
	src  *source
	at   int // among the plans of the source's roster
	seen replay.PlanTraffic
	was  *recorded
}

// planRun is a run as far as it concerns a plan.
type planRun struct {
	name string
	run  *record.Run
	plan *record.RunPlan

	doubts []string // why it tells nothing of the plan
}

// sources are the logs with their rosters.
func (e Evidence) sources(ctx context.Context, opt Options) ([]*source, error) {
	var list []*source
	if e.access == nil && (opt.Plan != "" || opt.Allowance != nil) {
		return nil, errors.New("a plan or an allowance was stated for an access log, and none was given")
	}
	if e.access != nil {
		s := &source{name: strings.Join(e.accessNames, ", "), log: e.access, from: "--allowance"}
		r := roster.Single(cmp.Or(opt.Plan, Everybody), opt.Allowance, e.access.Pools)
		r.IDs = e.access.Names
		s.traffic = replay.TrafficOf(e.access, r)
		if opt.Map != nil {
			var err error
			if s.traffic.Roster, err = opt.Map.Resolve(ctx, e.access.Names, s.traffic.Attempts); err != nil {
				return nil, err
			}
			s.from = s.traffic.Roster.Coverage.From
		}
		if m := opt.Metrics; m != nil && (opt.Map == nil || !opt.Map.Stated()) {
			var starts []int64
			for _, at := range m.Starts {
				starts = append(starts, at.UnixMicro())
			}
			s.traffic.Roster.Restart(starts, s.traffic.Attempts)
		}
		list = append(list, s)
	}
	if e.api != nil {
		r := fromDecided(e.api)
		r.IDs = e.api.Names
		if opt.Map != nil {
			opt.Map.Describe(r)
		}
		list = append(list, &source{name: strings.Join(e.apiNames, ", "), log: e.api, from: "the API log", traffic: replay.TrafficOf(e.api, r)})
	}
	for _, s := range list {
		s.traffic.Progress = opt.Progress
		var err error
		if s.described, err = replay.Describe(ctx, s.log); err != nil {
			return nil, err
		}
		if s.seen, err = s.traffic.Survey(ctx); err != nil {
			return nil, err
		}
		if s.was, err = recordedBy(ctx, s.traffic); err != nil {
			return nil, err
		}
		evidence.Apply(opt.Prices, s.traffic.Roster)
		if err := s.call(opt.Key); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// subjects sorts the evidence by plan, in order of allowance, then of name.
func (e Evidence) subjects(sources []*source) []*subject {
	byPlan := map[string]*subject{}
	of := func(plan string) *subject {
		if byPlan[plan] == nil {
			byPlan[plan] = &subject{plan: plan}
		}
		return byPlan[plan]
	}
	for _, src := range sources {
		for i, p := range src.traffic.Roster.Plans {
			s, one := of(p.Name), part{src, i, src.seen.Plans[i], src.was[i]}
			if s.src != nil && (one.seen.Days < s.seen.Days || one.seen.Days == s.seen.Days && one.seen.Attempts <= s.seen.Attempts) {
				s.others = append(s.others, one)
			} else {
				if s.src != nil {
					s.others = append(s.others, s.part)
				}
				s.part = one
			}
			s.know(p)
			if p.Today != nil && s.allowance == nil {
				s.allowance, s.from = p.Today, src.from
			}
		}
	}
	for i := range e.runs {
		n := &e.runs[i]
		for j := range n.run.Plans {
			p := &n.run.Plans[j]
			s := of(p.Plan)
			r := planRun{name: n.name, run: &n.run, plan: p}
			for _, d := range n.run.Doubts() {
				if d.Plan == "" || d.Plan == p.Plan {
					r.doubts = append(r.doubts, d.Why)
				}
			}
			s.runs = append(s.runs, r)
			if a, ok := n.run.Target.Allowances[p.Plan]; ok && s.allowance == nil {
				s.allowance, s.from = runAllowance(a), n.name
			}
		}
	}
	list := slices.SortedFunc(maps.Values(byPlan), func(a, b *subject) int {
		return cmp.Or(cmp.Compare(a.rate(), b.rate()), cmp.Compare(a.plan, b.plan))
	})
	for i, s := range list {
		if s.src != nil {
			s.src.traffic.Roster.Plans[s.at].Today = s.allowance
		}
		for _, o := range list[i+1:] {
			if s.allowance != nil && o.allowance != nil && o.rate() > s.rate() {
				s.next = o
				break
			}
		}
	}
	return list
}

// know takes over what a roster says of the plan.
func (s *subject) know(p roster.Plan) {
	s.paid, s.operations = cmp.Or(s.paid, p.Paid), cmp.Or(s.operations, p.Operations)
	if p.Price != nil && s.price == nil {
		x := p.Price.Monthly()
		s.price = &x
	}
}

// rate is the plan's, where it is known, and else above all.
func (s *subject) rate() int64 {
	if s.allowance == nil {
		return math.MaxInt64
	}
	return s.allowance.RequestsPerMinute
}

// told is the allowance as the log can tell of it: without durations nobody can
// be held to a concurrency.
func (s *subject) told() *record.ReportAllowance {
	if s.allowance == nil {
		return nil
	}
	a := *s.allowance
	if !s.src.traffic.Durations {
		a.Concurrency = 0
	}
	return &a
}

func runAllowance(a record.RunAllowance) *record.ReportAllowance {
	return &record.ReportAllowance{RequestsPerMinute: a.RequestsPerMinute, Burst: a.Burst, Concurrency: a.Concurrency}
}

// fromDecided is whose an API log's pools are, by its own decisions. A plan's
// allowance is the one that most of its users had last; whoever is decided by
// another has an override for so long.
func fromDecided(log *accesslog.Log) *roster.Roster {
	type grounds struct {
		plan      string
		allowance record.ReportAllowance
	}
	of := func(d accesslog.Decided) grounds {
		return grounds{cmp.Or(d.Plan, unnamed), record.ReportAllowance{RequestsPerMinute: d.RequestsPerMinute, Burst: d.Burst, Concurrency: d.Concurrency}}
	}
	last := map[uint32]grounds{}
	for _, d := range log.Decided {
		if d.Attempt {
			last[d.Pool] = of(d)
		}
	}
	had := map[grounds]int{}
	for _, g := range last {
		had[g]++
	}
	usual := map[string]record.ReportAllowance{}
	for _, g := range slices.SortedFunc(maps.Keys(had), func(a, b grounds) int {
		return cmp.Or(cmp.Compare(a.plan, b.plan), cmp.Compare(had[b], had[a]), cmp.Compare(b.allowance.RequestsPerMinute, a.allowance.RequestsPerMinute),
			cmp.Compare(b.allowance.Burst, a.allowance.Burst), cmp.Compare(b.allowance.Concurrency, a.allowance.Concurrency))
	}) {
		if _, ok := usual[g.plan]; !ok {
			usual[g.plan] = g.allowance
		}
	}
	for _, d := range log.Decided { // a plan that nobody was on in the end
		if g := of(d); d.Attempt {
			if _, ok := usual[g.plan]; !ok {
				usual[g.plan] = g.allowance
			}
		}
	}
	r := &roster.Roster{Users: log.Pools, UserOf: make([]int32, log.Pools), Phases: make([][]roster.Phase, log.Pools)}
	places := map[string]int{}
	for _, plan := range slices.SortedFunc(maps.Keys(usual), func(a, b string) int {
		return cmp.Or(cmp.Compare(usual[a].RequestsPerMinute, usual[b].RequestsPerMinute), cmp.Compare(a, b))
	}) {
		places[plan] = len(r.Plans)
		today := usual[plan]
		r.Plans = append(r.Plans, roster.Plan{Name: plan, Today: &today})
	}
	for i := range r.UserOf {
		r.UserOf[i] = -1
	}
	now := map[uint32]grounds{}
	run := 0
	for _, d := range log.Decided {
		if !d.Attempt {
			continue
		}
		at := d.At
		if d.Run != run {
			run = d.Run
			r.Restarts = append(r.Restarts, at)
		}
		g := of(d)
		if r.UserOf[d.Pool] >= 0 && now[d.Pool] == g {
			continue
		}
		from := at
		if r.UserOf[d.Pool] < 0 {
			r.UserOf[d.Pool], from = int32(d.Pool), math.MinInt64
		}
		now[d.Pool] = g
		phase := roster.Phase{From: from, Plan: places[g.plan]}
		if g.allowance != usual[g.plan] {
			own := g.allowance
			phase.Override = &own
		}
		r.Phases[d.Pool] = append(r.Phases[d.Pool], phase)
	}
	for i := range r.Phases {
		if r.Phases[i] == nil {
			r.Phases[i] = []roster.Phase{{From: math.MinInt64}}
		}
	}
	return r
}

// exhausted is the status of a request for which no paid operation was left.
const exhausted = "402"

func answers(list []record.Count, name string) int64 {
	for _, c := range list {
		if c.Name == name {
			return c.N
		}
	}
	return 0
}
