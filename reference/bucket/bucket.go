// Package bucket is the token bucket of the contract: integers, and pure
// functions of (state, allowance, instant). It carries out RATE-1 to RATE-3,
// RATE-8, RATE-10 and CHG-1 to CHG-3.
//
// One token is [Token] units, and every microsecond adds requests/minute units,
// so a whole number of units stands for every level that can ever occur and no
// rounding mints or loses a token. Most callers want [State.Take].
//
// The state of one user fits in four integers and has no lock: whoever stores
// it (the local limiter, a Lua script, a replay in virtual time) decides how.
package bucket

import (
	"math"
	"math/bits"

	"github.com/invoicespec/brimline/reference/policy"
)

// Token is one token in units. A minute has 60,000,000 microseconds, each of
// which adds requests/minute units: requests/minute tokens in all.
const Token int64 = 60_000_000

// Instant is a point on a timeline of whole microseconds. Only differences
// matter, so any origin will do as long as one bucket keeps to it.
type Instant int64

// State is what is known of one bucket. The zero value is a bucket never seen:
// it is full at the first instant it is asked.
type State struct {
	Level int64   // units held at At; between 0 and Burst*Token
	At    Instant // the latest instant the level was settled at
	Rate  int64   // requests/minute that Level was settled under
	Burst int64   // capacity in tokens that Level was settled under; 0: never seen
}

// Settled returns the state at now under allowance a, nothing taken. Time since
// the last settlement is paid at the old rate; if the burst differs, the level
// is then scaled by new/old and rounded down to the unit (CHG-3). An instant
// before the last one adds nothing and does not move the bucket back, so
// instants that alternate mint nothing. The allowance is not the zero one.
func (s State) Settled(a policy.Allowance, now Instant) State {
	rate, burst := a.RequestsPerMinute(), a.Burst()
	if s.Burst == 0 {
		return State{Level: burst * Token, At: now, Rate: rate, Burst: burst}
	}
	if now > s.At {
		s.Level = s.grown(uint64(now) - uint64(s.At))
		s.At = now
	}
	if s.Burst != burst {
		hi, lo := bits.Mul64(uint64(s.Level), uint64(burst))
		scaled, _ := bits.Div64(hi, lo, uint64(s.Burst))
		s.Level = int64(scaled)
	}
	s.Rate, s.Burst = rate, burst
	return s
}

// grown is the level after the elapsed microseconds. Elapsed is compared with
// the time to full before it is multiplied, so no span of time overflows.
func (s State) grown(elapsed uint64) int64 {
	full := s.Burst * Token
	if elapsed >= uint64(ceilDiv(full-s.Level, s.Rate)) {
		return full
	}
	return s.Level + int64(elapsed)*s.Rate
}

// Take settles the state and takes one token if a whole one is there. A
// rejection spends nothing (RATE-8). The zero allowance takes none and leaves
// the state as it is.
func (s State) Take(a policy.Allowance, now Instant) (State, bool) {
	if a.IsZero() {
		return s, false
	}
	s = s.Settled(a, now)
	if s.Level < Token {
		return s, false
	}
	s.Level -= Token
	return s, true
}

// Remaining is the whole tokens held, rounded down.
func (s State) Remaining() int64 { return s.Level / Token }

// ToToken is the microseconds from now until one whole token is there, rounded
// up; 0 when one is. Where now lies before the last settlement the time in
// between counts as well, since nothing refills until then.
func (s State) ToToken(now Instant) int64 { return s.until(Token, now) }

// ToFull is the microseconds from now until the bucket is full, rounded up.
func (s State) ToFull(now Instant) int64 { return s.until(s.Burst*Token, now) }

// until is the wait from now for a level, at most [math.MaxInt64]. Differences
// of instants are unsigned, since those of any two need not fit an int64.
func (s State) until(level int64, now Instant) int64 {
	if s.Burst == 0 || s.Level >= level {
		return 0
	}
	wait := uint64(ceilDiv(level-s.Level, s.Rate)) // from s.At
	if now >= s.At {
		return int64(wait - min(wait, uint64(now)-uint64(s.At)))
	}
	return int64(wait + min(uint64(s.At)-uint64(now), math.MaxInt64-wait))
}

// ceilDiv is a/b rounded up, for a >= 0 and b > 0.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 {
		q++
	}
	return q
}
