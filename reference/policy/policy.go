// Package policy says what a user is entitled to at an instant: plans and their
// entitlements, subscriptions with a scheduled change, overrides with an
// expiry. [Resolve] turns them into an [Allowance], three positive numbers in
// range, or fails with a [ConfigurationError]; it never falls back to another
// plan and never to "unlimited" (PLAN-1, PLAN-2, OVR-1 to OVR-5, CFG-1 to
// CFG-5).
//
// Values are kept as the text they were stored as, since a store can hold
// broken ones and the contract says what happens then.
package policy

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Plan is a named set of entitlements. Several may have one name: a store tells
// them apart by an id.
type Plan struct {
	Name         string
	Entitlements map[Dimension]string // as stored; see [Resolve] for what is well-formed
	Operations   int64                // paid operations per billing period
}

// Subscription says which plan is in force, and which follows at a boundary, by
// the ids of plans.
type Subscription struct {
	Plan      string
	Scheduled string    // the plan from Boundary on; empty: none
	Boundary  time.Time // the billing-period boundary at which Scheduled takes over
}

// PlanAt is the id of the plan in force at now: the scheduled one from the
// boundary on, not an instant earlier (PLAN-2).
func (s Subscription) PlanAt(now time.Time) string {
	if s.Scheduled != "" && !now.Before(s.Boundary) {
		return s.Scheduled
	}
	return s.Plan
}

// Override replaces one dimension for one user until it expires.
type Override struct {
	Dimension Dimension
	Value     string    // as stored
	Expires   time.Time // first instant at which it no longer holds; zero: never
}

// ActiveAt reports whether o holds at now.
func (o Override) ActiveAt(now time.Time) bool { return o.Expires.IsZero() || now.Before(o.Expires) }

// Reason says why a policy could not be resolved; the two values are the
// contract's own metric labels.
type Reason string

// The reasons of a configuration failure.
const (
	Missing   Reason = "missing"
	Malformed Reason = "malformed"
)

// ConfigurationError is a policy that cannot be resolved: a failure of the
// platform, answered with a 503 and never with somebody else's limits.
type ConfigurationError struct {
	Reason    Reason
	Plan      string
	Dimension Dimension // empty when the plan itself is unknown
	Override  bool      // Value is an active override's, not the plan's
	Value     string    // the offending text, if any
}

func (e *ConfigurationError) Error() string {
	switch {
	case e.Reason == Missing && e.Dimension == "":
		return fmt.Sprintf("plan %q does not exist", e.Plan)
	case e.Reason == Missing:
		return fmt.Sprintf("plan %q has no entitlement %s", e.Plan, e.Dimension)
	case e.Override:
		return "override: " + refuse(e.Dimension, e.Value).Error()
	}
	return fmt.Sprintf("plan %q: %v", e.Plan, refuse(e.Dimension, e.Value))
}

// Effective is a resolved policy.
type Effective struct {
	Plan       string
	Allowance  Allowance
	Negotiated map[Dimension]bool // dimensions that an active override set; nil: none
	ValidUntil time.Time          // first instant at which the answer may differ by itself; zero: never
}

var wellFormed = regexp.MustCompile(`^[1-9][0-9]*$`)

// ParseValue reads the text of an entitlement or override: decimal digits
// without sign, leading zero or fraction, in the dimension's range.
func ParseValue(d Dimension, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if !wellFormed.MatchString(text) || err != nil || n > d.Max() {
		return 0, refuse(d, text)
	}
	return n, nil
}

func refuse(d Dimension, text string) error {
	if err := d.Check(); err != nil {
		return err
	}
	return fmt.Errorf("%s %q is no whole number from 1 to %d", d, text, d.Max())
}

// Resolve says what a user may do at now, given plans by their id. At most one override per dimension
// should be active; where there are several the last one given wins. A plan may
// have entitlements to other things, but an override of no known dimension is
// malformed. The error is always a [*ConfigurationError].
func Resolve(plans map[string]Plan, sub Subscription, overrides []Override, now time.Time) (Effective, error) {
	id := sub.PlanAt(now)
	plan, ok := plans[id]
	if !ok {
		return Effective{}, &ConfigurationError{Reason: Missing, Plan: id}
	}
	name := plan.Name
	eff := Effective{Plan: name, ValidUntil: sub.nextChange(now)}
	values := map[Dimension]string{}
	for d, v := range plan.Entitlements {
		values[d] = v
	}
	for _, o := range overrides {
		if !o.ActiveAt(now) {
			continue
		}
		if o.Dimension.Max() == 0 {
			return Effective{}, &ConfigurationError{Reason: Malformed, Plan: name, Dimension: o.Dimension, Override: true, Value: o.Value}
		}
		values[o.Dimension] = o.Value
		if eff.Negotiated == nil {
			eff.Negotiated = map[Dimension]bool{}
		}
		eff.Negotiated[o.Dimension] = true
		eff.ValidUntil = earlier(eff.ValidUntil, o.Expires)
	}
	var n [3]int64
	for i, d := range Dimensions() {
		text, ok := values[d]
		if !ok {
			return Effective{}, &ConfigurationError{Reason: Missing, Plan: name, Dimension: d}
		}
		v, err := ParseValue(d, text)
		if err != nil {
			return Effective{}, &ConfigurationError{Reason: Malformed, Plan: name, Dimension: d, Override: eff.Negotiated[d], Value: text}
		}
		n[i] = v
	}
	a, err := NewAllowance(n[0], n[1], n[2])
	eff.Allowance = a
	return eff, err
}

func (s Subscription) nextChange(now time.Time) time.Time {
	if s.Scheduled != "" && now.Before(s.Boundary) {
		return s.Boundary
	}
	return time.Time{}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
