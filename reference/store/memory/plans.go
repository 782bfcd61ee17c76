package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/policy"
)

// subscription is a plan from an instant on, until the next one.
type subscription struct {
	from time.Time
	plan string // by id
}

// inForce is the index of the subscription in force at now. What an operator has
// put in force is not undone by a clock that is set back.
func (u *holder) inForce(now time.Time) int { return u.startedBy(account.Later(now, u.anchor)) }

// startedBy is the index of the last subscription that had begun at an instant.
func (u *holder) startedBy(at time.Time) int {
	i := len(u.subscriptions) - 1
	for i > 0 && u.subscriptions[i].from.After(at) {
		i--
	}
	return i
}

func (u *holder) subscription(now time.Time) policy.Subscription {
	i := u.inForce(now)
	sub := policy.Subscription{Plan: u.subscriptions[i].plan}
	if i++; i < len(u.subscriptions) {
		sub.Scheduled, sub.Boundary = u.subscriptions[i].plan, u.subscriptions[i].from
	}
	return sub
}

func (s *Store) checkPlan(plan string) error {
	if _, ok := s.plans[plan]; !ok {
		return fmt.Errorf("%w %q", account.ErrUnknownPlan, plan)
	}
	return nil
}

// SchedulePlan lets a plan take over at the end of the billing period, in place
// of any that was scheduled, and returns that boundary (PLAN-2).
func (s *Store) SchedulePlan(_ context.Context, user, plan string) (boundary time.Time, err error) {
	err = s.change(user, func(u *holder, now time.Time) error {
		if err := s.checkPlan(plan); err != nil {
			return err
		}
		boundary = account.PeriodAt(u.anchor, now).End
		u.schedule(plan, boundary, now)
		return nil
	})
	return boundary, err
}

func (u *holder) schedule(plan string, boundary, now time.Time) {
	kept := u.subscriptions[:u.inForce(now)+1]
	u.subscriptions = append(kept, subscription{from: boundary, plan: plan})
}

// CancelPlan takes back what was scheduled, if anything was.
func (s *Store) CancelPlan(_ context.Context, user string) error {
	return s.change(user, func(u *holder, now time.Time) error {
		u.subscriptions = u.subscriptions[:u.inForce(now)+1]
		return nil
	})
}

// EndPeriod makes now the boundary: a new billing period begins, with a
// scheduled plan and without any operation used.
func (s *Store) EndPeriod(_ context.Context, user string) (p account.Period, err error) {
	err = s.change(user, func(u *holder, now time.Time) error {
		p = u.endPeriod(now)
		return nil
	})
	return p, err
}

func (u *holder) endPeriod(now time.Time) account.Period {
	now = account.Later(now, u.anchor)
	i := u.inForce(now)
	if next := i + 1; next < len(u.subscriptions) {
		u.subscriptions[next].from = now
		if u.subscriptions[i].from.Equal(now) {
			u.subscriptions = slices.Delete(u.subscriptions, i, next)
		}
	}
	u.anchor = now
	u.usage[now.UnixMicro()] = &usage{}
	return account.PeriodAt(now, now)
}

// SetPlan puts a plan in force at once: it is scheduled, and the period ended.
func (s *Store) SetPlan(_ context.Context, user, plan string) error {
	return s.change(user, func(u *holder, now time.Time) error {
		if err := s.checkPlan(plan); err != nil {
			return err
		}
		u.schedule(plan, account.PeriodAt(u.anchor, now).End, now)
		u.endPeriod(now)
		return nil
	})
}

// StoreEntitlement replaces one entitlement of the plan in force, for this user
// alone, by any text: what a broken store would hold (CFG-1).
func (s *Store) StoreEntitlement(_ context.Context, user string, d policy.Dimension, text string) error {
	if err := account.CheckStored(text); err != nil {
		return err
	}
	return s.alter(user, d, func(e map[policy.Dimension]string) { e[d] = text })
}

// RemoveEntitlement takes one entitlement of the plan in force from this user
// alone, as if it had never been stored.
func (s *Store) RemoveEntitlement(_ context.Context, user string, d policy.Dimension) error {
	return s.alter(user, d, func(e map[policy.Dimension]string) { delete(e, d) })
}

// alter puts the user on a variant of the plan in force. What a lookup returned
// before does not change.
func (s *Store) alter(user string, d policy.Dimension, change func(map[policy.Dimension]string)) error {
	if err := d.Check(); err != nil {
		return fmt.Errorf("%w: %w", account.ErrRefused, err)
	}
	return s.change(user, func(u *holder, now time.Time) error {
		sub := &u.subscriptions[u.inForce(now)]
		p := u.plans[sub.plan]
		p.Entitlements = maps.Clone(p.Entitlements)
		change(p.Entitlements)
		sub.plan = p.Name + "~" + u.id
		u.plans = maps.Clone(u.plans)
		u.plans[sub.plan] = p
		return nil
	})
}

// MendEntitlements puts the user back on the plan itself.
func (s *Store) MendEntitlements(_ context.Context, user string) error {
	return s.change(user, func(u *holder, now time.Time) error {
		sub := &u.subscriptions[u.inForce(now)]
		sub.plan = u.plans[sub.plan].Name
		return nil
	})
}
