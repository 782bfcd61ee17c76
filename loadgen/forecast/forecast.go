// Package forecast says what a scenario is going to be before a request is sent:
// how much of what is planned when, and what an exact limiter would make of it.
//
// Most callers give [Run] the members of a cast and a [Limiter]. It walks the one
// timeline of all requests in virtual time, decides each at the instant at which
// it is due, and lets every member react to a 429 as they would, so that a request
// that they hold off is not decided. It assumes that nothing is late, that every
// answer takes the same time, and that every bucket is full at the start. Memory
// grows with users, not with requests.
package forecast

import (
	"context"
	"slices"
	"time"

	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/loadgen/arrival"
	"github.com/invoicespec/brimline/loadgen/manners"
	"github.com/invoicespec/brimline/loadgen/traffic"
)

// Outcome is what becomes of a request.
type Outcome uint8

// The outcomes.
const (
	Admitted Outcome = iota
	RateRejected
	ConcurrencyRejected
)

// Bucket decides one request at an instant, while others of the same user are in
// flight, and says how long a client is told to wait. Instants do not descend.
type Bucket func(at time.Duration, inFlight int64) (Outcome, time.Duration)

// Limiter makes the full bucket of a user with an allowance.
type Limiter func(oracle.Allowance) Bucket

// Question is what to look ahead at.
type Question struct {
	Members  []traffic.Member // cast; they need no keys
	Duration time.Duration
	Seed     int64
	Limiter  Limiter
	Latency  time.Duration // that every answer takes, but those of slow operations
	Slow     time.Duration // that those take on top
}

// Count is what is expected of a number of requests.
type Count struct {
	Planned             int64
	Strangers           int64 // of them, without a good key: no user's bucket is asked
	HeldOff             int64
	Admitted            int64
	RejectedRate        int64
	RejectedConcurrency int64
	Peak                int64 // requests planned for one second, wherever it begins
}

// Plan is a forecast: for everybody, for each population, and for each plan in
// the order of the members.
type Plan struct {
	All         Count
	Populations []Count
	Plans       []OfPlan
}

// OfPlan is the forecast for a plan's users.
type OfPlan struct {
	Plan string
	Count
}

// user is what the walk knows of one user.
type user struct {
	bucket   Bucket
	manners  manners.User
	inFlight []time.Duration // when each of them is answered, soonest first
	waiting  []answer        // for answers that matter to the manners, soonest first
}

// answer is a decision that the user does not know of yet.
type answer struct {
	sent, done, named time.Duration
	refused           bool
}

// Run looks ahead. It stops early, with the context's error, when that is done.
func Run(ctx context.Context, q Question) (Plan, error) {
	plan := Plan{}
	places := map[string]int{} // of plans
	for _, m := range q.Members {
		if _, ok := places[m.Plan]; !ok {
			places[m.Plan] = len(plan.Plans)
			plan.Plans = append(plan.Plans, OfPlan{Plan: m.Plan})
		}
		for len(plan.Populations) <= m.Population {
			plan.Populations = append(plan.Populations, Count{})
		}
	}
	users := make([]user, len(q.Members))
	perPopulation, perPlan := make([]window, len(plan.Populations)), make([]window, len(plan.Plans))
	var err error
	plan.All.Peak, err = walk(ctx, q.Members, q.Duration, q.Seed, func(r arrival.Request) {
		m := &q.Members[r.User]
		one := q.decide(m, &users[r.User], r)
		one.Planned = 1
		at := places[m.Plan]
		plan.All.add(one, plan.All.Peak)
		plan.Populations[m.Population].add(one, perPopulation[m.Population].add(r.Due))
		plan.Plans[at].add(one, perPlan[at].add(r.Due))
	})
	return plan, err
}

// Peak is how many requests are planned for one second, wherever it begins.
func Peak(ctx context.Context, members []traffic.Member, d time.Duration, seed int64) (int64, error) {
	return walk(ctx, members, d, seed, func(arrival.Request) {})
}

// walk visits every request in the order of their due times, and says how many
// there are in one second at most.
func walk(ctx context.Context, members []traffic.Member, d time.Duration, seed int64, visit func(arrival.Request)) (peak int64, err error) {
	schedules := make([]*arrival.Schedule, len(members))
	for i, m := range members {
		schedules[i] = m.Process.Schedule(seed, m.Name)
	}
	timeline, all := arrival.NewTimeline(schedules, d), window{}
	for n := 0; ; n++ {
		if n%65536 == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		r, ok := timeline.Next()
		if !ok {
			return peak, nil
		}
		peak = max(peak, all.add(r.Due))
		visit(r)
	}
}

// decide is what becomes of one request.
func (q Question) decide(m *traffic.Member, u *user, r arrival.Request) (c Count) {
	u.learn(m, q.Seed, r.Due)
	if u.manners.Holds(r.Due) {
		return Count{HeldOff: 1}
	}
	operation := m.Operation(r.Number)
	if operation == traffic.Unauthenticated {
		return Count{Strangers: 1}
	}
	if u.bucket == nil {
		u.bucket = q.Limiter(m.Allowance)
	}
	over, _ := slices.BinarySearch(u.inFlight, r.Due+1)
	u.inFlight = u.inFlight[:copy(u.inFlight, u.inFlight[over:])]
	done := r.Due + q.Latency
	outcome, named := u.bucket(r.Due, int64(len(u.inFlight)))
	switch outcome {
	case Admitted:
		c.Admitted = 1
		if operation == traffic.Slow {
			done += q.Slow
		}
		at, _ := slices.BinarySearch(u.inFlight, done)
		u.inFlight = slices.Insert(u.inFlight, at, done)
	case RateRejected:
		c.RejectedRate = 1
	case ConcurrencyRejected:
		c.RejectedConcurrency = 1
	}
	if m.On429 != manners.Ignore() {
		u.expect(answer{r.Due, done, named, outcome != Admitted})
	}
	return c
}

// expect notes an answer that will come.
func (u *user) expect(a answer) {
	at := len(u.waiting)
	for ; at > 0 && u.waiting[at-1].done > a.done; at-- { // seldom far
	}
	u.waiting = slices.Insert(u.waiting, at, a)
}

// learn tells the user of all that has been answered by now.
func (u *user) learn(m *traffic.Member, seed int64, now time.Duration) {
	n := 0
	for ; n < len(u.waiting) && u.waiting[n].done <= now; n++ {
		if a := u.waiting[n]; a.refused {
			m.On429.Refused(&u.manners, manners.Dice(seed, m.Name), a.sent, a.done, a.named)
		} else {
			m.On429.Passed(&u.manners, a.sent)
		}
	}
	u.waiting = u.waiting[:copy(u.waiting, u.waiting[n:])]
}

// add is c with what became of one more request, and a second with so many in it.
func (c *Count) add(o Count, second int64) {
	c.Planned += o.Planned
	c.Strangers += o.Strangers
	c.HeldOff += o.HeldOff
	c.Admitted += o.Admitted
	c.RejectedRate += o.RejectedRate
	c.RejectedConcurrency += o.RejectedConcurrency
	c.Peak = max(c.Peak, second)
}

// Rejected is which share of the requests that a user's bucket is asked for is
// expected to be refused: for lack of a token, and for lack of a place.
func (c Count) Rejected() (rate, concurrency float64) {
	asked := float64(max(1, c.Admitted+c.RejectedRate+c.RejectedConcurrency))
	return float64(c.RejectedRate) / asked, float64(c.RejectedConcurrency) / asked
}

// window counts requests of the second that ends now.
type window struct {
	times []time.Duration // a ring
	first int
	n     int
}

// add is how many there are with one more.
func (w *window) add(at time.Duration) int64 {
	for w.n > 0 && w.times[w.first] <= at-time.Second {
		w.first = (w.first + 1) % len(w.times)
		w.n--
	}
	if w.n == len(w.times) {
		longer := make([]time.Duration, max(16, 2*w.n))
		for i := range w.n {
			longer[i] = w.times[(w.first+i)%len(w.times)]
		}
		w.times, w.first = longer, 0
	}
	w.times[(w.first+w.n)%len(w.times)] = at
	w.n++
	return int64(w.n)
}
