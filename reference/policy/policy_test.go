package policy_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/policy"
)

const (
	rpm   = policy.RequestsPerMinute
	burst = policy.Burst
	conc  = policy.Concurrency
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func entitled(name, r, b, c string) policy.Plan {
	return policy.Plan{Name: name, Entitlements: map[policy.Dimension]string{rpm: r, burst: b, conc: c}, Operations: 100}
}

// without is the free plan with some entitlements taken away.
func without(dimensions ...policy.Dimension) policy.Plan {
	p := entitled("free", "10", "10", "2")
	for _, d := range dimensions {
		delete(p.Entitlements, d)
	}
	return p
}

func catalogue(changed ...policy.Plan) map[string]policy.Plan {
	plans := map[string]policy.Plan{
		"free":       entitled("free", "10", "10", "2"),
		"starter":    entitled("starter", "60", "20", "5"),
		"enterprise": entitled("enterprise", "300", "100", "20"),
	}
	for _, p := range changed {
		plans[p.Name] = p
	}
	return plans
}

func onFree() policy.Subscription { return policy.Subscription{Plan: "free"} }

func set(d policy.Dimension, value string) policy.Override {
	return policy.Override{Dimension: d, Value: value}
}

func until(o policy.Override, expires time.Time) policy.Override {
	o.Expires = expires
	return o
}

func TestResolve(t *testing.T) {
	upgrade := policy.Subscription{Plan: "free", Scheduled: "starter", Boundary: noon}
	expiring := []policy.Override{until(set(burst, "50"), noon)}
	both := []policy.Override{until(set(burst, "50"), noon), until(set(rpm, "7"), noon.Add(time.Hour))}
	for _, tc := range []struct {
		name       string
		sub        policy.Subscription
		overrides  []policy.Override
		at         time.Duration // from noon
		plan       string
		allowance  string
		negotiated []policy.Dimension
		validUntil time.Time
	}{
		{name: "PLAN-1: what the entitlements say", sub: onFree(), plan: "free", allowance: "10/10/2"},
		{name: "PLAN-1: enterprise is not unlimited", sub: policy.Subscription{Plan: "enterprise"}, plan: "enterprise", allowance: "300/100/20"},

		{name: "PLAN-2: a nanosecond before the boundary", sub: upgrade, at: -1, plan: "free", allowance: "10/10/2", validUntil: noon},
		{name: "PLAN-2: at the boundary", sub: upgrade, plan: "starter", allowance: "60/20/5"},
		{name: "PLAN-2: long after it", sub: upgrade, at: 1000 * time.Hour, plan: "starter", allowance: "60/20/5"},

		{name: "OVR-1: one dimension alone, up", sub: onFree(), overrides: []policy.Override{set(burst, "50")},
			plan: "free", allowance: "10/50/2", negotiated: []policy.Dimension{burst}},
		{name: "OVR-2: down", sub: policy.Subscription{Plan: "enterprise"}, overrides: []policy.Override{set(conc, "1")},
			plan: "enterprise", allowance: "300/100/1", negotiated: []policy.Dimension{conc}},
		{name: "OVR-1: every dimension, at the end of its range", sub: onFree(),
			overrides: []policy.Override{set(rpm, "1000000"), set(burst, "1000000"), set(conc, "100000")},
			plan:      "free", allowance: "1000000/1000000/100000", negotiated: []policy.Dimension{rpm, burst, conc}},
		{name: "OVR-1: the plan's own value is negotiated all the same", sub: onFree(), overrides: []policy.Override{set(rpm, "10")},
			plan: "free", allowance: "10/10/2", negotiated: []policy.Dimension{rpm}},
		{name: "OVR-7: of several the last one given", sub: onFree(), overrides: []policy.Override{set(rpm, "20"), set(rpm, "30")},
			plan: "free", allowance: "30/10/2", negotiated: []policy.Dimension{rpm}},

		{name: "OVR-4: a nanosecond before the expiry", sub: onFree(), overrides: expiring, at: -1,
			plan: "free", allowance: "10/50/2", negotiated: []policy.Dimension{burst}, validUntil: noon},
		{name: "OVR-4: at the expiry", sub: onFree(), overrides: expiring, plan: "free", allowance: "10/10/2"},
		{name: "OVR-4: the one that expires first", sub: onFree(), overrides: both, at: -1,
			plan: "free", allowance: "7/50/2", negotiated: []policy.Dimension{rpm, burst}, validUntil: noon},
		{name: "OVR-4: and then the other", sub: onFree(), overrides: both,
			plan: "free", allowance: "7/10/2", negotiated: []policy.Dimension{rpm}, validUntil: noon.Add(time.Hour)},

		{name: "OVR-8: it stays over a plan change", sub: upgrade, overrides: []policy.Override{set(burst, "50")}, at: -1,
			plan: "free", allowance: "10/50/2", negotiated: []policy.Dimension{burst}, validUntil: noon},
		{name: "OVR-8: and after it", sub: upgrade, overrides: []policy.Override{set(burst, "50")},
			plan: "starter", allowance: "60/50/5", negotiated: []policy.Dimension{burst}},
		{name: "a boundary after an expiry", sub: policy.Subscription{Plan: "free", Scheduled: "starter", Boundary: noon.Add(time.Minute)},
			overrides: expiring, at: -1, plan: "free", allowance: "10/50/2", negotiated: []policy.Dimension{burst}, validUntil: noon},
		{name: "CFG-5: a malformed override that is over", sub: onFree(), overrides: []policy.Override{until(set(burst, "none"), noon)},
			plan: "free", allowance: "10/10/2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			eff, err := policy.Resolve(catalogue(), tc.sub, tc.overrides, noon.Add(tc.at))
			require.NoError(t, err)
			require.Equal(t, tc.plan, eff.Plan)
			require.Equal(t, tc.allowance, eff.Allowance.String())
			require.ElementsMatch(t, tc.negotiated, keys(eff.Negotiated))
			require.Equal(t, tc.validUntil, eff.ValidUntil, "valid until")
		})
	}
}

// A policy that cannot be resolved is never another plan's and never unlimited.
func TestConfigurationFailures(t *testing.T) {
	overridden := func(o ...policy.Override) []policy.Override { return o }
	for _, tc := range []struct {
		name      string
		plans     map[string]policy.Plan
		sub       policy.Subscription
		overrides []policy.Override
		want      policy.ConfigurationError
		says      string
	}{
		{name: "CFG-1: no such plan", sub: policy.Subscription{Plan: "gold"},
			want: policy.ConfigurationError{Reason: policy.Missing, Plan: "gold"},
			says: `plan "gold" does not exist`},
		{name: "CFG-2: no plan at all is not the free one", sub: policy.Subscription{},
			want: policy.ConfigurationError{Reason: policy.Missing},
			says: `plan "" does not exist`},
		{name: "CFG-1: the scheduled plan does not exist", sub: policy.Subscription{Plan: "free", Scheduled: "gold", Boundary: noon},
			want: policy.ConfigurationError{Reason: policy.Missing, Plan: "gold"},
			says: `plan "gold" does not exist`},
		{name: "CFG-1: an entitlement is missing", plans: catalogue(without(burst)), sub: onFree(),
			want: policy.ConfigurationError{Reason: policy.Missing, Plan: "free", Dimension: burst},
			says: `plan "free" has no entitlement burst`},
		{name: "CFG-1: all are missing", plans: catalogue(without(rpm, burst, conc)), sub: onFree(),
			want: policy.ConfigurationError{Reason: policy.Missing, Plan: "free", Dimension: rpm},
			says: `plan "free" has no entitlement requests-per-minute`},
		{name: "CFG-1: an entitlement is empty", plans: catalogue(entitled("free", "10", "", "2")), sub: onFree(),
			want: policy.ConfigurationError{Reason: policy.Malformed, Plan: "free", Dimension: burst},
			says: `plan "free": burst "" is no whole number from 1 to 1000000`},
		{name: "CFG-1: not positive", plans: catalogue(entitled("free", "0", "10", "2")), sub: onFree(),
			want: policy.ConfigurationError{Reason: policy.Malformed, Plan: "free", Dimension: rpm, Value: "0"},
			says: `plan "free": requests-per-minute "0" is no whole number from 1 to 1000000`},
		{name: "CFG-1: out of range", plans: catalogue(entitled("free", "10", "10", "100001")), sub: onFree(),
			want: policy.ConfigurationError{Reason: policy.Malformed, Plan: "free", Dimension: conc, Value: "100001"},
			says: `plan "free": concurrency "100001" is no whole number from 1 to 100000`},
		{name: "CFG-5: an active override is malformed", sub: onFree(), overrides: overridden(set(burst, "-1")),
			want: policy.ConfigurationError{Reason: policy.Malformed, Plan: "free", Dimension: burst, Override: true, Value: "-1"},
			says: `override: burst "-1" is no whole number from 1 to 1000000`},
		{name: "CFG-5: until the nanosecond of its expiry", sub: onFree(), overrides: overridden(until(set(burst, "unlimited"), noon.Add(1))),
			want: policy.ConfigurationError{Reason: policy.Malformed, Plan: "free", Dimension: burst, Override: true, Value: "unlimited"},
			says: `override: burst "unlimited" is no whole number from 1 to 1000000`},
		{name: "CFG-5: an override of nothing known", sub: onFree(), overrides: overridden(set("colour", "3")),
			want: policy.ConfigurationError{Reason: policy.Malformed, Plan: "free", Dimension: "colour", Override: true, Value: "3"},
			says: `override: "colour" is none of the dimensions [requests-per-minute burst concurrency]`},
		{name: "CFG-1: an override mends its own dimension alone", plans: catalogue(without(rpm)), sub: onFree(), overrides: overridden(set(burst, "5")),
			want: policy.ConfigurationError{Reason: policy.Missing, Plan: "free", Dimension: rpm},
			says: `plan "free" has no entitlement requests-per-minute`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plans := tc.plans
			if plans == nil {
				plans = catalogue()
			}
			eff, err := policy.Resolve(plans, tc.sub, tc.overrides, noon)
			var failure *policy.ConfigurationError
			require.ErrorAs(t, err, &failure)
			require.Equal(t, tc.want, *failure)
			require.EqualError(t, failure, tc.says)
			require.Equal(t, policy.Effective{}, eff, "nothing may come with the error")
			require.True(t, eff.Allowance.IsZero())
		})
	}
}

// The effective value is the active override, else the plan's: so an override
// stands in for an entitlement that is broken, for as long as it holds.
func TestOverrideStandsInForABrokenEntitlement(t *testing.T) {
	plans := catalogue(entitled("free", "10", "broken", "2"))
	overrides := []policy.Override{until(set(burst, "5"), noon)}
	eff, err := policy.Resolve(plans, onFree(), overrides, noon.Add(-1))
	require.NoError(t, err)
	require.Equal(t, "10/5/2", eff.Allowance.String())

	_, err = policy.Resolve(plans, onFree(), overrides, noon)
	var failure *policy.ConfigurationError
	require.ErrorAs(t, err, &failure)
	require.False(t, failure.Override)
}

// Entitlements to other things and the operations left have no say (PLAN-3).
func TestOtherEntitlementsHaveNoSay(t *testing.T) {
	p := without()
	p.Entitlements["exports"] = "unlimited"
	p.Operations = 0
	eff, err := policy.Resolve(catalogue(p), onFree(), nil, noon)
	require.NoError(t, err)
	require.Equal(t, "10/10/2", eff.Allowance.String())
}

func TestResolveChangesNothingItIsGiven(t *testing.T) {
	plans := catalogue()
	before := maps.Clone(plans["free"].Entitlements)
	_, err := policy.Resolve(plans, onFree(), []policy.Override{set(burst, "50")}, noon)
	require.NoError(t, err)
	require.Equal(t, before, plans["free"].Entitlements)
}

func TestNewAllowance(t *testing.T) {
	for _, tc := range []struct {
		name                    string
		rpm, burst, concurrency int64
		says                    string // empty: it is one
	}{
		{"least", 1, 1, 1, ""},
		{"most", 1_000_000, 1_000_000, 100_000, ""},
		{"no rate", 0, 1, 1, "requests-per-minute 0 is out of range: 1 to 1000000"},
		{"too high a rate", 1_000_001, 1, 1, "requests-per-minute 1000001 is out of range: 1 to 1000000"},
		{"a sentinel burst", 1, -1, 1, "burst -1 is out of range: 1 to 1000000"},
		{"a burst beyond 32 bits", 1, 1<<32 + 1, 1, "burst 4294967297 is out of range: 1 to 1000000"},
		{"too much concurrency", 1, 1, 100_001, "concurrency 100001 is out of range: 1 to 100000"},
		{"least number there is", 1, 1, -1 << 63, "concurrency -9223372036854775808 is out of range: 1 to 100000"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, err := policy.NewAllowance(tc.rpm, tc.burst, tc.concurrency)
			if tc.says != "" {
				require.EqualError(t, err, tc.says)
				require.True(t, a.IsZero())
				return
			}
			require.NoError(t, err)
			require.False(t, a.IsZero())
			require.Equal(t, []int64{tc.rpm, tc.burst, tc.concurrency}, []int64{a.RequestsPerMinute(), a.Burst(), a.Concurrency()})
		})
	}
}

func TestEveryErrorIsAConfigurationError(t *testing.T) {
	for _, text := range []string{"", " 1", "1 ", "+1", "-1", "01", "1.0", "1e3", "0x10", "１", "1_000", "null", "NaN", "1000001", "9223372036854775808", "1\n"} {
		for _, d := range policy.Dimensions() {
			p := without()
			p.Entitlements[d] = text
			_, err := policy.Resolve(catalogue(p), onFree(), nil, noon)
			var failure *policy.ConfigurationError
			require.True(t, errors.As(err, &failure), "%s %q: %v", d, text, err)
			require.Equal(t, policy.Malformed, failure.Reason)
			require.Equal(t, text, failure.Value)
		}
	}
}

func keys(m map[policy.Dimension]bool) []policy.Dimension {
	var ks []policy.Dimension
	for d, yes := range m {
		if yes {
			ks = append(ks, d)
		}
	}
	return ks
}
