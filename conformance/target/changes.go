package target

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/oracle"
)

// ErrTorn: what a user may do changed by itself somewhere between a request and
// its answer, so that nobody can say under which allowance it was decided.
var ErrTorn = errors.New("the allowance changed while the request was on its way")

// changes is what was changed about a user: the oracle follows it, and it has to
// be put back.
type changes struct {
	plan      string // in force; empty: the user's own
	next      string // takes over at boundary; empty: none
	boundary  moment
	overrides map[Dimension]override
	engine    bool
	broken    bool // entitlements are not the plan's
	spoiled   bool // something that cannot be put back
}

// override is one that was set and not ended. A broken one has no value.
type override struct {
	value int64
	ends  moment
}

func (c *changes) override(d Dimension, o override) {
	if c.overrides == nil {
		c.overrides = map[Dimension]override{}
	}
	c.overrides[d] = o
}

// moment is where on our timeline an instant of the target's clock lies: not
// before from, not after to. The zero value never comes.
type moment struct {
	from, to int64
	comes    bool
}

func (m moment) hasCome(instant int64) bool { return m.comes && m.to <= instant }

// mayHaveCome reports whether the moment may have come by an instant.
func (m moment) mayHaveCome(instant int64) bool { return m.comes && m.from <= instant }

// moment reads the target's clock to find a date on our timeline.
func (t *Target) moment(ctx context.Context, date time.Time) (moment, error) {
	before := t.time.atLeast()
	now, err := t.Now(ctx)
	if err != nil {
		return moment{}, err
	}
	after := t.time.atMost()
	left := date.Sub(now)
	whole := int64(left / time.Microsecond)
	if left < 0 {
		whole--
	}
	return moment{from: before + whole, to: after + micros(left), comes: true}, nil
}

// expiry is the moment of a date; a zero date never comes.
func (t *Target) expiry(ctx context.Context, date time.Time) (moment, error) {
	if date.IsZero() {
		return moment{}, nil
	}
	return t.moment(ctx, date)
}

// dateText is a date as the control protocol wants it; empty for a zero one.
func dateText(date time.Time) string {
	if date.IsZero() {
		return ""
	}
	return date.UTC().Format(time.RFC3339Nano)
}

// effective is what u may do with its changes.
func (t *Target) effective(u *User) (oracle.Allowance, bool) {
	plan := u.Plan
	if u.changes.plan != "" {
		plan = u.changes.plan
	}
	a, ok := t.Allowance(plan)
	for d, o := range u.changes.overrides {
		if o.value != 0 {
			*d.in(&a) = o.value
		}
	}
	return a, ok
}

// follow tells u's oracle what it may do from the next request on.
func (t *Target) follow(u *User) {
	if a, ok := t.effective(u); ok && a != u.Bucket.Allowance() {
		u.Bucket.Change(a)
	}
}

// catchUp is CatchUp for an instant.
func (t *Target) catchUp(u *User, instant int64) {
	c := &u.changes
	for d, o := range c.overrides {
		if o.ends.hasCome(instant) {
			delete(c.overrides, d)
		}
	}
	if c.next != "" && c.boundary.hasCome(instant) {
		c.plan, c.next = c.next, ""
	}
	t.follow(u)
}

// CatchUp takes in what has certainly changed about u by itself until now. Sending
// a request does so too.
func (t *Target) CatchUp(u *User) {
	u.changing.Lock()
	defer u.changing.Unlock()
	t.catchUp(u, t.time.atLeast())
}

// torn reports whether something may have changed by itself before the end of a
// span that it had not certainly changed at the beginning of. The bucket is a
// mystery then.
func (t *Target) torn(u *User, s oracle.Span) bool {
	c := u.changes
	last := s.To
	found := false
	look := func(m moment) {
		if m.mayHaveCome(s.To) {
			found, last = true, max(last, m.to)
		}
	}
	for _, o := range c.overrides {
		look(o.ends)
	}
	if c.next != "" {
		look(c.boundary)
	}
	if found {
		t.catchUp(u, last)
		u.Bucket.Lose(s)
	}
	return found
}

// SchedulePlan lets another plan take over at the end of u's billing period, and
// returns that boundary. The oracle follows where the clock can be read.
func (t *Target) SchedulePlan(ctx context.Context, u *User, plan string) (time.Time, error) {
	if _, ok := t.Allowance(plan); !ok {
		return time.Time{}, fmt.Errorf("plan %q has no allowance", plan)
	}
	u.changes.spoiled = true // what is scheduled cannot be taken back
	if err := t.set(ctx, ofUser(schedulePlan, u.ID).saying(control.Plan{Plan: plan})); err != nil {
		return time.Time{}, err
	}
	p, err := t.Period(ctx, u)
	if err != nil {
		return time.Time{}, err
	}
	if p.Scheduled != plan {
		return time.Time{}, fmt.Errorf("control: plan %q was scheduled, and %q takes over", plan, p.Scheduled)
	}
	boundary, err := time.Parse(time.RFC3339Nano, p.End)
	if err != nil {
		return time.Time{}, fmt.Errorf("control: the end of a billing period: %w", err)
	}
	switch {
	case t.behind.has(control.FeatureClock):
		if u.changes.boundary, err = t.moment(ctx, boundary); err != nil {
			return time.Time{}, err
		}
	case time.Until(boundary) < distant:
		return time.Time{}, fmt.Errorf("%w: a clock to see the boundary at %s on", ErrUnsupported, p.End)
	}
	u.changes.next = plan
	return boundary, nil
}

// distant is how far a boundary has to be ahead where nobody can see whether it
// has come.
const distant = time.Hour

// Period is u's billing period.
func (t *Target) Period(ctx context.Context, u *User) (control.Period, error) {
	var p control.Period
	err := t.ask(ctx, ofUser(readPeriod, u.ID), &p)
	return p, err
}

// EndPeriod ends u's billing period now, so that a scheduled plan takes over.
func (t *Target) EndPeriod(ctx context.Context, u *User) (control.Period, error) {
	var p control.Period
	u.changes.spoiled = true
	if err := t.ask(ctx, ofUser(endPeriod, u.ID), &p); err != nil {
		return p, err
	}
	if u.changes.next != "" {
		u.changes.plan, u.changes.next = u.changes.next, ""
	}
	u.changes.boundary = moment{}
	t.follow(u)
	return p, nil
}

// Until is how long to wait for the next thing about u that changes by itself:
// no longer than before for it to be certainly still to come, at least after for
// it to have certainly happened. False: nothing is to come.
func (t *Target) Until(u *User) (before, after time.Duration, ok bool) {
	var next moment
	look := func(m moment) {
		if m.comes && (!next.comes || m.from < next.from) {
			next = m
		}
	}
	for _, o := range u.changes.overrides {
		look(o.ends)
	}
	if u.changes.next != "" {
		look(u.changes.boundary)
	}
	margin := 5 * time.Second // for some requests to be sent in
	if t.time.mode == control.ClockFrozen {
		margin = time.Microsecond
	}
	before = time.Duration(next.from-t.time.atMost())*time.Microsecond - margin
	return before, time.Duration(next.to-t.time.atLeast()) * time.Microsecond, next.comes
}
