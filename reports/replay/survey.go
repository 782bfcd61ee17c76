package replay

import (
	"context"
	"slices"
)

// Survey is how much traffic each plan has.
type Survey struct {
	Plans   []PlanTraffic // in the order of the roster
	LeftOut int64         // attempts of pools whose plan nobody knows
}

// PlanTraffic is how much traffic a plan has.
type PlanTraffic struct {
	Users    int // with at least one attempt
	Attempts int64
	Refused  int64 // of the attempts, by a limiter at the time
	Days     int   // different days (UTC) with an attempt
	First    int64 // attempt, in microseconds since 1970
	Last     int64
	LeftOut  int // users with an attempt under an override in place of the plan

	attempts []uint32 // by user
}

// Survey counts without deciding anything.
func (t Traffic) Survey(ctx context.Context) (Survey, error) {
	sum := newSurveySum(t)
	counts, take := make([]*surveying, workers()), make([]taker, workers())
	for w := range counts {
		counts[w] = newSurveying(t)
		take[w] = newDesk(t, make([]limit, len(t.Roster.Plans)), counts[w]).take
	}
	leftOut, err := t.pass(ctx, everybody, take)
	if err != nil {
		return Survey{}, err
	}
	sum.add(counts)
	return sum.survey(leftOut), nil
}

// surveySum adds up what workers count.
type surveySum struct {
	plans []PlanTraffic
	days  []map[int64]bool // by plan
}

func newSurveySum(t Traffic) *surveySum {
	s := &surveySum{plans: make([]PlanTraffic, len(t.Roster.Plans))}
	for i := range s.plans {
		s.plans[i].attempts = make([]uint32, t.Roster.Users)
		s.days = append(s.days, map[int64]bool{})
	}
	return s
}

// add adds what all workers of a pass counted.
func (s *surveySum) add(counts []*surveying) {
	for i := range s.plans {
		for w, c := range counts {
			s.plans[i].add(c.plans[i], w, len(counts), s.days[i])
		}
	}
}

func (s *surveySum) survey(leftOut int64) Survey {
	for i, days := range s.days {
		s.plans[i].Days = len(days)
	}
	return Survey{Plans: s.plans, LeftOut: leftOut}
}

func (p *PlanTraffic) add(c *planSurvey, w, n int, days map[int64]bool) {
	for local, attempts := range c.attempts {
		if attempts > 0 {
			p.attempts[local*n+w] = attempts
			p.Users++
			p.Attempts += int64(attempts)
		}
	}
	for _, left := range c.leftOut {
		if left {
			p.LeftOut++
		}
	}
	p.Refused += c.refused
	if len(c.days) > 0 {
		if len(days) == 0 || c.first < p.First {
			p.First = c.first
		}
		if len(days) == 0 || c.last > p.Last {
			p.Last = c.last
		}
	}
	for day := range c.days {
		days[day] = true
	}
}

// rank is the user's place by attempts on the plan, from 1; of two alike the one
// with the smaller number comes first.
func (p *PlanTraffic) rank(user int) int {
	rank := 1
	for other, n := range p.attempts {
		if n > p.attempts[user] || (n == p.attempts[user] && other < user) {
			rank++
		}
	}
	return rank
}

// surveying counts the attempts of one worker's users.
type surveying struct{ plans []*planSurvey }

type planSurvey struct {
	attempts    []uint32 // by user
	leftOut     []bool   // by user
	refused     int64
	days        map[int64]bool
	day         int64 // the latest that was noted
	first, last int64
}

func newSurveying(t Traffic) *surveying {
	n := workers()
	s := &surveying{plans: make([]*planSurvey, len(t.Roster.Plans))}
	for i := range s.plans {
		each := (t.Roster.Users + n - 1) / n
		s.plans[i] = &planSurvey{attempts: make([]uint32, each), leftOut: make([]bool, each), days: map[int64]bool{}, day: -1}
	}
	return s
}

// refused reports whether any attempt was, at the time.
func (s *surveying) refused() bool {
	return slices.ContainsFunc(s.plans, func(p *planSurvey) bool { return p.refused > 0 })
}

func (s *surveying) take(v *visit) {
	p := s.plans[v.plan]
	if v.override {
		p.leftOut[v.local] = true
		return
	}
	p.attempts[v.local]++
	if v.Refused() {
		p.refused++
	}
	if len(p.days) == 0 {
		p.first = v.At
	}
	p.last = v.At
	if day := floorDiv(v.At, daySeconds*second); len(p.days) == 0 || day != p.day {
		p.days[day], p.day = true, day
	}
}

// second is one in microseconds, daySeconds a day in seconds.
const (
	second     = 1_000_000
	daySeconds = 24 * 3600
)

// floorDiv is a/b rounded down, for b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func everybody(int32) bool { return true }

// sortedKeys are the keys of m in order.
func sortedKeys[V any](m map[int64]V) []int64 {
	keys := make([]int64, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
