package bucket_test

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/bucket/buckettest"
)

const century = 100 * 365 * 24 * 3600 * 1_000_000 // in microseconds

// values of the allowed range, its ends and the usual plans more often than chance has it.
var values = rapid.OneOf(
	rapid.Int64Range(1, 1_000_000),
	rapid.Int64Range(1, 20),
	rapid.SampledFrom([]int64{1, 7, 10, 13, 60, 300, 999_983, 999_999, 1_000_000}),
)

var plans = rapid.Custom(func(t *rapid.T) plan {
	return plan{rpm: values.Draw(t, "requests per minute"), burst: values.Draw(t, "burst")}
})

// nextInstant goes on from the last instant in one of the ways that have broken
// somebody's limiter, most often to where the bucket itself says that something happens.
func nextInstant(t *rapid.T, state bucket.State, last bucket.Instant) bucket.Instant {
	step := func(by int64) bucket.Instant {
		sum := new(big.Int).Add(big.NewInt(int64(last)), big.NewInt(by))
		if !sum.IsInt64() {
			return last
		}
		return bucket.Instant(sum.Int64())
	}
	return rapid.OneOf(
		rapid.Just(last),
		rapid.SampledFrom([]bucket.Instant{
			step(state.ToToken(last)), step(state.ToToken(last) - 1), step(state.ToFull(last)), step(state.ToFull(last) - 1),
			step(1), step(-1), state.At, step(century), step(-century),
		}),
		rapid.Map(rapid.Int64Range(-100_000_000, 100_000_000), step),
		rapid.Map(rapid.Int64(), func(n int64) bucket.Instant { return bucket.Instant(n) }),
		rapid.SampledFrom([]bucket.Instant{math.MinInt64, math.MinInt64 + 1, -1, 0, math.MaxInt64 - 1, math.MaxInt64}),
	).Draw(t, "instant")
}

func TestAgreesWithModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var state bucket.State
		var model buckettest.Model
		p, now := plans.Draw(t, "plan"), bucket.Instant(rapid.Int64().Draw(t, "start"))
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "change") == 0 {
				p = plans.Draw(t, "plan")
			}
			now = nextInstant(t, state, now)
			for range rapid.SampledFrom([]int{0, 1, 1, 1, 2, 30}).Draw(t, "takes") {
				sameTake(t, &state, &model, p, now)
			}
		}
	})
}

type fataler interface {
	require.TestingT
	Helper()
}

// sameTake takes a token of both and compares everything that is known then.
func sameTake(t fataler, state *bucket.State, model *buckettest.Model, p plan, now bucket.Instant) {
	t.Helper()
	a, at := p.allowance(), int64(now)
	taken := model.Take(p.rpm, p.burst, at)
	next, ok := state.Take(a, now)
	require.Equal(t, taken, ok, "taken at %d under %v", at, p)
	require.Zero(t, model.Tokens().Cmp(new(big.Rat).SetFrac64(next.Level, bucket.Token)),
		"tokens at %d under %v: %v, the model has %v", at, p, next, model.Tokens())
	require.Equal(t, model.Remaining(), next.Remaining(), "whole tokens at %d under %v", at, p)
	require.Equal(t, inRange(model.ToToken(at)), next.ToToken(now), "to one token at %d under %v", at, p)
	require.Equal(t, inRange(model.ToFull(at)), next.ToFull(now), "to full at %d under %v", at, p)
	require.GreaterOrEqual(t, next.Level, int64(0))
	require.LessOrEqual(t, next.Level, p.burst*bucket.Token)
	*state = next
}

// inRange is a wait rounded up, and cut to the longest that can be said.
func inRange(wait *big.Rat) int64 {
	if up := buckettest.Ceil(wait); up.IsInt64() {
		return up.Int64()
	}
	return math.MaxInt64
}

// Waiting for exactly as long as the bucket says is enough, and a microsecond
// less is not; from any state, also when the clock has stepped back.
func TestObeyTheAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plans.Draw(t, "plan")
		a := p.allowance()
		state := bucket.State{
			Level: rapid.Int64Range(0, p.burst*bucket.Token).Draw(t, "level"),
			At:    bucket.Instant(rapid.Int64Range(-century, century).Draw(t, "at")),
			Rate:  p.rpm, Burst: p.burst,
		}
		now := bucket.Instant(rapid.Int64Range(-century, century).Draw(t, "now"))
		state, ok := state.Take(a, now)
		if wait := state.ToToken(now); wait > 0 {
			_, early := state.Take(a, now+bucket.Instant(wait)-1)
			require.False(t, early, "one microsecond early")
			_, due := state.Take(a, now+bucket.Instant(wait))
			require.True(t, due, "when due")
		} else {
			require.True(t, ok, "no wait after a rejection")
		}
		if wait := state.ToFull(now); wait > 0 {
			require.NotEqual(t, p.burst*bucket.Token, state.Settled(a, now+bucket.Instant(wait)-1).Level, "full one microsecond early")
			require.Equal(t, p.burst*bucket.Token, state.Settled(a, now+bucket.Instant(wait)).Level, "not full when due")
		}
	})
}

// No window of time admits more than burst + rate × its length (RATE-2), however
// often it is asked, and a bucket asked all the time loses nothing to rounding.
func TestWindows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plan{rpm: values.Draw(t, "requests per minute"), burst: rapid.Int64Range(1, 40).Draw(t, "burst")}
		a := p.allowance()
		gap := max(60_000_000/p.rpm, 1)
		gaps := rapid.SliceOfN(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, gap), rapid.Int64Range(0, 3*gap)), 1, 200).Draw(t, "gaps")
		var state bucket.State
		var now bucket.Instant
		var admitted []bucket.Instant
		for _, g := range gaps {
			now += bucket.Instant(g)
			var ok bool
			if state, ok = state.Take(a, now); ok {
				admitted = append(admitted, now)
			}
		}
		for i, from := range admitted {
			for n, to := range admitted[i:] {
				most := p.burst*bucket.Token + p.rpm*int64(to-from)
				require.LessOrEqual(t, int64(n+1)*bucket.Token, most, "%d admitted from %d to %d under %v", n+1, from, to, p)
			}
		}
	})
}

// Whatever order callers bring their instants in, all that is ever admitted is
// bounded by the time between the first and the last of them.
func TestInstantsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := plan{rpm: values.Draw(t, "requests per minute"), burst: rapid.Int64Range(1, 40).Draw(t, "burst")}
		a := p.allowance()
		instants := rapid.SliceOfN(rapid.Int64Range(-100_000_000, 100_000_000), 1, 300).Draw(t, "instants")
		var state bucket.State
		var admitted int64
		for _, at := range instants {
			var ok bool
			if state, ok = state.Take(a, bucket.Instant(at)); ok {
				admitted++
			}
		}
		span := slices.Max(instants) - slices.Min(instants)
		require.LessOrEqual(t, admitted*bucket.Token, p.burst*bucket.Token+p.rpm*span)
	})
}

// Changing the allowance any number of times at one instant never raises the
// share of the burst that is there, and to and fro costs next to nothing (CHG-3).
func TestChangesMintNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := plans.Draw(t, "plan")
		state := bucket.State{
			Level: rapid.Int64Range(0, start.burst*bucket.Token).Draw(t, "level"),
			Rate:  start.rpm, Burst: start.burst,
		}
		share := func(s bucket.State) *big.Rat { return big.NewRat(s.Level, s.Burst) }
		for _, p := range rapid.SliceOfN(plans, 1, 20).Draw(t, "changes") {
			next := state.Settled(p.allowance(), state.At)
			require.LessOrEqual(t, share(next).Cmp(share(state)), 0, "from %v to %v", state, next)
			require.LessOrEqual(t, next.Level, p.burst*bucket.Token)

			back := next.Settled(plan{state.Rate, state.Burst}.allowance(), state.At)
			require.LessOrEqual(t, back.Level, state.Level, "there and back")
			require.LessOrEqual(t, state.Level-back.Level, 1+state.Burst/p.burst, "there and back again")

			rate := state.Settled(plan{p.rpm, state.Burst}.allowance(), state.At)
			require.Equal(t, state.Level, rate.Level, "the rate alone keeps the tokens")
			state = next
		}
	})
}

// Flipping between two plans while time passes gives no more than staying for
// all that time on the one that refills the larger share.
func TestFlipsWhileTimePasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := plans.Draw(t, "one plan"), plans.Draw(t, "other plan")
		state := bucket.State{Rate: a.rpm, Burst: a.burst}
		best := big.NewRat(a.rpm, a.burst)
		if other := big.NewRat(b.rpm, b.burst); other.Cmp(best) > 0 {
			best = other
		}
		current := a
		for _, pause := range rapid.SliceOfN(rapid.Int64Range(0, 1_000_000), 1, 100).Draw(t, "pauses") {
			if current == a {
				current = b
			} else {
				current = a
			}
			state = state.Settled(current.allowance(), state.At+bucket.Instant(pause))
		}
		most := new(big.Rat).Mul(best, big.NewRat(int64(state.At), 1))
		require.LessOrEqual(t, big.NewRat(state.Level, state.Burst).Cmp(most), 0, "a share of %v after %d µs", state, state.At)
	})
}

// golang/go#56287: instants that alternate made the other limiter mint tokens.
func TestBugA6AlternatingInstants(t *testing.T) {
	a := plan{60, 10}.allowance()
	state, admitted := bucket.State{Level: 0, At: 10_000_000, Rate: 60, Burst: 10}, 0
	for range 1000 {
		for _, now := range []bucket.Instant{10_000_000, 9_000_000} {
			var ok bool
			if state, ok = state.Take(a, now); ok {
				admitted++
			}
		}
	}
	require.Zero(t, admitted)
}

// envoyproxy/envoy#16407: a remainder thrown away on each refill fell short of
// the rate the oftener it was asked.
func TestBugA16PolledOften(t *testing.T) {
	a := plan{700, 10}.allowance()
	var state bucket.State
	admitted := 0
	for now := bucket.Instant(0); now <= 180_000_000; now += 2_000 {
		var ok bool
		if state, ok = state.Take(a, now); ok {
			admitted++
		}
	}
	require.Equal(t, 10+2100, admitted)
}
