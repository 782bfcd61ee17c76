package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/oracle"
)

// Dimension is one of the three numbers of an allowance, by the name that the
// control protocol uses.
type Dimension string

// The dimensions.
const (
	RequestsPerMinute Dimension = "requests-per-minute"
	Burst             Dimension = "burst"
	Concurrency       Dimension = "concurrency"
)

// Dimensions lists all three.
func Dimensions() []Dimension { return []Dimension{RequestsPerMinute, Burst, Concurrency} }

// Most is the largest value that the contract allows in a dimension; the
// smallest is 1 in each.
func (d Dimension) Most() int64 {
	if d == Concurrency {
		return mostConcurrency
	}
	return mostTokens
}

// Of is the dimension's number in an allowance.
func (d Dimension) Of(a oracle.Allowance) int64 { return *d.in(&a) }

func (d Dimension) in(a *oracle.Allowance) *int64 {
	switch d {
	case Burst:
		return &a.Burst
	case Concurrency:
		return &a.Concurrency
	}
	return &a.RequestsPerMinute
}

// Override is an override as an operator writes it.
type Override struct {
	Value          int64
	Expires        time.Time // first instant at which it no longer holds; zero: never
	Reason, Author string
}

// SetPlan puts u on another plan and its bucket's oracle along with it.
func (t *Target) SetPlan(ctx context.Context, u *User, plan string) error {
	if _, ok := t.Allowance(plan); !ok {
		return fmt.Errorf("plan %q has no allowance", plan)
	}
	if err := t.set(ctx, ofUser(setPlan, u.ID).saying(control.Plan{Plan: plan})); err != nil {
		return err
	}
	u.changes.plan = plan
	t.follow(u)
	return nil
}

// SetOverride sets one dimension for u. The oracle takes it for in force until it
// is ended, or until it expires, for which the target's clock has to be readable.
func (t *Target) SetOverride(ctx context.Context, u *User, d Dimension, o Override) error {
	ends, err := t.expiry(ctx, o.Expires)
	if err != nil {
		return err
	}
	body := control.Override{Value: o.Value, Expires: dateText(o.Expires), Reason: o.Reason, Author: o.Author}
	if err := t.set(ctx, ofDimension(setOverride, u, d).saying(body)); err != nil {
		return err
	}
	u.changes.override(d, override{value: o.Value, ends: ends})
	t.follow(u)
	return nil
}

// WriteOverride tries to write any JSON value as an override, which the operator
// boundary must refuse: the error is its [*ControlError] then. Where there is
// none the value was taken, and nothing is known of the user any more.
func (t *Target) WriteOverride(ctx context.Context, u *User, d Dimension, value any) error {
	err := t.set(ctx, ofDimension(setOverride, u, d).saying(control.Override{Value: value}))
	u.changes.spoiled = u.changes.spoiled || err == nil
	return err
}

// EndOverride ends the override of a dimension.
func (t *Target) EndOverride(ctx context.Context, u *User, d Dimension) error {
	if err := t.set(ctx, ofDimension(endOverride, u, d)); err != nil {
		return err
	}
	delete(u.changes.overrides, d)
	t.follow(u)
	return nil
}

// History is every override that u ever had, the oldest first.
func (t *Target) History(ctx context.Context, u *User) ([]control.PastOverride, error) {
	var h control.History
	err := t.ask(ctx, ofUser(readOverrides, u.ID), &h)
	return h.Entries, err
}

// SetOperations says how many operations u has left.
func (t *Target) SetOperations(ctx context.Context, u *User, remaining int64) error {
	u.changes.spoiled = true // it had another number, and has used some since
	return t.set(ctx, ofUser(setOperations, u.ID).saying(control.Operations{Remaining: remaining}))
}

// Usage is the operations that u has left and used.
func (t *Target) Usage(ctx context.Context, u *User) (control.Usage, error) {
	var usage control.Usage
	err := t.ask(ctx, ofUser(readOperations, u.ID), &usage)
	return usage, err
}

// SetEngine says how the engine treats u's calls.
func (t *Target) SetEngine(ctx context.Context, u *User, b control.Behaviour) error {
	u.changes.engine = true
	return t.set(ctx, ofUser(setEngine, u.ID).saying(control.Engine{Behaviour: b}))
}

// AddKey gives u one more key.
func (t *Target) AddKey(ctx context.Context, u *User) error {
	var k control.Key
	if err := t.ask(ctx, ofUser(addKey, u.ID), &k); err != nil {
		return err
	}
	if k.Key == "" {
		return errors.New("control: a new key is empty")
	}
	u.addKey(t, NewSecret(k.Key))
	return nil
}

// RevokeKey revokes one of u's keys; it keeps its number, so that it can still be
// sent.
func (t *Target) RevokeKey(ctx context.Context, u *User, key int) error {
	if err := t.feature(control.FeatureUsers); err != nil {
		return err
	}
	if key < 0 || key >= len(u.keys) {
		return fmt.Errorf("%w: %d", errNoKey, key)
	}
	u.changes.spoiled = true // a revoked key stays revoked
	return t.set(ctx, ofUser(revokeKey, u.ID).saying(control.Key{Key: u.keys[key].Reveal()}))
}

func ofDimension(a action, u *User, d Dimension) call {
	return ofUser(a, u.ID).with("dimension", string(d))
}

// set changes something.
func (t *Target) set(ctx context.Context, c call) error { return t.ask(ctx, c, nil) }

// ask carries out an action and stores its answer.
func (t *Target) ask(ctx context.Context, c call, answer any) error {
	r, _ := routeOf(c.action)
	if err := t.feature(r.feature); err != nil {
		return err
	}
	return t.behind.do(ctx, c, answer)
}

// putBack undoes what was changed about a user of the keys file.
func (t *Target) putBack(ctx context.Context, u *User) error {
	var errs []error
	if u.changes.engine {
		errs = append(errs, t.SetEngine(ctx, u, control.EngineOK))
		u.changes.engine = false
	}
	if u.changes.broken {
		errs = append(errs, t.MendEntitlements(ctx, u))
	}
	for _, d := range Dimensions() {
		if _, ok := u.changes.overrides[d]; ok {
			errs = append(errs, t.EndOverride(ctx, u, d))
		}
	}
	if u.changes.plan != "" && u.changes.plan != u.Plan {
		errs = append(errs, t.SetPlan(ctx, u, u.Plan))
	}
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return err == nil })...)
}
