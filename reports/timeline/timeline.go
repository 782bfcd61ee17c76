// Package timeline holds recorded attempts in order of time, to be read any
// number of times ([Timeline.Batches]).
//
// Most callers get one from package accesslog; tests and callers with a few
// attempts make one by [Of].
package timeline

import (
	"cmp"
	"context"
	"iter"
	"slices"
)

// Attempt is one request that would have asked the limiter.
type Attempt struct {
	At     int64  // arrival, microseconds since 1970
	Hold   int64  // microseconds in flight; [NoHold]: unknown
	Pool   uint32 // whose bucket it draws on, as the log names it
	Status uint16 // as logged; 0: none
	Fate   Fate
}

// NoHold is the duration of an attempt that the log does not tell.
const NoHold = -1

// Fate is what a limiter did at the time, as far as the log tells.
type Fate uint8

// The fates. The zero value says of nothing that it was refused.
const (
	Passed             Fate = iota // or unknown
	RefusedRate                    // 429 for the rate
	RefusedConcurrency             // 429 for requests in flight
	RefusedSomehow                 // 429 of unknown cause
	OutOfOperations                // 402: no paid operation was left
	Overloaded                     // 503 for want of capacity
)

// Refused reports whether a limiter refused the attempt, for any cause.
func (a Attempt) Refused() bool { return a.Fate >= RefusedRate && a.Fate <= RefusedSomehow }

// Timeline is attempts in order of time; of one time, in the order in which they
// were given.
type Timeline struct{ attempts []Attempt }

// Of is the timeline of a few attempts.
func Of(attempts ...Attempt) *Timeline {
	t := &Timeline{attempts: slices.Clone(attempts)}
	slices.SortStableFunc(t.attempts, func(a, b Attempt) int { return cmp.Compare(a.At, b.At) })
	return t
}

// batchLen is how many attempts are in a batch.
const batchLen = 4096

// Batches yields all attempts in order. A batch is valid until the next; an error
// is the last thing that is yielded.
func (t *Timeline) Batches(ctx context.Context) iter.Seq2[[]Attempt, error] {
	return func(yield func([]Attempt, error) bool) {
		for batch := range slices.Chunk(t.attempts, batchLen) {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			if !yield(batch, nil) {
				return
			}
		}
	}
}

// Len is the number of attempts.
func (t *Timeline) Len() int64 { return int64(len(t.attempts)) }

// First is the time of the first attempt, in microseconds since 1970; 0 where
// there is none.
func (t *Timeline) First() int64 {
	if len(t.attempts) == 0 {
		return 0
	}
	return t.attempts[0].At
}

// Last is the time of the last attempt, likewise.
func (t *Timeline) Last() int64 {
	if len(t.attempts) == 0 {
		return 0
	}
	return t.attempts[len(t.attempts)-1].At
}

// Close gives back what the timeline holds outside of memory.
func (t *Timeline) Close() error { return nil }
