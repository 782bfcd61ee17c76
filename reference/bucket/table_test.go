package bucket_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/policy"
)

const (
	us = time.Microsecond
	s  = time.Second
)

// plan is an allowance as the tests write it; concurrency is no business of a bucket.
type plan struct{ rpm, burst int64 }

func (p plan) allowance() policy.Allowance {
	a, err := policy.NewAllowance(p.rpm, p.burst, 1)
	if err != nil {
		panic(err)
	}
	return a
}

// step is n takes at one instant and what is known after the last of them.
type step struct {
	at      time.Duration // on the bucket's timeline
	plan    plan          // zero: as before
	n       int
	taken   int   // of the n
	left    int64 // whole tokens
	toToken time.Duration
	toFull  time.Duration
}

func run(t *testing.T, steps []step) {
	t.Helper()
	var state bucket.State
	var current plan
	for i, st := range steps {
		if st.plan != (plan{}) {
			current = st.plan
		}
		a, now := current.allowance(), bucket.Instant(st.at/us)
		taken := 0
		for range st.n {
			var ok bool
			if state, ok = state.Take(a, now); ok {
				taken++
			}
		}
		state = state.Settled(a, now)
		require.Equal(t, st.taken, taken, "step %d at %v: taken", i, st.at)
		require.Equal(t, st.left, state.Remaining(), "step %d at %v: whole tokens left", i, st.at)
		require.Equal(t, st.toToken, time.Duration(state.ToToken(now))*us, "step %d at %v: to one token", i, st.at)
		require.Equal(t, st.toFull, time.Duration(state.ToFull(now))*us, "step %d at %v: to full", i, st.at)
	}
}

func TestInstants(t *testing.T) {
	for _, tc := range []struct {
		name  string
		steps []step
	}{
		{"10 a minute, burst 10", []step{
			{0, plan{10, 10}, 1, 1, 9, 0, 6 * s},
			{0, plan{}, 10, 9, 0, 6 * s, 60 * s},
			{1 * s, plan{}, 1, 0, 0, 5 * s, 59 * s},
			{6*s - us, plan{}, 1, 0, 0, us, 54*s + us},
			{6 * s, plan{}, 1, 1, 0, 6 * s, 60 * s},
		}},
		{"60 a minute, burst 20", []step{
			{0, plan{60, 20}, 1, 1, 19, 0, 1 * s},
			{0, plan{}, 20, 19, 0, 1 * s, 20 * s},
			{1*s - us, plan{}, 1, 0, 0, us, 19*s + us},
			{1 * s, plan{}, 1, 1, 0, 1 * s, 20 * s},
			{1*s + us, plan{}, 1, 0, 0, 1*s - us, 20*s - us},
		}},
		{"120 a minute, burst 30", []step{
			{0, plan{120, 30}, 1, 1, 29, 0, s / 2},
			{0, plan{}, 30, 29, 0, s / 2, 15 * s},
			{s/2 - us, plan{}, 1, 0, 0, us, 14*s + s/2 + us},
			{s / 2, plan{}, 1, 1, 0, s / 2, 15 * s},
		}},
		{"300 a minute, burst 50, a second less one microsecond", []step{
			{0, plan{300, 50}, 1, 1, 49, 0, s / 5},
			{0, plan{}, 50, 49, 0, s / 5, 10 * s},
			{1*s - us, plan{}, 1, 1, 3, 0, 9*s + s/5 + us},
		}},
		{"300 a minute, burst 50, a second", []step{
			{0, plan{300, 50}, 51, 50, 0, s / 5, 10 * s},
			{1 * s, plan{}, 1, 1, 4, 0, 9*s + s/5},
		}},
		{"30 a minute, burst 10", []step{
			{0, plan{30, 10}, 1, 1, 9, 0, 2 * s},
			{0, plan{}, 10, 9, 0, 2 * s, 20 * s},
			{1 * s, plan{}, 1, 0, 0, 1 * s, 19 * s},
			{2*s - us, plan{}, 1, 0, 0, us, 18*s + us},
			{2 * s, plan{}, 1, 1, 0, 2 * s, 20 * s},
		}},
		{"7 a minute, burst 5: no whole number of microseconds", []step{
			{0, plan{7, 5}, 1, 1, 4, 0, 8_571_429 * us},
			{0, plan{}, 5, 4, 0, 8_571_429 * us, 42_857_143 * us},
			{8_571_428 * us, plan{}, 1, 0, 0, us, 34_285_715 * us},
			{8_571_429 * us, plan{}, 1, 1, 0, 8_571_429 * us, 42_857_143 * us},
			{17_142_857 * us, plan{}, 1, 0, 0, us, 34_285_715 * us},
			{17_142_858 * us, plan{}, 1, 1, 0, 8_571_428 * us, 42_857_142 * us},
		}},
		{"burst 1 fills in one token", []step{
			{0, plan{300, 1}, 2, 1, 0, s / 5, s / 5},
			{s/5 - us, plan{}, 1, 0, 0, us, us},
			{s / 5, plan{}, 2, 1, 0, s / 5, s / 5},
		}},
		{"1 a minute", []step{
			{0, plan{1, 60}, 61, 60, 0, 60 * s, 3600 * s},
			{60*s - us, plan{}, 1, 0, 0, us, 3540*s + us},
			{60 * s, plan{}, 1, 1, 0, 60 * s, 3600 * s},
			{3660*s - us, plan{}, 0, 0, 59, 0, us},
			{3660 * s, plan{}, 61, 60, 0, 60 * s, 3600 * s},
		}},
		{"full to the microsecond, and no fuller", []step{
			{0, plan{60, 20}, 20, 20, 0, 1 * s, 20 * s},
			{20*s - us, plan{}, 0, 0, 19, 0, us},
			{20 * s, plan{}, 0, 0, 20, 0, 0},
			{20*s + us, plan{}, 0, 0, 20, 0, 0},
			{86_401 * s, plan{}, 21, 20, 0, 1 * s, 20 * s},
		}},
		{"a backwards clock freezes the refill", []step{
			{100 * s, plan{60, 20}, 21, 20, 0, 1 * s, 20 * s},
			{99 * s, plan{}, 1, 0, 0, 2 * s, 21 * s},
			{0, plan{}, 1, 0, 0, 101 * s, 120 * s},
			{101*s - us, plan{}, 1, 0, 0, us, 19*s + us},
			{101 * s, plan{}, 1, 1, 0, 1 * s, 20 * s},
		}},
		{"a backwards clock does not take away what is there", []step{
			{100 * s, plan{60, 20}, 18, 18, 2, 0, 18 * s},
			{40 * s, plan{}, 2, 2, 0, 61 * s, 80 * s},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) { run(t, tc.steps) })
	}
}

// Changes settle first, at the old rate, and scale then (CHG-1 to CHG-3).
func TestChanges(t *testing.T) {
	free, pro, starter := plan{10, 10}, plan{300, 50}, plan{60, 20}
	for _, tc := range []struct {
		name  string
		steps []step
	}{
		{"up with half used", []step{
			{0, free, 5, 5, 5, 0, 30 * s},
			{0, pro, 1, 1, 24, 0, 5*s + s/5},
		}},
		{"up three seconds later: they are paid at the old rate", []step{
			{0, free, 5, 5, 5, 0, 30 * s},
			{3 * s, pro, 1, 1, 26, 0, 4*s + 7*s/10},
		}},
		{"down with one used", []step{
			{0, pro, 1, 1, 49, 0, s / 5},
			{0, free, 1, 1, 8, 0, 7*s + s/5},
		}},
		{"down with most used", []step{
			{0, pro, 43, 43, 7, 0, 8*s + 3*s/5},
			{0, starter, 1, 1, 1, 0, 18*s + s/5},
		}},
		{"full stays full", []step{
			{0, free, 0, 0, 10, 0, 0},
			{0, pro, 1, 1, 49, 0, s / 5},
		}},
		{"empty stays empty", []step{
			{0, free, 10, 10, 0, 6 * s, 60 * s},
			{0, pro, 1, 0, 0, s / 5, 10 * s},
		}},
		{"the rate alone keeps the tokens", []step{
			{0, starter, 20, 20, 0, 1 * s, 20 * s},
			{s / 2, plan{120, 20}, 1, 0, 0, s / 4, 9*s + 3*s/4},
		}},
		{"the same again changes nothing", []step{
			{0, starter, 7, 7, 13, 0, 7 * s},
			{0, starter, 0, 0, 13, 0, 7 * s},
			{0, starter, 0, 0, 13, 0, 7 * s},
		}},
		{"down to one", []step{
			{0, pro, 1, 1, 49, 0, s / 5},
			{0, plan{60, 1}, 1, 0, 0, s / 50, s / 50},
			{s/50 - us, plan{}, 1, 0, 0, us, us},
			{s / 50, plan{}, 1, 1, 0, 1 * s, 1 * s},
		}},
		{"exact where doubles lose a token", []step{
			{0, plan{60, 300}, 150, 150, 150, 0, 150 * s},
			{0, plan{60, 246}, 0, 0, 123, 0, 123 * s},
		}},
		{"a change seen at an earlier instant adds no time", []step{
			{10 * s, free, 10, 10, 0, 6 * s, 60 * s},
			{4 * s, pro, 1, 0, 0, 6*s + s/5, 16 * s},
			{10*s + s/5, plan{}, 1, 1, 0, s / 5, 10 * s},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) { run(t, tc.steps) })
	}
}

// Instants from one end of the integers to the other overflow nothing.
func TestExtremeInstants(t *testing.T) {
	for _, p := range []plan{{1, 1}, {1, 1_000_000}, {1_000_000, 1}, {1_000_000, 1_000_000}} {
		a := p.allowance()
		empty := bucket.State{Level: 0, At: math.MinInt64, Rate: p.rpm, Burst: p.burst}
		require.Equal(t, p.burst, empty.Settled(a, math.MaxInt64).Remaining(), "%v: from end to end", p)
		require.Zero(t, empty.ToFull(math.MaxInt64), "%v", p)

		late := bucket.State{Level: 0, At: math.MaxInt64, Rate: p.rpm, Burst: p.burst}
		next, ok := late.Take(a, math.MinInt64)
		require.False(t, ok, "%v: back from end to end", p)
		require.Equal(t, late, next, "%v", p)
		require.EqualValues(t, math.MaxInt64, late.ToToken(math.MinInt64), "%v: the longest wait there is", p)
		require.EqualValues(t, math.MaxInt64, late.ToFull(0), "%v: the longest wait there is", p)
	}
}

func TestZeroValues(t *testing.T) {
	_, ok := bucket.State{}.Take(plan{10, 10}.allowance(), 5)
	require.True(t, ok, "a bucket never seen is full")
	require.Zero(t, bucket.State{}.ToToken(5))
	require.Zero(t, bucket.State{}.ToFull(5))

	for name, state := range map[string]bucket.State{"never seen": {}, "full": {Level: 10 * bucket.Token, Rate: 10, Burst: 10}} {
		next, ok := state.Take(policy.Allowance{}, 5)
		require.False(t, ok, "the zero allowance takes nothing: %s", name)
		require.Equal(t, state, next, "the zero allowance changes nothing: %s", name)
	}
}
