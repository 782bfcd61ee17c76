// Package arrival says when each request of a user is due. A schedule is a pure
// function of (process, rate, seed, user): it knows neither the other users nor
// the server, so that the schedules of any split of the users, put together, are
// those of all of them.
//
// Most callers make a [Process] with [Constant], [Poisson] or [Bursts], along a
// [Curve] where the rate changes, or from a list of [Times], and give every
// user's [Schedule] to a [Timeline], which merges them. The first request of a
// user comes at a phase of its own, not one interval late and not together with
// everybody else's.
package arrival

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"
)

// MaxRate is the highest rate of one user, in requests per minute.
const MaxRate = 1_000_000

// maxScale keeps a minute of nanoseconds times a rate's divisor inside 64 bits.
const maxScale = 1_000_000

// Rate is Requests/Per requests a minute, exactly. Get a good one from [NewRate];
// the zero value is none at all.
type Rate struct{ requests, per int64 }

// NewRate is requests/per requests a minute.
func NewRate(requests, per int64) (Rate, error) {
	if requests < 1 || per < 1 || per > maxScale || (requests-1)/per >= MaxRate {
		return Rate{}, fmt.Errorf("%d/%d requests a minute: want more than 0 and at most %d, in steps of 1/%d or coarser", requests, per, MaxRate, maxScale)
	}
	return Rate{requests: requests, per: per}, nil
}

// PerMinute is the rate as a number.
func (r Rate) PerMinute() float64 {
	if r.per == 0 {
		return 0
	}
	return float64(r.requests) / float64(r.per)
}

// after is the time that n requests take at this rate, rounded down.
func (r Rate) after(n uint64) time.Duration {
	hi, lo := bits.Mul64(n, uint64(time.Minute)*uint64(r.per))
	if hi >= uint64(r.requests) {
		return math.MaxInt64
	}
	ns, _ := bits.Div64(hi, lo, uint64(r.requests))
	return time.Duration(min(ns, math.MaxInt64))
}

type kind uint8

const (
	constant kind = iota
	poisson
	bursts
	listed
)

// Process is how requests follow each other.
type Process struct {
	kind  kind
	rate  Rate            // without a curve
	curve *Curve          // nil: the rate stays
	share float64         // of what the curve says
	size  int64           // of bursts
	every time.Duration   // of bursts
	times []time.Duration // listed
}

// Constant is requests at even distances.
func Constant(r Rate) Process { return Process{kind: constant, rate: r} }

// Poisson is requests that do not know of each other: exponential gaps.
func Poisson(r Rate) Process { return Process{kind: poisson, rate: r} }

// Bursts is size requests at one instant, again and again.
func Bursts(size int64, every time.Duration) Process {
	return Process{kind: bursts, size: size, every: every}
}

// Times is requests at these times, which do not descend, and no others. The
// list is kept.
func Times(list []time.Duration) Process { return Process{kind: listed, times: list} }

// Expected is how many requests of a user are due before end, on average over
// all users that there could be.
func (p Process) Expected(end time.Duration) float64 {
	switch {
	case p.kind == bursts:
		return float64(p.size) * float64(end) / float64(p.every)
	case p.kind == listed:
		n, _ := slices.BinarySearch(p.times, end)
		return float64(n)
	case p.curve == nil:
		return p.rate.PerMinute() * end.Minutes()
	case p.curve.own:
		return p.share * p.curve.whole / p.curve.length * float64(end)
	}
	return p.share * p.curve.until(float64(end))
}

// Peak is the highest rate of one user, in requests per minute; what is due at
// one instant is in [Process.Together].
func (p Process) Peak() float64 {
	switch {
	case p.kind == bursts:
		return float64(p.size) * float64(time.Minute) / float64(p.every)
	case p.kind == listed:
		return 60 * float64(p.within(time.Second))
	case p.curve == nil:
		return p.rate.PerMinute()
	}
	return p.share * p.curve.peak()
}

// Together is how many requests of one user are due at one instant, at most.
func (p Process) Together() int64 {
	switch p.kind {
	case bursts:
		return p.size
	case listed:
		return p.within(1)
	}
	return 1
}

// within is the most listed requests in so short a time.
func (p Process) within(d time.Duration) int64 {
	most, first := 0, 0
	for i, t := range p.times {
		for p.times[first] <= t-d {
			first++
		}
		most = max(most, i-first+1)
	}
	return int64(most)
}

// Schedule is one user's due times, which never descend. It ends with times at
// the end of time.
type Schedule struct {
	process Process
	random  rand.PCG
	phase   time.Duration
	n       uint64  // due times handed out
	at      float64 // Poisson: the last one, in nanoseconds; along a curve, in requests
	offset  float64 // along a curve: where in it the user begins, in nanoseconds
	brought float64 // what the curve has brought by then
}

// Schedule is the schedule of a user.
func (p Process) Schedule(seed int64, user string) *Schedule {
	s := &Schedule{process: p, random: source(seed, user)}
	switch {
	case p.curve != nil:
		if p.curve.own {
			s.offset = s.uniform() * p.curve.length
			s.brought = p.curve.until(s.offset)
		}
		if p.kind == constant {
			s.at = s.uniform()
		}
	case p.kind == constant:
		s.phase = time.Duration(s.uniform() * float64(p.rate.after(1)))
	case p.kind == bursts:
		s.phase = time.Duration(s.uniform() * float64(p.every))
	}
	return s
}

// source hashes, since generators whose seeds are alike begin alike.
func source(seed int64, user string) rand.PCG {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, uint64(seed)), user...))
	return *rand.NewPCG(binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:]))
}

// uniform is in [0, 1).
func (s *Schedule) uniform() float64 { return float64(s.random.Uint64()>>11) / (1 << 53) }

// Next is the next due time, counted from the start.
func (s *Schedule) Next() time.Duration {
	n := s.n
	s.n++
	switch p := s.process; {
	case p.curve != nil:
		return s.along(n)
	case p.kind == constant:
		// From the phase, not from the last one: rounding must not add up.
		return add(s.phase, p.rate.after(n))
	case p.kind == poisson:
		s.at -= math.Log1p(-s.uniform()) * float64(time.Minute) / p.rate.PerMinute()
		return whole(s.at)
	case p.kind == listed:
		if n >= uint64(len(p.times)) {
			return math.MaxInt64
		}
		return p.times[n]
	default:
		round := n / uint64(p.size)
		if hi, lo := bits.Mul64(round, uint64(p.every)); hi == 0 && lo < math.MaxInt64 {
			return add(s.phase, time.Duration(lo))
		}
		return math.MaxInt64
	}
}

// along is the due time of request n along the curve.
func (s *Schedule) along(n uint64) time.Duration {
	p, requests := &s.process, 0.0
	if p.kind == constant {
		requests = s.at + float64(n)
	} else {
		s.at -= math.Log1p(-s.uniform())
		requests = s.at
	}
	return whole(max(0, p.curve.when(s.brought+requests/p.share)-s.offset))
}

// whole stops at the end of time.
func whole(ns float64) time.Duration {
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}

// add stops at the end of time instead of beginning anew.
func add(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Count is how many requests of a user are due before end.
func (p Process) Count(seed int64, user string, end time.Duration) int64 {
	n := int64(0)
	for s := p.Schedule(seed, user); s.Next() < end; {
		n++
	}
	return n
}
