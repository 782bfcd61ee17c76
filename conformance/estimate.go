package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
)

// Estimate is what a plan takes, as far as it was rehearsed. It takes users to
// begin with full buckets.
type Estimate struct {
	Operations    int64           `json:"operations_at_most"` // that are charged
	MaxOperations int64           `json:"max_operations"`     // of the target file
	Time          time.Duration   `json:"time_ns"`
	Users         map[string]Need `json:"users"`                 // by plan
	Unknown       int             `json:"unknown"`               // scenarios to be run whose cost is not known
	Unrehearsed   string          `json:"unrehearsed,omitempty"` // why nothing is known
}

// Need is how many users a scenario needs at once, and how many there are.
type Need struct {
	Users int `json:"needed"`
	There int `json:"there"` // -1: as many as it takes
}

// room is where a plan has to fit in: how fast the target answers and tokens come
// back, and how many scenarios run side by side.
type room struct {
	workers   int
	movable   bool
	roundTrip time.Duration
	rate      map[string]float64 // tokens a second, by plan
	burst     map[string]float64
	users     map[string]int // by plan; -1: as many as it takes
	most      int64          // operations
	witness   int64          // operations that it takes to see one request in flight
	works     time.Duration  // that what is held in flight takes to end by itself
	rests     time.Duration  // until an emptied pool of attempts is whole again, where all scenarios share one
}

func roomOf(t *target.Target, o Options) room {
	r := room{workers: o.workers(t), movable: t.Movable(), roundTrip: t.RoundTrip(), most: t.MaxOperations(), witness: t.HoldPrice(1) - 1, works: t.WorkTakes(),
		rate: map[string]float64{}, burst: map[string]float64{}, users: map[string]int{}}
	if a := t.Anonymous(); !r.movable && !t.Has(contract.NeedAddresses) {
		r.rests = time.Duration(float64(a.Burst) / float64(a.RequestsPerMinute) * float64(time.Minute))
	}
	for _, plan := range t.Plans() {
		a, _ := t.Allowance(plan)
		r.rate[plan], r.burst[plan], r.users[plan] = float64(a.RequestsPerMinute)/60, float64(a.Burst), t.UsersOn(plan)
	}
	return r
}

// estimate sums up what the scenarios to be run take.
func (p *Plan) estimate(t *target.Target, o Options) {
	e := roomOf(t, o).sum(p.Running())
	p.Estimate = &e
}

// takes is how long one scenario takes by itself.
func (r room) takes(c Cost) time.Duration {
	d := c.Work + time.Duration(c.Requests)*r.roundTrip + time.Duration(c.Rounds)*r.works
	if !r.movable {
		d += c.Waits
	}
	return d
}

// charges is how many operations a scenario is charged at most. On a clock that
// runs, tokens come back while a bucket is emptied, the faster the longer an
// answer takes; and of a user who was there before a request asks for the level.
// What is held is seen by requests that are charged where nothing else shows it.
func (r room) charges(c Cost) int64 {
	all := c.Operations + c.Held*r.witness
	n := float64(all)
	if r.movable {
		return all
	}
	fastest := 0.0
	for plan, users := range c.Users {
		fastest = max(fastest, r.rate[plan])
		n += float64(users)
	}
	back := min(0.75, fastest*(r.roundTrip+tick).Seconds())
	return int64(n/(1-back)) + 1
}

// tick is what a request takes at least on a machine with other work to do.
const tick = 10 * time.Millisecond

// sum is what scenarios take, side by side.
func (r room) sum(all []Planned) Estimate {
	e := Estimate{MaxOperations: r.most, Users: map[string]Need{}}
	var work, longest, alone time.Duration
	tokens := map[string]float64{}
	if len(all) > 0 {
		e.Operations = int64(len(r.rate)) // of target.TryOut
	}
	for _, s := range all {
		if s.Cost == nil {
			e.Unknown++
		}
		c := s.cost()
		e.Operations += r.charges(c)
		took := r.takes(c)
		work, longest = work+took, max(longest, took)
		if s.wantsAddressAtRest() {
			alone += r.rests
		}
		for plan, n := range c.Users {
			e.Users[plan] = Need{max(e.Users[plan].Users, n), r.users[plan]}
			tokens[plan] += c.Tokens[plan]
		}
	}
	e.Time = max(work/time.Duration(r.workers), longest) + alone
	for plan, n := range tokens {
		users := float64(r.users[plan])
		if r.movable || users <= 0 {
			continue // they are made as needed
		}
		if left := n - users*r.burst[plan]; left > 0 { // has to come back within the run
			e.Time = max(e.Time, time.Duration(left/(users*r.rate[plan])*float64(time.Second)))
		}
	}
	return e
}

// wantsAddressAtRest reports whether the scenario begins with the whole pool of
// an address. Where there is but one address, nothing else is run meanwhile.
func (s Planned) wantsAddressAtRest() bool { return slices.Contains(s.Steps, "an address at rest") }

// Fit keeps what a budget of time (0: none) and the target's max-operations allow, the
// most telling first: each time the scenario whose clauses, if nobody else looks at
// them yet, are the most for its time, a MUST counting more than what the contract
// left open. What it leaves out is not run, and says so.
func (p Plan) Fit(t *target.Target, budget time.Duration, o Options) Plan {
	r := roomOf(t, o)
	left := p.Running()
	known := slices.ContainsFunc(left, func(s Planned) bool { return s.Cost != nil }) // or the clock has to tell
	var kept []Planned
	var ordered []string
	seen := map[string]bool{}
	why := map[string]string{}
	for len(left) > 0 {
		worth := func(s Planned) float64 { return s.worth(seen) / (0.2 + r.takes(s.cost()).Seconds()) }
		best := 0
		for i := range left {
			if worth(left[i]) > worth(left[best]) {
				best = i
			}
		}
		s := left[best]
		left = slices.Delete(left, best, best+1)
		switch e := r.sum(append(kept, s)); {
		case e.Operations > r.most:
			why[s.At] = leftOutMark + fmt.Sprintf("limits.max-operations of %d goes to what tells more", r.most)
		case budget > 0 && known && e.Time > budget:
			why[s.At] = leftOutMark + fmt.Sprintf("the budget of %s goes to what tells more", tellTime(budget))
		default:
			kept, ordered = append(kept, s), append(ordered, s.At)
			for _, id := range s.Clauses {
				seen[id] = true
			}
		}
	}
	p.Scenarios = slices.Clone(p.Scenarios)
	for i, s := range p.Scenarios {
		if why[s.At] != "" {
			p.Scenarios[i].NotRun = why[s.At]
		}
	}
	p.order = ordered
	p.estimate(t, o)
	return p
}

// usualWork is what a scenario is taken to need of which nothing is known: most of
// those start servers.
const usualWork = 5 * time.Second

// tellLeft says how much of a whole plan does not fit, and into what.
func (p Plan) tellLeft(whole Plan, left int) string {
	e := p.Estimate
	if whole.Estimate != nil {
		e = whole.Estimate
	}
	return fmt.Sprintf("%d of %d scenarios are left out: all of them take about %s and up to %d operations, of %d that limits.max-operations allows",
		left, len(whole.Running()), e.Time.Round(time.Second), e.Operations, e.MaxOperations)
}

// cost is the scenario's cost, or a guess where it is not known.
func (s Planned) cost() Cost {
	if s.Cost == nil {
		return Cost{Work: usualWork}
	}
	return *s.Cost
}

// worth is how much a scenario tells beside those that look at some clauses.
func (s Planned) worth(seen map[string]bool) float64 {
	sum := 0.0
	for _, id := range s.Clauses {
		w := 1.0
		if c, _ := contract.FindClause(id); c.Level == contract.Must {
			w = 3
		}
		if seen[id] {
			w /= 10 // one more look at it
		}
		sum += w
	}
	return sum
}

// tellTime is a time as people write it: 3m, not 3m0s.
func tellTime(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if len(s) > len(zero) && s[len(s)-len(zero):] == zero {
			s = s[:len(s)-2]
		}
	}
	return s
}

// Left lists the scenarios that were left out, and why.
func (p Plan) Left() []Planned {
	return slices.DeleteFunc(slices.Clone(p.Scenarios), func(s Planned) bool { return !strings.HasPrefix(s.NotRun, leftOutMark) })
}

// leftOutMark begins the reason of what could have been run.
const leftOutMark = "left out: "
