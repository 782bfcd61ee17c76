// Package arrival says when each request of a user is due. A schedule is a pure
// function of (process, rate, seed, user): it knows neither the other users nor
// the server, so that the schedules of any split of the users, put together, are
// those of all of them.
//
// Most callers make a [Process] with [Constant], [Poisson] or [Bursts] and give
// every user's [Schedule] to a [Timeline], which merges them. The first request
// of a user comes at a phase of its own, not one interval late and not together
// with everybody else's.
package arrival

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"time"
)

// MaxRate is the highest rate of one user, in requests per minute.
const MaxRate = 1_000_000

// maxScale keeps a minute of nanoseconds times a rate's divisor inside 64 bits.
const maxScale = 1_000_000

// Rate is Requests/Per requests a minute, exactly. Get a good one from [NewRate].
type Rate struct{ requests, per int64 }

// NewRate is requests/per requests a minute.
func NewRate(requests, per int64) (Rate, error) {
	if requests < 1 || per < 1 || per > maxScale || (requests-1)/per >= MaxRate {
		return Rate{}, fmt.Errorf("%d/%d requests a minute: want more than 0 and at most %d, in steps of 1/%d or coarser", requests, per, MaxRate, maxScale)
	}
	return Rate{requests: requests, per: per}, nil
}

// PerMinute is the rate as a number.
func (r Rate) PerMinute() float64 { return float64(r.requests) / float64(r.per) }

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
)

// Process is how requests follow each other.
type Process struct {
	kind  kind
	rate  Rate
	size  int64
	every time.Duration
}

// Constant is requests at even distances.
func Constant(r Rate) Process { return Process{kind: constant, rate: r} }

// Poisson is requests that do not know of each other: exponential gaps.
func Poisson(r Rate) Process { return Process{kind: poisson, rate: r} }

// Bursts is size requests at one instant, again and again.
func Bursts(size int64, every time.Duration) Process {
	return Process{kind: bursts, size: size, every: every}
}

// PerMinute is the mean rate of one user.
func (p Process) PerMinute() float64 {
	if p.kind == bursts {
		return float64(p.size) * float64(time.Minute) / float64(p.every)
	}
	return p.rate.PerMinute()
}

// Together is how many requests of one user are due at one instant.
func (p Process) Together() int64 {
	if p.kind == bursts {
		return p.size
	}
	return 1
}

// Schedule is one user's due times, which never descend and never end.
type Schedule struct {
	process Process
	random  rand.PCG
	phase   time.Duration
	n       uint64  // due times handed out
	at      float64 // Poisson: the last one, in nanoseconds
}

// Schedule is the schedule of a user.
func (p Process) Schedule(seed int64, user string) *Schedule {
	s := &Schedule{process: p, random: source(seed, user)}
	switch p.kind {
	case constant:
		s.phase = time.Duration(s.uniform() * float64(p.rate.after(1)))
	case bursts:
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
	switch p := s.process; p.kind {
	case constant:
		// From the phase, not from the last one: rounding must not add up.
		return add(s.phase, p.rate.after(n))
	case poisson:
		s.at -= math.Log1p(-s.uniform()) * float64(time.Minute) / p.rate.PerMinute()
		if s.at >= math.MaxInt64 {
			return math.MaxInt64
		}
		return time.Duration(s.at)
	default:
		round := n / uint64(p.size)
		if hi, lo := bits.Mul64(round, uint64(p.every)); hi == 0 && lo < math.MaxInt64 {
			return add(s.phase, time.Duration(lo))
		}
		return math.MaxInt64
	}
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
