package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/policy"
)

func brokenCases() []testCase {
	return []testCase{
		{"CFG-1 a broken entitlement of any kind resolves to nothing", brokenEntitlements},
		{"CFG-1 a missing entitlement resolves to nothing", missingEntitlements},
		{"CFG-2 another plan, or mending, ends it, and nobody else sees it", brokenForOne},
		{"CFG-5 a malformed override makes the policy unresolvable until it is over", brokenOverrides},
		{"what no store can hold is refused", unstorable},
	}
}

// broken is texts that are no entitlement.
func broken(d policy.Dimension) []string {
	return []string{
		"", "0", "-1", "1.5", "ten", "null", "unlimited", "01", " 1", "1e3", "[1]", `{"n":1}`,
		fmt.Sprint(d.Max() + 1), "9223372036854775808", strings.Repeat("9", account.MaxStoredBytes),
	}
}

// failsAt requires the policy of a key not to resolve.
func (s *session) failsAt(k account.Key, want policy.ConfigurationError) {
	e, err := s.resolve(k)
	s.Zero(e.Allowance)
	var failure *policy.ConfigurationError
	s.True(errors.As(err, &failure), "%v", err)
	s.Equal(want, *failure)
}

func brokenEntitlements(s *session) {
	alice, k := s.user("free")
	for _, d := range policy.Dimensions() {
		for _, text := range broken(d) {
			s.NoError(s.StoreEntitlement(s.ctx, alice, d, text))
			s.failsAt(k, policy.ConfigurationError{Reason: policy.Malformed, Plan: "free", Dimension: d, Value: text})
		}
		s.NoError(s.MendEntitlements(s.ctx, alice))
		s.holds(k, "free", "10/10/2")
	}
}

func missingEntitlements(s *session) {
	alice, k := s.user("pro")
	for _, d := range policy.Dimensions() {
		s.NoError(s.RemoveEntitlement(s.ctx, alice, d))
		s.failsAt(k, policy.ConfigurationError{Reason: policy.Missing, Plan: "pro", Dimension: d})
		s.Equal("pro", s.lookup(k).PlanAt(s.clock.Now()))
		s.NoError(s.MendEntitlements(s.ctx, alice))
		s.holds(k, "pro", "300/100/20")
	}
	s.NoError(s.MendEntitlements(s.ctx, alice), "mending what is whole is no mistake")
}

func brokenForOne(s *session) {
	alice, k := s.user("free")
	bob, bobs := s.user("free")
	s.NoError(s.StoreEntitlement(s.ctx, alice, policy.Burst, "x"))
	s.NoError(s.StoreEntitlement(s.ctx, bob, policy.Concurrency, "3"))
	s.NoError(s.RemoveEntitlement(s.ctx, alice, policy.Concurrency))
	s.failsAt(k, policy.ConfigurationError{Reason: policy.Malformed, Plan: "free", Dimension: policy.Burst, Value: "x"})
	s.holds(bobs, "free", "10/10/3")
	_, others := s.user("free")
	s.holds(others, "free", "10/10/2")
	s.NoError(s.SetOverride(s.ctx, alice, override(policy.Burst, "7"), note("x")))
	s.failsAt(k, policy.ConfigurationError{Reason: policy.Missing, Plan: "free", Dimension: policy.Concurrency})
	s.NoError(s.SetPlan(s.ctx, alice, "pro"))
	s.holds(k, "pro", "300/7/20")
	s.NoError(s.SetPlan(s.ctx, alice, "free"))
	s.holds(k, "free", "10/7/2")
	s.NoError(s.StoreEntitlement(s.ctx, alice, policy.RequestsPerMinute, "11"))
	s.holds(k, "free", "11/7/2")
	boundary, err := s.SchedulePlan(s.ctx, alice, "free")
	s.NoError(err)
	s.moveTo(boundary, 0)
	s.holds(k, "free", "10/7/2")
}

func brokenOverrides(s *session) {
	alice, k := s.user("free")
	_, bobs := s.user("free")
	fails := func(d policy.Dimension, text string) {
		s.failsAt(k, policy.ConfigurationError{Reason: policy.Malformed, Plan: "free", Dimension: d, Override: true, Value: text})
		s.holds(bobs, "free", "10/10/2")
	}
	for _, d := range policy.Dimensions() {
		s.NoError(s.SetOverride(s.ctx, alice, override(d, "1"), note("x")))
		for _, text := range broken(d) {
			s.NoError(s.StoreOverride(s.ctx, alice, override(d, text)))
			fails(d, text)
		}
		s.NoError(s.EndOverride(s.ctx, alice, d, note("mended")))
		s.holds(k, "free", "10/10/2")
	}
	ends := s.now().Add(time.Hour)
	s.NoError(s.StoreOverride(s.ctx, alice, policy.Override{Dimension: policy.Burst, Value: "ten", Expires: ends}))
	s.moveTo(ends, just)
	fails(policy.Burst, "ten")
	s.moveTo(ends, 0)
	s.holds(k, "free", "10/10/2")
	s.NoError(s.StoreOverride(s.ctx, alice, override(policy.Burst, "-1")))
	fails(policy.Burst, "-1")
	s.NoError(s.SetOverride(s.ctx, alice, override(policy.Burst, "7"), note("replaced")))
	s.holds(k, "free", "10/7/2")
	all, err := s.Overrides(s.ctx, alice)
	s.NoError(err)
	s.Len(all, 3*(1+len(broken(policy.Burst)))+3, "all of them are kept")
	s.Equal("-1", all[len(all)-2].Value)
	s.Equal(note("replaced"), all[len(all)-2].EndBy)
	s.ErrorIs(s.SetOverride(s.ctx, alice, override(policy.Burst, "-1"), note("x")), account.ErrRefused, "what is asked for is checked as ever")
}

func unstorable(s *session) {
	alice, k := s.user("free")
	for _, text := range []string{"\x00", "1\xff", strings.Repeat("1", account.MaxStoredBytes+1)} {
		s.ErrorIs(s.StoreEntitlement(s.ctx, alice, policy.Burst, text), account.ErrRefused)
		s.ErrorIs(s.StoreOverride(s.ctx, alice, override(policy.Burst, text)), account.ErrRefused)
	}
	s.ErrorIs(s.StoreEntitlement(s.ctx, alice, "depth", "1"), account.ErrRefused)
	s.ErrorIs(s.RemoveEntitlement(s.ctx, alice, "depth"), account.ErrRefused)
	s.ErrorIs(s.StoreOverride(s.ctx, alice, override("depth", "1")), account.ErrRefused)
	s.holds(k, "free", "10/10/2")
}
