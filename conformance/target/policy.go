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

// changes is what was changed about a user and has to be put back.
type changes struct {
	plan      string // in force; empty: the user's own
	overrides map[Dimension]int64
	engine    bool
	spoiled   bool // something that cannot be put back
}

// effective is what u may do with its changes.
func (t *Target) effective(u *User) (oracle.Allowance, bool) {
	plan := u.Plan
	if u.changes.plan != "" {
		plan = u.changes.plan
	}
	a, ok := t.Allowance(plan)
	for d, value := range u.changes.overrides {
		switch d {
		case RequestsPerMinute:
			a.RequestsPerMinute = value
		case Burst:
			a.Burst = value
		case Concurrency:
			a.Concurrency = value
		}
	}
	return a, ok
}

// change tells u's oracle what it may do from the next request on.
func (t *Target) change(u *User) {
	if a, ok := t.effective(u); ok && a != u.Bucket.Allowance() {
		u.Bucket.Change(a)
	}
}

// SetPlan puts u on another plan and its bucket's oracle along with it.
func (t *Target) SetPlan(ctx context.Context, u *User, plan string) error {
	if _, ok := t.Allowance(plan); !ok {
		return fmt.Errorf("plan %q has no allowance", plan)
	}
	if err := t.set(ctx, u, control.FeaturePlan, put, control.Plan{Plan: plan}, "plan"); err != nil {
		return err
	}
	u.changes.plan = plan
	t.change(u)
	return nil
}

// SetOverride sets one dimension for u; a zero time never expires. The oracle
// takes it for in force until EndOverride.
func (t *Target) SetOverride(ctx context.Context, u *User, d Dimension, value int64, expires time.Time) error {
	o := control.Override{Value: value}
	if !expires.IsZero() {
		o.Expires = expires.UTC().Format(time.RFC3339Nano)
	}
	if err := t.set(ctx, u, control.FeatureOverrides, put, o, "overrides", string(d)); err != nil {
		return err
	}
	if u.changes.overrides == nil {
		u.changes.overrides = map[Dimension]int64{}
	}
	u.changes.overrides[d] = value
	t.change(u)
	return nil
}

// EndOverride ends the override of a dimension.
func (t *Target) EndOverride(ctx context.Context, u *User, d Dimension) error {
	if err := t.set(ctx, u, control.FeatureOverrides, remove, nil, "overrides", string(d)); err != nil {
		return err
	}
	delete(u.changes.overrides, d)
	t.change(u)
	return nil
}

// SetOperations says how many operations u has left.
func (t *Target) SetOperations(ctx context.Context, u *User, remaining int64) error {
	u.changes.spoiled = true // nobody tells how many there were
	return t.set(ctx, u, control.FeatureOperations, put, control.Operations{Remaining: remaining}, "operations")
}

// SetEngine says how the engine treats u's calls.
func (t *Target) SetEngine(ctx context.Context, u *User, b control.Behaviour) error {
	u.changes.engine = true
	return t.set(ctx, u, control.FeatureEngine, put, control.Engine{Behaviour: b}, "engine")
}

// AddKey gives u one more key.
func (t *Target) AddKey(ctx context.Context, u *User) error {
	if err := t.feature(control.FeatureUsers); err != nil {
		return err
	}
	var k control.Key
	if err := t.control.call(ctx, post, ofUser(u.ID, "keys"), nil, &k); err != nil {
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
	return t.control.call(ctx, post, ofUser(u.ID, "keys", "revoke"), control.Key{Key: u.keys[key].Reveal()}, nil)
}

// set changes something about a user.
func (t *Target) set(ctx context.Context, u *User, f control.Feature, method string, body any, path ...string) error {
	if err := t.feature(f); err != nil {
		return err
	}
	return t.control.call(ctx, method, ofUser(u.ID, path...), body, nil)
}

// putBack undoes what was changed about a user of the keys file.
func (t *Target) putBack(ctx context.Context, u *User) error {
	var errs []error
	if u.changes.engine {
		errs = append(errs, t.SetEngine(ctx, u, control.EngineOK))
		u.changes.engine = false
	}
	for _, d := range []Dimension{RequestsPerMinute, Burst, Concurrency} {
		if _, ok := u.changes.overrides[d]; ok {
			errs = append(errs, t.EndOverride(ctx, u, d))
		}
	}
	if u.changes.plan != "" && u.changes.plan != u.Plan {
		errs = append(errs, t.SetPlan(ctx, u, u.Plan))
	}
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool { return err == nil })...)
}
