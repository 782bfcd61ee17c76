// Package timeline holds recorded attempts in order of time, to be read any
// number of times ([Timeline.Batches]): in memory, or where they are many in a
// temporary file, so that memory does not grow with the length of a log.
//
// Most callers get one from package accesslog, which uses a [Builder]; tests and
// callers with a few attempts make one by [Of].
package timeline

import (
	"container/heap"
	"context"
	"iter"
	"os"
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
// were given. It may be read by several at the same time.
type Timeline struct {
	attempts []Attempt // of one that is in memory
	file     *os.File  // of one that is not
	runs     []stretch // of the file, each in order
	n        int64
	first    int64
	last     int64
}

// Of is the timeline of a few attempts.
func Of(attempts ...Attempt) *Timeline {
	b := Builder{run: slices.Clone(attempts), disorder: true, n: int64(len(attempts))}
	b.sorted()
	t := &Timeline{attempts: b.run, n: b.n}
	if t.n > 0 {
		t.first, t.last = t.attempts[0].At, t.attempts[t.n-1].At
	}
	return t
}

// batchLen is how many attempts are in a batch.
const batchLen = 4096

// Batches yields all attempts in order. A batch is valid until the next, and not
// to be changed; an error is the last thing that is yielded.
func (t *Timeline) Batches(ctx context.Context) iter.Seq2[[]Attempt, error] {
	return func(yield func([]Attempt, error) bool) {
		if t.file == nil {
			for batch := range slices.Chunk(t.attempts, batchLen) {
				if err := ctx.Err(); err != nil {
					yield(nil, err)
					return
				}
				if !yield(batch, nil) {
					return
				}
			}
			return
		}
		if err := t.merged(ctx, yield); err != nil {
			yield(nil, err)
		}
	}
}

// merged reads the stretches of the file as one. Of one time the earlier stretch
// comes first: it is the earlier part of the log.
func (t *Timeline) merged(ctx context.Context, yield func([]Attempt, error) bool) error {
	var h readers
	for i, s := range t.runs {
		r, err := newReader(t.file, s, readerSize(len(t.runs)))
		if err != nil {
			return err
		}
		h = append(h, ranked{r, i})
	}
	heap.Init(&h)
	batch := make([]Attempt, 0, batchLen)
	for len(h) > 0 {
		top := h[0].reader
		batch = append(batch, top.next)
		if err := top.advance(); err != nil {
			return err
		}
		switch {
		case top.done():
			heap.Pop(&h)
		case len(h) > 1:
			heap.Fix(&h, 0)
		}
		if len(batch) == batchLen || len(h) == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if !yield(batch, nil) {
				return nil
			}
			batch = batch[:0]
		}
	}
	return nil
}

// readers are stretches by their next attempt.
type readers []ranked

type ranked struct {
	*reader
	place int
}

func (h readers) Len() int { return len(h) }
func (h readers) Less(i, j int) bool {
	if h[i].next.At != h[j].next.At {
		return h[i].next.At < h[j].next.At
	}
	return h[i].place < h[j].place
}
func (h readers) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *readers) Push(x any)   { *h = append(*h, x.(ranked)) }
func (h *readers) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// Len is the number of attempts.
func (t *Timeline) Len() int64 { return t.n }

// First is the time of the first attempt, in microseconds since 1970; 0 where
// there is none.
func (t *Timeline) First() int64 { return t.first }

// Last is the time of the last attempt, likewise.
func (t *Timeline) Last() int64 { return t.last }

// Close gives back what the timeline holds outside of memory.
func (t *Timeline) Close() error {
	f := t.file
	t.file = nil
	return remove(f)
}
