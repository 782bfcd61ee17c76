package storetest

import (
	"time"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/policy"
)

func planCases() []testCase {
	return []testCase{
		{"PLAN-1 a user may do what the plan says", planSays},
		{"PLAN-2 a scheduled plan holds from the boundary on, not before", scheduledPlanWaits},
		{"PLAN-2 a lookup before the boundary is good beyond it", oneLookupKnowsBoth},
		{"PLAN-2 one plan is scheduled at a time, and can be taken back", scheduleIsReplaced},
		{"PLAN-2 where the period is ended, the boundary is now", periodIsEnded},
		{"a plan is put in force at once, also back and forth", planAtOnce},
		{"a clock that is set back undoes nothing that was put in force", clockSetBack},
		{"a plan that does not exist is refused and changes nothing", unknownPlan},
		{"a period is a month and the next follows by itself", periodsFollow},
		{"AUTH-2 a lookup says until when it is good", validUntil},
		{"what a lookup returned does not change afterwards", recordsStay},
	}
}

func planSays(s *session) {
	_, free := s.user("free")
	_, pro := s.user("pro")
	s.holds(free, "free", "10/10/2")
	s.holds(pro, "pro", "300/100/20")
}

func scheduledPlanWaits(s *session) {
	alice, k := s.user("free")
	bob, bobs := s.user("free")
	boundary, err := s.SchedulePlan(s.ctx, alice, "pro")
	s.NoError(err)
	s.Equal(s.billing(alice).Period.End, boundary)
	s.holds(k, "free", "10/10/2")
	s.moveTo(boundary, just)
	s.holds(k, "free", "10/10/2")
	s.moveTo(boundary, 0)
	s.holds(k, "pro", "300/100/20")
	s.Empty(s.lookup(k).Subscription.Scheduled)
	s.Equal("pro", s.billing(alice).PlanAt(s.clock.Now()))
	s.holds(bobs, "free", "10/10/2")
	s.Empty(s.billing(bob).Subscription.Scheduled)
}

func oneLookupKnowsBoth(s *session) {
	alice, k := s.user("free")
	boundary, err := s.SchedulePlan(s.ctx, alice, "pro")
	s.NoError(err)
	for name, rec := range map[string]account.Record{"lookup": s.lookup(k), "billing": s.billing(alice).Record} {
		for at, want := range map[time.Time]string{boundary.Add(-just): "10/10/2", boundary: "300/100/20"} {
			e, err := policy.Resolve(rec.Plans, rec.Subscription, rec.Overrides, at)
			s.NoError(err, name)
			s.Equal(want, e.Allowance.String(), name)
		}
	}
}

func scheduleIsReplaced(s *session) {
	alice, k := s.user("free")
	_, err := s.SchedulePlan(s.ctx, alice, "pro")
	s.NoError(err)
	boundary, err := s.SchedulePlan(s.ctx, alice, "free")
	s.NoError(err)
	s.Equal(boundary, s.lookup(k).Subscription.Boundary)
	s.moveTo(boundary, 0)
	s.holds(k, "free", "10/10/2")

	boundary, err = s.SchedulePlan(s.ctx, alice, "pro")
	s.NoError(err)
	s.NoError(s.CancelPlan(s.ctx, alice))
	s.NoError(s.CancelPlan(s.ctx, alice), "taking back nothing is no mistake")
	s.Empty(s.lookup(k).Subscription.Scheduled)
	s.moveTo(boundary, 0)
	s.holds(k, "free", "10/10/2")
}

func periodIsEnded(s *session) {
	alice, k := s.user("free")
	_, err := s.SchedulePlan(s.ctx, alice, "pro")
	s.NoError(err)
	s.clock.Advance(time.Hour)
	p, err := s.EndPeriod(s.ctx, alice)
	s.NoError(err)
	s.Equal(account.PeriodAt(s.now(), s.now()), p)
	s.Equal(p, s.billing(alice).Period)
	s.holds(k, "pro", "300/100/20")
	s.Equal(policy.Subscription{Plan: "pro"}, s.lookup(k).Subscription, "nothing is left of the schedule")
	s.clock.Advance(time.Hour)
	p, err = s.EndPeriod(s.ctx, alice)
	s.NoError(err)
	s.Equal(s.now(), p.Start)
	s.holds(k, "pro", "300/100/20")
}

func planAtOnce(s *session) {
	alice, k := s.user("free")
	for range 3 {
		s.NoError(s.SetPlan(s.ctx, alice, "pro"))
		s.holds(k, "pro", "300/100/20")
		s.NoError(s.SetPlan(s.ctx, alice, "free"))
		s.holds(k, "free", "10/10/2")
	}
	_, err := s.SchedulePlan(s.ctx, alice, "free")
	s.NoError(err)
	s.NoError(s.SetPlan(s.ctx, alice, "pro"))
	s.Equal(policy.Subscription{Plan: "pro"}, s.lookup(k).Subscription, "what was scheduled is replaced")
	s.Equal(s.now(), s.billing(alice).Period.Start)
}

func clockSetBack(s *session) {
	alice, k := s.user("free")
	s.clock.Advance(time.Hour)
	s.NoError(s.SetPlan(s.ctx, alice, "pro"))
	s.charge(alice, "a")
	before := s.billing(alice)
	s.clock.Advance(-2 * time.Hour)
	s.holds(k, "pro", "300/100/20")
	s.Equal(before, s.billing(alice))
	s.charge(alice, "b")
	s.uses(alice, 2, 3)
	boundary, err := s.SchedulePlan(s.ctx, alice, "free")
	s.NoError(err)
	s.Equal(before.Period.End, boundary)
	s.NoError(s.SetPlan(s.ctx, alice, "free"))
	s.holds(k, "free", "10/10/2")
	s.Equal(policy.Subscription{Plan: "free"}, s.lookup(k).Subscription)
	s.Equal(before.Period, s.billing(alice).Period, "no period begins before the one that it ends")
}

func unknownPlan(s *session) {
	alice, k := s.user("free")
	_, err := s.SchedulePlan(s.ctx, alice, "pro")
	s.NoError(err)
	before := s.billing(alice)
	for _, name := range []string{"gold", "", "FREE", "free\x00", "\xff"} {
		_, err := s.SchedulePlan(s.ctx, alice, name)
		s.ErrorIs(err, account.ErrUnknownPlan)
		s.ErrorIs(s.SetPlan(s.ctx, alice, name), account.ErrUnknownPlan)
	}
	s.Equal(before, s.billing(alice))
	s.NoError(s.StoreEntitlement(s.ctx, alice, policy.Burst, "x"))
	_, err = s.SchedulePlan(s.ctx, alice, s.lookup(k).Subscription.Plan)
	s.ErrorIs(err, account.ErrUnknownPlan, "a user's own variant is not on offer")
}

func periodsFollow(s *session) {
	alice, _ := s.user("free")
	anchor := s.now()
	for range 14 {
		p := s.billing(alice).Period
		s.Equal(account.PeriodAt(anchor, s.now()), p)
		s.moveTo(p.End, just)
		s.Equal(p, s.billing(alice).Period)
		s.moveTo(p.End, 0)
		s.Equal(p.End, s.billing(alice).Period.Start)
	}
}

func validUntil(s *session) {
	alice, k := s.user("free")
	until := func() time.Time {
		e, err := s.resolve(k)
		s.NoError(err)
		return e.ValidUntil
	}
	s.Zero(until())
	boundary, err := s.SchedulePlan(s.ctx, alice, "pro")
	s.NoError(err)
	s.Equal(boundary, until())
	expiry := s.now().Add(time.Hour)
	s.NoError(s.SetOverride(s.ctx, alice, policy.Override{Dimension: policy.Burst, Value: "7", Expires: expiry}, note("x")))
	s.Equal(expiry, until())
	s.moveTo(expiry, 0)
	s.Equal(boundary, until())
	s.moveTo(boundary, 0)
	s.Zero(until())
}

func recordsStay(s *session) {
	alice, k := s.user("free")
	s.NoError(s.SetOverride(s.ctx, alice, override(policy.Burst, "7"), note("x")))
	rec := s.lookup(k)
	resolved := func() policy.Effective {
		e, err := policy.Resolve(rec.Plans, rec.Subscription, rec.Overrides, s.clock.Now())
		s.NoError(err)
		return e
	}
	before := resolved()
	s.NoError(s.StoreEntitlement(s.ctx, alice, policy.Concurrency, "x"))
	s.NoError(s.StoreEntitlement(s.ctx, alice, policy.RequestsPerMinute, "x"))
	s.NoError(s.SetOverride(s.ctx, alice, override(policy.Burst, "8"), note("x")))
	s.Equal(before, resolved())
}
