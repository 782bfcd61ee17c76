package replay

import (
	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reports/roster"
	"github.com/invoicespec/brimline/reports/timeline"
)

// desk decides the attempts of one worker's users as the limiter would have with
// a given allowance on each plan: changes of plan carry tokens over in
// proportion, overrides hold while they are in force, a restart fills every
// bucket and forgets what is in flight. Whatever else is asked of an attempt is
// done by its instruments.
type desk struct {
	roster      *roster.Roster
	limits      []limit // by plan; zero: unknown, and nothing is decided
	durations   bool
	users       []standing
	workers     int32
	instruments []instrument
	visit       visit // of the attempt that is being decided
}

// instrument takes attempts of one worker's users in order of time.
type instrument interface{ take(v *visit) }

// standing is one user at a desk.
type standing struct {
	state    bucket.State
	flying   inFlight
	phase    int32
	restarts int32 // that are over
	seen     bool
	limit    limit
}

// visit is an attempt with what it finds at the desk.
type visit struct {
	*timeline.Attempt
	user, local int // the latter among the worker's users
	plan        int
	override    bool
	fresh       bool         // nothing was spent before: first seen, or the first after a restart
	moved       bool         // the first in a phase
	restarts    int          // that are over
	before      bucket.State // what there was of the bucket; never seen where fresh
	flying      *inFlight    // before this attempt
	decision    admission.Decision
	limit       limit
}

func newDesk(t Traffic, limits []limit, instruments ...instrument) *desk {
	n := workers()
	return &desk{
		roster: t.Roster, limits: limits, durations: t.Durations, workers: int32(n),
		users: make([]standing, (t.Roster.Users+n-1)/n), instruments: instruments,
	}
}

// take decides one attempt and shows it to every instrument.
func (d *desk) take(user int32, a *timeline.Attempt) {
	local := user / d.workers
	u, phases := &d.users[local], d.roster.Phases[user]
	v := &d.visit // one for all, since each would be allocated
	*v = visit{Attempt: a, user: int(user), local: int(local), fresh: !u.seen, moved: !u.seen}
	for int(u.restarts) < len(d.roster.Restarts) && d.roster.Restarts[u.restarts] <= a.At {
		u.restarts++
		v.fresh = true
	}
	for int(u.phase)+1 < len(phases) && phases[u.phase+1].From <= a.At {
		u.phase++
		v.moved = true
	}
	phase := &phases[u.phase]
	if v.moved {
		u.limit = d.limits[phase.Plan]
		if phase.Override != nil {
			u.limit, _ = newLimit(*phase.Override) // in range, as the roster is read
		}
	}
	u.seen = true
	if v.fresh {
		u.state, u.flying = bucket.State{}, inFlight{}
	}
	v.plan, v.override, v.limit = phase.Plan, phase.Override != nil, u.limit
	v.restarts = int(u.restarts)
	v.before, v.flying = u.state, &u.flying
	if u.limit.IsZero() {
		d.show(v)
		return
	}
	var state bucket.State
	state, v.decision = admission.Decide(u.state, u.flying.at(a.At), u.limit.Allowance, bucket.Instant(a.At))
	d.show(v)
	u.state = state
	if d.durations && v.decision.Outcome == admission.Admitted {
		u.flying.add(a.At, a.Hold)
	}
}

func (d *desk) show(v *visit) {
	for _, i := range d.instruments {
		i.take(v)
	}
}

// keptOnly leaves out what was refused at the time.
func keptOnly(take taker) taker {
	return func(user int32, a *timeline.Attempt) {
		if !a.Refused() {
			take(user, a)
		}
	}
}

// retryAfter is what a rejection tells its client to wait, in microseconds:
// whole seconds until a token is there, rounded up and at least one; one second
// where every place was taken (HDR-5, CONC-2).
func retryAfter(d admission.Decision) int64 {
	if d.Outcome == admission.ConcurrencyRejected {
		return second
	}
	return max(1, (d.ToToken+second-1)/second) * second
}

// hour is an hour's worth of burst at a's rate, or as much as there can be.
func hour(a policy.Allowance) policy.Allowance {
	burst := max(a.Burst(), min(60*a.RequestsPerMinute(), policy.Burst.Max()))
	wide, _ := policy.NewAllowance(a.RequestsPerMinute(), burst, a.Concurrency()) // in range as a is
	return wide
}

// ledger keeps something for each of a worker's users on each plan.
type ledger[T any] struct{ rows [][]*T }

func newLedger[T any](plans, users int) ledger[T] {
	l := ledger[T]{rows: make([][]*T, plans)}
	for i := range l.rows {
		l.rows[i] = make([]*T, users)
	}
	return l
}

// at is the row of a visit, and whether it is a new one.
func (l ledger[T]) at(v *visit) (row *T, fresh bool) {
	row = l.rows[v.plan][v.local]
	if row == nil {
		row, fresh = new(T), true
		l.rows[v.plan][v.local] = row
	}
	return row, fresh
}
