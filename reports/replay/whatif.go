package replay

import (
	"context"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/timeline"
)

// Ask is what is asked of one plan. Allowances without a concurrency are
// replayed without a cap.
type Ask struct {
	Cells      []record.ReportAllowance // the rejections under each
	Rates      []int64                  // the burst that users need at each
	ClosedLoop []record.ReportAllowance // clients that obey Retry-After, under each
	Each       []record.ReportAllowance // every user's own counts, under each
}

// Answer is what one plan's attempts come to, in the order of the [Ask].
type Answer struct {
	Cells       []record.Cell // both demand bounds, where anything was refused at the time
	BurstNeeded []record.Needs
	ClosedLoop  []record.ReportClosed
	Each        []UserCounts // in order of user
}

// UserCounts is one user's part of an answer.
type UserCounts struct {
	User     int
	Attempts int64
	Refused  int64   // by a limiter at the time
	Rejected []int64 // under each of [Ask.Each]
}

// maxMemory is about how much may be kept of users at a time; where there are
// more, the attempts are read once for each part of them.
const maxMemory = 512 << 20

// WhatIf answers one ask for each plan of the roster.
func (t Traffic) WhatIf(ctx context.Context, asks []Ask) ([]Answer, error) {
	seen, err := t.Survey(ctx)
	if err != nil {
		return nil, err
	}
	return t.whatIf(ctx, asks, seen, maxMemory)
}

func (t Traffic) whatIf(ctx context.Context, asks []Ask, seen Survey, memory int) ([]Answer, error) {
	today, err := t.today()
	if err != nil {
		return nil, err
	}
	grids, err := t.grids(asks)
	if err != nil {
		return nil, err
	}
	sums, bytes := make([]*planSums, len(asks)), 0
	for i, g := range grids {
		p := &seen.Plans[i]
		sums[i] = newPlanSums(g, p)
		each := g.bytes()
		if p.Refused > 0 {
			each *= 2
		}
		bytes += p.Users * each
	}
	parts := bytes/memory + 1
	for part := range parts {
		if err := t.part(ctx, today, grids, sums, int32(part), int32(parts)); err != nil {
			return nil, err
		}
	}
	answers := make([]Answer, len(asks))
	for i, s := range sums {
		answers[i] = s.answer(asks[i])
	}
	return answers, nil
}

// part replays one of several parts of the users.
func (t Traffic) part(ctx context.Context, today []limit, grids []*grid, sums []*planSums, part, parts int32) error {
	n := int32(workers())
	kept := false
	for _, s := range sums {
		kept = kept || s.seen.Refused > 0
	}
	take := make([]taker, n)
	all, rest, loops := make([]*cells, n), make([]*cells, n), make([]*closedLoop, n)
	for w := range take {
		all[w], loops[w] = newCells(t, grids), newClosedLoop(t, grids)
		take[w] = newDesk(t, today, all[w], loops[w]).take
		if kept {
			rest[w] = newCells(t, grids)
			take[w] = both(take[w], keptOnly(newDesk(t, today, rest[w]).take))
		}
	}
	_, err := t.pass(ctx, func(user int32) bool { return user/n%parts == part }, take)
	if err != nil {
		return err
	}
	for plan, s := range sums {
		for user := range t.Roster.Users {
			w, local := user%int(n), user/int(n)
			if r := all[w].rows.rows[plan][local]; r != nil {
				s.add(user, r)
			}
			if kept {
				if r := rest[w].rows.rows[plan][local]; r != nil {
					s.addKept(user, r)
				}
			}
			if c := loops[w].rows.rows[plan][local]; c != nil {
				s.addClosed(c, t.Attempts.Last(), t.Roster.Restarts)
			}
		}
		for _, l := range loops {
			s.addDelays(l.delays[plan])
		}
	}
	return nil
}

func both(a, b taker) taker {
	return func(user int32, attempt *timeline.Attempt) {
		a(user, attempt)
		b(user, attempt)
	}
}

// planSums adds up the users of one plan.
type planSums struct {
	*grid
	seen      *PlanTraffic
	all, kept []tally // by setting
	peaks     [][]int64
	loops     []loopSum
	users     []UserCounts
}

func newPlanSums(g *grid, seen *PlanTraffic) *planSums {
	s := &planSums{grid: g, seen: seen, all: make([]tally, len(g.settings)), peaks: make([][]int64, len(g.rates))}
	if seen.Refused > 0 {
		s.kept = make([]tally, len(g.settings))
	}
	for range g.closed {
		s.loops = append(s.loops, loopSum{delays: spread{}})
	}
	return s
}

func (s *planSums) add(user int, r *row) {
	for i := range s.settings {
		s.all[i].add(user, r.outcome(s.settings[i]))
	}
	for i, m := range r.meters {
		s.peaks[i] = append(s.peaks[i], m.peak)
	}
	if len(s.each) == 0 {
		return
	}
	u := UserCounts{User: user, Attempts: int64(r.attempts), Refused: int64(r.refused), Rejected: make([]int64, len(s.each))}
	for i, at := range s.each {
		o := r.outcome(s.settings[at])
		u.Rejected[i] = o.rate + o.concurrency
	}
	s.users = append(s.users, u)
}

func (s *planSums) addKept(user int, r *row) {
	for i := range s.kept {
		s.kept[i].add(user, r.outcome(s.settings[i]))
	}
}

func (s *planSums) answer(ask Ask) Answer {
	var a Answer
	for i, at := range s.cells {
		asked := ask.Cells[i]
		c := record.Cell{
			Rate: asked.RequestsPerMinute, Burst: asked.Burst, Concurrency: asked.Concurrency,
			Rejections: s.all[at].summary(s.seen.rank),
		}
		if s.kept != nil {
			without := s.kept[at].summary(s.seen.rank)
			c.WithoutRefused = &without
		}
		a.Cells = append(a.Cells, c)
	}
	for i, rate := range s.rates {
		if len(s.peaks[i]) > 0 {
			a.BurstNeeded = append(a.BurstNeeded, needs(rate, s.peaks[i]))
		}
	}
	for i, asked := range ask.ClosedLoop {
		a.ClosedLoop = append(a.ClosedLoop, s.loops[i].closed(asked))
	}
	sortUsers(s.users)
	a.Each = s.users
	return a
}
