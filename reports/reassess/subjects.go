package reassess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/replay"
)

// unnamed is the plan of recorded decisions that name none.
const unnamed = "no plan named"

// subjects sorts the evidence by plan, in order of name.
func (e Evidence) subjects(opt Options) ([]*subject, error) {
	byPlan := map[string]*subject{}
	of := func(plan string) *subject {
		if byPlan[plan] == nil {
			byPlan[plan] = &subject{plan: plan}
		}
		return byPlan[plan]
	}
	if e.api != nil {
		e.fromAPI(of)
	}
	if e.access == nil && (opt.Plan != "" || opt.Allowance != nil) {
		return nil, errors.New("a plan or an allowance was stated for an access log, and none was given")
	}
	if e.access != nil {
		name := cmp.Or(opt.Plan, Everybody)
		if byPlan[name] != nil {
			return nil, fmt.Errorf("the API log tells of the plan %q already; name the access log's plan otherwise, or make two reports", name)
		}
		s := of(name)
		s.log, s.source = e.access, strings.Join(e.accessNames, ", ")
		if opt.Allowance != nil {
			s.allowance, s.from = opt.Allowance, "--allowance"
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
	list := slices.SortedFunc(maps.Values(byPlan), func(a, b *subject) int { return cmp.Compare(a.plan, b.plan) })
	for _, s := range list {
		s.next = nextPlan(s, list)
	}
	return list, nil
}

func runAllowance(a record.RunAllowance) *record.ReportAllowance {
	return &record.ReportAllowance{RequestsPerMinute: a.RequestsPerMinute, Burst: a.Burst, Concurrency: a.Concurrency}
}

// nextPlan is the plan with the smallest rate above that of s.
func nextPlan(s *subject, list []*subject) (next *subject) {
	if s.allowance == nil {
		return nil
	}
	for _, o := range list {
		if o.allowance != nil && o.allowance.RequestsPerMinute > s.allowance.RequestsPerMinute &&
			(next == nil || o.allowance.RequestsPerMinute < next.allowance.RequestsPerMinute) {
			next = o
		}
	}
	return next
}

// fromAPI sorts the API log by plan. A plan's allowance is the one that most of
// its users had last; whoever ever had another, by an override or before a
// change, is left out, since what they met says little of the plan's.
func (e Evidence) fromAPI(of func(string) *subject) {
	type user struct {
		last   record.ReportAllowance
		varied bool
	}
	plans := map[string]map[uint32]*user{}
	for _, d := range e.api.Decided {
		if !d.Attempt {
			continue
		}
		a := record.ReportAllowance{RequestsPerMinute: d.RequestsPerMinute, Burst: d.Burst, Concurrency: d.Concurrency}
		users := plans[d.Plan]
		if users == nil {
			users = map[uint32]*user{}
			plans[d.Plan] = users
		}
		if u := users[d.Pool]; u == nil {
			users[d.Pool] = &user{last: a}
		} else if u.last != a {
			u.last, u.varied = a, true
		}
	}
	lost := answers(e.api.Quality.Statuses, exhausted)
	for plan, users := range plans {
		had := map[record.ReportAllowance]int{}
		for _, u := range users {
			had[u.last]++
		}
		usual := slices.MaxFunc(slices.Collect(maps.Keys(had)), func(a, b record.ReportAllowance) int {
			return cmp.Or(cmp.Compare(had[a], had[b]), cmp.Compare(a.RequestsPerMinute, b.RequestsPerMinute),
				cmp.Compare(a.Burst, b.Burst), cmp.Compare(a.Concurrency, b.Concurrency))
		})
		s := of(cmp.Or(plan, unnamed))
		s.allowance, s.from = &usual, "the API log"
		s.source, s.lost = strings.Join(e.apiNames, ", "), lost
		for _, u := range users {
			if u.varied || u.last != usual {
				s.leftOut++
			}
		}
		s.log = e.api.Where(func(d accesslog.Decided) bool {
			if d.Plan != plan || !d.Attempt {
				return false
			}
			u := users[d.Pool]
			return !u.varied && u.last == usual
		})
	}
}

// exhausted is the status of a request for which no paid operation was left.
const exhausted = "402"

func answers(list []record.Count, status string) int64 {
	for _, c := range list {
		if c.Name == status {
			return c.N
		}
	}
	return 0
}

// describe says what was read of a log, and of our own log whether every
// recorded decision holds.
func describe(l *accesslog.Log) (record.Replay, error) {
	r, err := replay.Run(context.Background(), l, replay.Question{Pairs: [][2]int64{{1, 1}}})
	if refused := (*replay.RefusedError)(nil); err != nil && !errors.As(err, &refused) {
		return r, err
	}
	r.Cell = nil
	return r, nil
}
