package limiter_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/limiter"
)

// The benchmarks of this file are what the choice of store rests on: the table
// of this package beside otter v2, used in the two ways it can be.

type store interface {
	Update(subject string, f func(bucket.State) bucket.State)
}

// stores lists the candidates. Each drops a bucket after the longer of 15
// minutes and its time to full where it can say so.
var stores = []struct {
	name string
	open func(maximum int) store
}{
	{"table", func(n int) store { return limiter.NewBuckets(limiter.Config{MaximumSize: n}) }},
	{"otter-compute", newOtterCompute},
	{"otter-entry", newOtterEntry},
}

// otterCompute keeps states as values: every update is a write, atomic by the
// lock of otter's hash bucket, and its expiry is exact.
type otterCompute struct {
	cache *otter.Cache[string, bucket.State]
}

func newOtterCompute(maximum int) store {
	return otterCompute{otter.Must(&otter.Options[string, bucket.State]{
		MaximumSize: maximum,
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[string, bucket.State]) time.Duration {
			return max(limiter.DefaultIdleExpiry, time.Duration(e.Value.ToFull(e.Value.At))*time.Microsecond)
		}),
	})}
}

func (o otterCompute) Update(subject string, f func(bucket.State) bucket.State) {
	o.cache.Compute(subject, func(s bucket.State, _ bool) (bucket.State, otter.ComputeOp) {
		return f(s), otter.WriteOp
	})
}

// otterEntry keeps pointers: an update is a read of the cache and a lock of the
// entry, which otter may evict meanwhile, so that is looked for as well. Its
// expiry knows nothing of the time to full.
type otterEntry struct {
	cache *otter.Cache[string, *entry]
}

type entry struct {
	mu    sync.Mutex
	state bucket.State
	gone  bool
}

func newOtterEntry(maximum int) store {
	return otterEntry{otter.Must(&otter.Options[string, *entry]{
		MaximumSize:      maximum,
		ExpiryCalculator: otter.ExpiryAccessing[string, *entry](limiter.DefaultIdleExpiry),
		OnAtomicDeletion: func(e otter.DeletionEvent[string, *entry]) {
			e.Value.mu.Lock()
			e.Value.gone = true
			e.Value.mu.Unlock()
		},
	})}
}

func (o otterEntry) Update(subject string, f func(bucket.State) bucket.State) {
	for {
		e, ok := o.cache.GetIfPresent(subject)
		if !ok {
			e, _ = o.cache.SetIfAbsent(subject, &entry{})
		}
		e.mu.Lock()
		if !e.gone {
			e.state = f(e.state)
			e.mu.Unlock()
			return
		}
		e.mu.Unlock()
	}
}

// BenchmarkStore is one token taken by a user drawn at random. Bytes a user are
// what the heap grew by until every user was known.
func BenchmarkStore(b *testing.B) {
	a := allowance(b, 1_000_000, 1_000_000, 1)
	c := clock.NewReal()
	for _, n := range []int{1, 1_000, 100_000} {
		users := userNames(n)
		for _, candidate := range stores {
			b.Run(fmt.Sprintf("store=%s/users=%d", candidate.name, n), func(b *testing.B) {
				take := func(state bucket.State) bucket.State {
					state, _ = state.Take(a, c.Instant())
					return state
				}
				before := heap()
				s := candidate.open(limiter.DefaultMaximumSize)
				for _, user := range users {
					s.Update(user, take)
				}
				grown := heap() - before
				parallel(b, users, func(user, _ string) { s.Update(user, take) })
				b.ReportMetric(float64(grown)/float64(n), "B/user")
				runtime.KeepAlive(s)
			})
		}
	}
}

// BenchmarkFlood is one new user met by a store that is full. A hundred users
// who had spent everything before, half of whom go on asking, are asked for
// afterwards: whoever gets a token was forgotten.
func BenchmarkFlood(b *testing.B) {
	const maximum, drained = 10_000, 100
	a := allowance(b, 10, 10, 1)
	for _, candidate := range stores {
		b.Run("store="+candidate.name, func(b *testing.B) {
			c := clock.NewFrozen(time.Unix(0, 0))
			s := candidate.open(maximum)
			random := rand.New(rand.NewPCG(1, 2))
			asked := 0
			for i := range drained {
				for range 10 {
					takeFrom(s, "drained-"+strconv.Itoa(i), a, c)
				}
			}
			flood := func(i int) {
				takeFrom(s, "flood-"+strconv.Itoa(i), a, c)
				if i%20 == 0 {
					asked++
					takeFrom(s, "drained-"+strconv.Itoa(random.IntN(drained/2)), a, c)
				}
			}
			const warm = 3 * maximum
			for i := range warm {
				flood(i)
			}
			b.ResetTimer()
			for i := range b.N {
				flood(warm + i)
			}
			b.StopTimer()
			active, idle := 0, 0
			for i := range drained {
				if !takeFrom(s, "drained-"+strconv.Itoa(i), a, c) {
					continue
				}
				if i < drained/2 {
					active++
				} else {
					idle++
				}
			}
			b.ReportMetric(float64(active)/(drained/2)*100, "active-forgotten-%")
			b.ReportMetric(float64(idle)/(drained/2)*100, "idle-forgotten-%")
		})
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
