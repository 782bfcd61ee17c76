package storetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/policy"
)

func overrideCases() []testCase {
	return []testCase{
		{"OVR-1 an override replaces its one dimension for its one user", oneDimension},
		{"OVR-3 a value that is no whole number in range is refused", badValues},
		{"OVR-3 an override without reason and author is refused", badNotes},
		{"an override that has expired already is refused", bornExpired},
		{"OVR-4 at its expiry an override is over by itself", expiry},
		{"OVR-7 one override is active, the replaced ones are kept", history},
		{"OVR-7 an override that was left to expire is not said to have been ended", historyOfExpired},
		{"OVR-8 an override stays with its user over plan changes", staysOverPlans},
	}
}

func oneDimension(s *session) {
	alice, k := s.user("free")
	_, bobs := s.user("free")
	for _, c := range []struct {
		d     policy.Dimension
		value string
		want  string
	}{
		{policy.Burst, "1000000", "10/1000000/2"},
		{policy.Burst, "1", "10/1/2"},
		{policy.RequestsPerMinute, "1000000", "1000000/1/2"},
		{policy.Concurrency, "100000", "1000000/1/100000"},
		{policy.RequestsPerMinute, "1", "1/1/100000"},
		{policy.Concurrency, "1", "1/1/1"},
	} {
		s.NoError(s.SetOverride(s.ctx, alice, override(c.d, c.value), note("x")))
		s.holds(k, "free", c.want)
		s.holds(bobs, "free", "10/10/2")
	}
	s.Len(s.lookup(k).Overrides, 3)
	s.Equal(s.lookup(k).Overrides, s.billing(alice).Overrides)
	s.NoError(s.EndOverride(s.ctx, alice, policy.Burst, note("x")))
	s.holds(k, "free", "1/10/1")
	s.NoError(s.EndOverride(s.ctx, alice, policy.Burst, note("x")), "ending what is not there is no mistake")
}

func badValues(s *session) {
	alice, k := s.user("free")
	s.NoError(s.SetOverride(s.ctx, alice, override(policy.Burst, "7"), note("x")))
	before, err := s.Overrides(s.ctx, alice)
	s.NoError(err)
	for _, d := range policy.Dimensions() {
		for _, value := range []string{
			"", "0", "-1", "1.5", "1.0", "1e3", "+1", "01", " 1", "1 ", "1\n", "0x10", "null", "none", "unlimited", "infinity", "∞", "١",
			fmt.Sprint(d.Max() + 1), "2147483648", "4294967297", "9223372036854775808", strings.Repeat("1", 1<<20), "\xff", "1\x00",
		} {
			err := s.SetOverride(s.ctx, alice, override(d, value), note("x"))
			s.ErrorIs(err, account.ErrRefused, "%q", value)
			s.ErrorContains(err, string(d))
		}
	}
	for _, d := range []policy.Dimension{"", "unlimited", "Burst", "\xff"} {
		s.ErrorIs(s.SetOverride(s.ctx, alice, override(d, "1"), note("x")), account.ErrRefused)
		s.ErrorIs(s.EndOverride(s.ctx, alice, d, note("x")), account.ErrRefused)
	}
	s.holds(k, "free", "10/7/2")
	after, err := s.Overrides(s.ctx, alice)
	s.NoError(err)
	s.Equal(before, after)
}

func badNotes(s *session) {
	alice, k := s.user("free")
	for _, n := range []account.Note{
		{}, {Author: "a"}, {Reason: "b"}, {Author: " ", Reason: "b"},
		{Author: "a", Reason: strings.Repeat("b", account.MaxReason+1)}, {Author: strings.Repeat("a", account.MaxAuthor+1), Reason: "b"},
	} {
		s.ErrorIs(s.SetOverride(s.ctx, alice, override(policy.Burst, "7"), n), account.ErrRefused)
	}
	s.holds(k, "free", "10/10/2")
	s.NoError(s.SetOverride(s.ctx, alice, override(policy.Burst, "7"), note("x")))
	s.ErrorIs(s.EndOverride(s.ctx, alice, policy.Burst, account.Note{Author: "a"}), account.ErrRefused)
	s.holds(k, "free", "10/7/2")
	all, err := s.Overrides(s.ctx, alice)
	s.NoError(err)
	s.Len(all, 1)
}

func bornExpired(s *session) {
	alice, k := s.user("free")
	for _, at := range []time.Time{s.now(), s.now().Add(-time.Hour), s.now().Add(just - 1)} {
		err := s.SetOverride(s.ctx, alice, policy.Override{Dimension: policy.Burst, Value: "7", Expires: at}, note("x"))
		s.ErrorIs(err, account.ErrRefused)
	}
	s.holds(k, "free", "10/10/2")
	all, err := s.Overrides(s.ctx, alice)
	s.NoError(err)
	s.Empty(all)
}

func expiry(s *session) {
	alice, k := s.user("free")
	ends := s.now().Add(time.Hour)
	s.NoError(s.SetOverride(s.ctx, alice, policy.Override{Dimension: policy.Burst, Value: "7", Expires: ends.In(time.FixedZone("", 3600))}, note("x")))
	s.NoError(s.SetOverride(s.ctx, alice, override(policy.Concurrency, "1"), note("x")))
	s.holds(k, "free", "10/7/1")
	s.moveTo(ends, just)
	s.holds(k, "free", "10/7/1")
	s.moveTo(ends, 0)
	s.holds(k, "free", "10/10/1")
	s.Equal([]policy.Override{override(policy.Concurrency, "1")}, s.lookup(k).Overrides)
	s.Equal([]policy.Override{override(policy.Concurrency, "1")}, s.billing(alice).Overrides)
}

func history(s *session) {
	alice, k := s.user("free")
	first := s.now()
	s.NoError(s.SetOverride(s.ctx, alice, policy.Override{Dimension: policy.Burst, Value: "7", Expires: first.Add(time.Hour)}, note("a trial")))
	s.clock.Advance(time.Minute)
	second := s.now()
	s.NoError(s.SetOverride(s.ctx, alice, override(policy.Burst, "8"), note("a contract")))
	s.NoError(s.SetOverride(s.ctx, alice, override(policy.Concurrency, "3"), note("as well")))
	s.Len(s.lookup(k).Overrides, 2)
	s.clock.Advance(time.Minute)
	s.NoError(s.EndOverride(s.ctx, alice, policy.Burst, note("its end")))
	all, err := s.Overrides(s.ctx, alice)
	s.NoError(err)
	s.Equal([]account.OverrideEntry{
		{Override: policy.Override{Dimension: policy.Burst, Value: "7", Expires: first.Add(time.Hour)}, Set: first, By: note("a trial"), Ended: second, EndBy: note("a contract")},
		{Override: override(policy.Burst, "8"), Set: second, By: note("a contract"), Ended: s.now(), EndBy: note("its end")},
		{Override: override(policy.Concurrency, "3"), Set: second, By: note("as well")},
	}, all)
	s.holds(k, "free", "10/10/3")
}

func historyOfExpired(s *session) {
	alice, k := s.user("free")
	set := s.now()
	one := policy.Override{Dimension: policy.Burst, Value: "7", Expires: set.Add(time.Hour)}
	s.NoError(s.SetOverride(s.ctx, alice, one, note("a")))
	s.moveTo(one.Expires, 0)
	s.NoError(s.EndOverride(s.ctx, alice, policy.Burst, note("too late")))
	two := policy.Override{Dimension: policy.Burst, Value: "8", Expires: s.now().Add(time.Hour)}
	s.NoError(s.SetOverride(s.ctx, alice, two, note("b")))
	s.moveTo(two.Expires, 0)
	s.NoError(s.SetOverride(s.ctx, alice, override(policy.Burst, "9"), note("c")))
	all, err := s.Overrides(s.ctx, alice)
	s.NoError(err)
	s.Equal([]account.OverrideEntry{
		{Override: one, Set: set, By: note("a")},
		{Override: two, Set: one.Expires, By: note("b")},
		{Override: override(policy.Burst, "9"), Set: two.Expires, By: note("c")},
	}, all)
	s.holds(k, "free", "10/9/2")
}

func staysOverPlans(s *session) {
	alice, k := s.user("free")
	s.NoError(s.SetOverride(s.ctx, alice, override(policy.Burst, "7"), note("x")))
	s.NoError(s.SetPlan(s.ctx, alice, "pro"))
	s.holds(k, "pro", "300/7/20")
	boundary, err := s.SchedulePlan(s.ctx, alice, "free")
	s.NoError(err)
	s.moveTo(boundary, 0)
	s.holds(k, "free", "10/7/2")
}
