package replay

import (
	"cmp"
	"slices"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reports/record"
)

// closedLoop replays the attempts as if every client obeyed Retry-After: a
// rejected request is sent again the moment it has run out, whole seconds later,
// and what the user wants to send meanwhile waits behind it in order. Who leaves
// the plan with requests waiting still has them decided by it.
type closedLoop struct {
	grids    []*grid
	restarts []int64
	rows     ledger[clients]
	delays   [][]spread // by plan and allowance, of requests that had to wait
}

// clients is one user's client on one plan, under each allowance.
type clients []client

// The most that one client has waiting, and the most times that it sends one
// request; what goes beyond is given up.
const (
	maxWaiting  = 100_000
	maxSendings = 10_000
)

// client sends requests one after another, each until it is admitted.
type client struct {
	limit    limit
	state    bucket.State
	flying   inFlight
	restarts int      // that are over
	waiting  []wanted // from head on
	head     int
	due      int64 // when the first of those waiting is sent next
	tries    int
	sendings int64
	rejected int64
	prompt   int64 // admitted when they were wanted
	unserved int64
	late     *spread
}

// wanted is a request that its user wants to send.
type wanted struct{ at, hold int64 }

func newClosedLoop(t Traffic, grids []*grid) *closedLoop {
	n := workers()
	l := &closedLoop{grids: grids, restarts: t.Roster.Restarts, rows: newLedger[clients](len(grids), (t.Roster.Users+n-1)/n)}
	for _, g := range grids {
		delays := make([]spread, len(g.closed))
		for i := range delays {
			delays[i] = spread{}
		}
		l.delays = append(l.delays, delays)
	}
	return l
}

func (l *closedLoop) take(v *visit) {
	g := l.grids[v.plan]
	if v.override || len(g.closed) == 0 {
		return
	}
	row, fresh := l.rows.at(v)
	if fresh {
		*row = make(clients, len(g.closed))
	}
	for i := range *row {
		c := &(*row)[i]
		if fresh {
			c.limit, c.late = g.closed[i], &l.delays[v.plan][i]
		}
		c.until(v.At, l.restarts)
		if v.moved && c.left() == 0 {
			c.state, c.flying, c.restarts = v.before, v.flying.copy(), v.restarts
		}
		c.want(wanted{v.At, v.Hold}, l.restarts)
	}
}

// left is how many wait.
func (c *client) left() int { return len(c.waiting) - c.head }

// want is a request that is sent at once unless others wait.
func (c *client) want(w wanted, restarts []int64) {
	if c.left() >= maxWaiting {
		c.unserved++
		return
	}
	if c.head > 0 && c.head == len(c.waiting) || c.head > maxWaiting {
		c.waiting = c.waiting[:copy(c.waiting, c.waiting[c.head:])]
		c.head = 0
	}
	c.waiting = append(c.waiting, w)
	if c.left() == 1 {
		c.due, c.tries = w.at, 0
		c.until(w.at, restarts)
	}
}

// until sends whatever is due at or before an instant.
func (c *client) until(t int64, restarts []int64) {
	for c.left() > 0 && c.due <= t {
		for c.restarts < len(restarts) && restarts[c.restarts] <= c.due {
			c.state, c.flying = bucket.State{}, inFlight{}
			c.restarts++
		}
		w := c.waiting[c.head]
		state, d := admission.Decide(c.state, c.flying.at(c.due), c.limit.Allowance, bucket.Instant(c.due))
		c.state = state
		c.sendings++
		if d.Outcome != admission.Admitted {
			c.rejected++
			c.due += retryAfter(d)
			if c.tries++; c.tries == maxSendings {
				c.unserved++
				c.next()
			}
			continue
		}
		c.flying.add(c.due, w.hold)
		if delay := since(w.at, c.due); delay > 0 {
			c.late.add(thousandths(delay))
		} else {
			c.prompt++
		}
		c.next()
	}
}

// next is the turn of the request behind.
func (c *client) next() { c.head, c.tries = c.head+1, 0 }

// thousandths rounds a delay up to milliseconds and, from ten seconds on, to
// seconds, so that there are not many different ones.
func thousandths(micros int64) int64 {
	const milli = 1_000
	if micros >= 10*second {
		return (micros + second - 1) / second * 1_000
	}
	return (micros + milli - 1) / milli
}

// loopSum adds up the clients of a plan under one allowance.
type loopSum struct {
	sum    record.ReportClosed
	delays spread
}

// addClosed ends the clients of a user at the end of the log.
func (s *planSums) addClosed(row *clients, last int64, restarts []int64) {
	for i := range *row {
		c, sum := &(*row)[i], &s.loops[i].sum
		c.until(last, restarts)
		sum.Sendings += c.sendings
		sum.Rejected += c.rejected
		sum.Unserved += c.unserved + int64(c.left())
		if c.rejected > 0 {
			sum.UsersAffected++
		}
		s.loops[i].delays[0] += c.prompt
	}
}

// addDelays adds those of a worker's clients, once all have ended.
func (s *planSums) addDelays(late []spread) {
	for i := range late {
		s.loops[i].delays.merge(late[i])
	}
}

func (s loopSum) closed(a record.ReportAllowance) record.ReportClosed {
	r := s.sum
	r.Rate, r.Burst, r.Concurrency, r.Delay = a.RequestsPerMinute, a.Burst, a.Concurrency, s.delays.quart(1_000)
	return r
}

func sortUsers(list []UserCounts) {
	slices.SortFunc(list, func(a, b UserCounts) int { return cmp.Compare(a.User, b.User) })
}
