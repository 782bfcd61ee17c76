package replay

import (
	"context"
	"slices"

	"github.com/invoicespec/brimline/reports/record"
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
	answers, _, err := t.whatIf(ctx, asks, maxMemory)
	return answers, err
}

// whatIf answers, and tells what there was to answer from.
func (t Traffic) whatIf(ctx context.Context, asks []Ask, memory int) ([]Answer, Survey, error) {
	today, err := t.today()
	if err != nil {
		return nil, Survey{}, err
	}
	grids, err := t.grids(asks)
	if err != nil {
		return nil, Survey{}, err
	}
	w := &whatIf{Traffic: t, today: today, grids: grids, survey: newSurveySum(t)}
	each := 0
	for _, g := range grids {
		w.sums = append(w.sums, newPlanSums(g))
		each = max(each, g.bytes())
	}
	parts := int32(t.Roster.Users*each/memory + 1)
	for part := range parts {
		if err := w.part(ctx, part, parts); err != nil {
			return nil, Survey{}, err
		}
	}
	seen := w.survey.survey(w.leftOut)
	answers := make([]Answer, len(asks))
	for i, s := range w.sums {
		answers[i] = s.answer(asks[i], &seen.Plans[i])
	}
	return answers, seen, nil
}

// whatIf is a what-if while it is under way.
type whatIf struct {
	Traffic
	today   []limit
	grids   []*grid
	sums    []*planSums
	survey  *surveySum
	leftOut int64
}

// part replays one of several parts of the users: all their attempts, and where
// any of them was refused at the time, once more without such.
func (w *whatIf) part(ctx context.Context, part, parts int32) error {
	n := int32(workers())
	mine := func(user int32) bool { return user/n%parts == part }
	counts, loops := make([]*surveying, n), make([]*closedLoop, n)
	all, take := make([]*cells, n), make([]taker, n)
	for i := range take {
		counts[i], all[i], loops[i] = newSurveying(w.Traffic), newCells(w.Traffic, w.grids), newClosedLoop(w.Traffic, w.grids)
		take[i] = newDesk(w.Traffic, w.today, counts[i], all[i], loops[i]).take
	}
	var err error
	if w.leftOut, err = w.pass(ctx, mine, take); err != nil {
		return err
	}
	w.survey.add(counts)
	kept := all
	if slices.ContainsFunc(counts, (*surveying).refused) {
		kept = make([]*cells, n)
		for i := range take {
			kept[i] = newCells(w.Traffic, w.grids)
			take[i] = keptOnly(newDesk(w.Traffic, w.today, kept[i]).take)
		}
		if _, err := w.pass(ctx, mine, take); err != nil {
			return err
		}
	}
	for plan, s := range w.sums {
		for user := range w.Roster.Users {
			i, local := user%int(n), user/int(n)
			if r := all[i].rows.rows[plan][local]; r != nil {
				s.add(user, r)
			}
			if r := kept[i].rows.rows[plan][local]; r != nil {
				s.addKept(user, r)
			}
			if c := loops[i].rows.rows[plan][local]; c != nil {
				s.addClosed(c, w.Attempts.Last(), w.Roster.Restarts)
			}
		}
		for _, l := range loops {
			s.addDelays(l.delays[plan])
		}
	}
	return nil
}

// planSums adds up the users of one plan.
type planSums struct {
	*grid
	all, kept []tally // by setting
	peaks     [][]int64
	loops     []loopSum
	users     []UserCounts
}

func newPlanSums(g *grid) *planSums {
	s := &planSums{grid: g, all: make([]tally, len(g.settings)), kept: make([]tally, len(g.settings)), peaks: make([][]int64, len(g.rates))}
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

func (s *planSums) answer(ask Ask, seen *PlanTraffic) Answer {
	var a Answer
	for i, at := range s.cells {
		asked := ask.Cells[i]
		c := record.Cell{
			Rate: asked.RequestsPerMinute, Burst: asked.Burst, Concurrency: asked.Concurrency,
			Rejections: s.all[at].summary(seen.rank),
		}
		if seen.Refused > 0 {
			without := s.kept[at].summary(seen.rank)
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
