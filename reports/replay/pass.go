package replay

import (
	"context"
	"runtime"
	"sync"

	"github.com/invoicespec/brimline/reports/timeline"
)

// chunkLen is how many attempts go from the reader to a worker at a time, and
// chunksAhead how many of such may wait for one.
const (
	chunkLen    = 4096
	chunksAhead = 4
)

// chunk is attempts of a worker's users, in order of time.
type chunk struct {
	users    []int32
	attempts []timeline.Attempt
}

// taker takes an attempt of a user.
type taker func(user int32, a *timeline.Attempt)

// workers is how many share a pass. Users are dealt out to them in turn, so that
// worker w has the users w, w+n, w+2n...
func workers() int { return min(8, runtime.GOMAXPROCS(0)) }

// pass reads the attempts once, in order of time, and hands each to the worker
// of its user. want picks users; a pool without a user goes to nobody and is
// counted.
func (t Traffic) pass(ctx context.Context, want func(user int32) bool, take []taker) (leftOut int64, err error) {
	n := int32(len(take))
	full, free := make([]chan *chunk, n), make(chan *chunk, int(n)*(chunksAhead+2))
	filling := make([]*chunk, n)
	var group sync.WaitGroup
	for w := range take {
		full[w] = make(chan *chunk, chunksAhead)
		filling[w] = newChunk()
		group.Go(func() {
			for c := range full[w] {
				for i := range c.attempts {
					take[w](c.users[i], &c.attempts[i])
				}
				c.users, c.attempts = c.users[:0], c.attempts[:0]
				select {
				case free <- c:
				default:
				}
			}
		})
	}
	defer group.Wait()
	defer func() {
		for w, c := range full {
			if err == nil {
				c <- filling[w]
			}
			close(c)
		}
	}()
	var done int64
	for batch, err := range t.Attempts.Batches(ctx) {
		if err != nil {
			return 0, err
		}
		for i := range batch {
			user := t.Roster.UserOf[batch[i].Pool]
			if user < 0 {
				leftOut++
				continue
			}
			if !want(user) {
				continue
			}
			w := user % n
			c := filling[w]
			c.users, c.attempts = append(c.users, user), append(c.attempts, batch[i])
			if len(c.users) == chunkLen {
				full[w] <- c
				select {
				case filling[w] = <-free:
				default:
					filling[w] = newChunk()
				}
			}
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if done += int64(len(batch)); t.Progress != nil {
			t.Progress(done, t.Attempts.Len())
		}
	}
	return leftOut, nil
}

func newChunk() *chunk {
	return &chunk{users: make([]int32, 0, chunkLen), attempts: make([]timeline.Attempt, 0, chunkLen)}
}
