// Package admission is the decision of the contract as a pure function: first
// the token, then the permit. A rate rejection takes neither, a concurrency
// rejection has spent its token (RATE-4 to RATE-6, CONC-1, CONC-3).
//
// The limiter on a live clock, a script in a remote store and the replay of a
// log all decide as [Decide] does, and are tested against the same vectors.
package admission

import (
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/policy"
)

// Outcome says what became of a request.
type Outcome uint8

// The outcomes. The zero value is none of them.
const (
	Admitted Outcome = iota + 1
	RateRejected
	ConcurrencyRejected
)

func (o Outcome) String() string {
	switch o {
	case Admitted:
		return "admitted"
	case RateRejected:
		return "rate"
	case ConcurrencyRejected:
		return "concurrency"
	}
	return "none"
}

// Decision is what was decided and on what grounds.
type Decision struct {
	Outcome   Outcome
	Allowance policy.Allowance
	At        bucket.Instant // the instant it was decided at
	Level     int64          // units left in the bucket afterwards
	InFlight  int64          // the user's requests in flight before this one; 0 for a rate rejection, which never asks
	ToToken   int64          // microseconds until one token is there, rounded up; 0 if one is
	ToFull    int64          // microseconds until the bucket is full, rounded up
}

// Remaining is the whole tokens left after the decision.
func (d Decision) Remaining() int64 { return d.Level / bucket.Token }

// Decide decides one request of a user whose bucket is in state s and who has
// inFlight requests in flight, and returns the bucket's new state. Allowance a
// comes from [policy.NewAllowance].
func Decide(s bucket.State, inFlight int64, a policy.Allowance, now bucket.Instant) (bucket.State, Decision) {
	s, taken := s.Take(a, now)
	d := Of(s, a, now)
	switch {
	case !taken:
		d.Outcome = RateRejected
	case inFlight >= a.Concurrency():
		d.Outcome, d.InFlight = ConcurrencyRejected, inFlight
	default:
		d.Outcome, d.InFlight = Admitted, inFlight
	}
	return s, d
}

// Of describes a bucket at now in a decision whose outcome is still open, for
// callers that take token and permit in two places.
func Of(s bucket.State, a policy.Allowance, now bucket.Instant) Decision {
	return Decision{Allowance: a, At: now, Level: s.Level, ToToken: s.ToToken(now), ToFull: s.ToFull(now)}
}
