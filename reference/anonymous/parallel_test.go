package anonymous_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/limiter"
)

// together runs f in n goroutines that start at once, and waits for them.
func together(n int, f func(worker int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for worker := range n {
		all.Go(func() {
			<-start
			f(worker)
		})
	}
	close(start)
	all.Wait()
}

// Attempts that come at once from one address get exactly the burst, and what
// came back meanwhile, whether they bring keys or none.
func TestBurstIsExactAtOnce(t *testing.T) {
	c := newFrozen()
	g := anonymous.New(c, anonymous.Config{Allowance: allowance(t, 30, 100, 1000)})
	var next atomic.Int64
	for _, want := range []int64{100, 7} {
		var passed, asked atomic.Int64
		together(400, func(worker int) {
			got := ""
			if worker%2 == 0 {
				got = noKey(g, "a")
			} else {
				got = attempt(t, g, "a", int(next.Add(1)), func(ctx context.Context) (account.Record, error) {
					asked.Add(1)
					return bad(ctx)
				})
			}
			if got == "bad" {
				passed.Add(1)
			}
		})
		require.Equal(t, want, passed.Load())
		require.LessOrEqual(t, asked.Load(), want)
		c.Advance(15 * time.Second) // seven tokens and a half
	}
}

// However attempts of all kinds mix, there are never more lookups at once for an
// address than it has places; what failed is what the bucket lost; and in the end
// nothing is left in flight.
func TestMixedAttempts(t *testing.T) {
	const workers, rounds, addresses, cap, burst = 32, 150, 3, 4, 1_000_000
	c := newFrozen()
	g := anonymous.New(c, anonymous.Config{Allowance: allowance(t, 1, burst, cap), KnownKeys: 8})
	var looking, most, failed [addresses]atomic.Int64
	var problems atomic.Value
	together(workers, func(worker int) {
		for round := range rounds {
			address := (worker + round) % addresses
			pool := strconv.Itoa(address)
			ctx, leave := context.WithCancel(context.Background())
			store := func(as anonymous.Lookup) anonymous.Lookup {
				return func(ctx context.Context) (account.Record, error) {
					n := looking[address].Add(1)
					defer looking[address].Add(-1)
					for m := most[address].Load(); n > m && !most[address].CompareAndSwap(m, n); m = most[address].Load() {
					}
					return as(ctx)
				}
			}
			got := ""
			switch (worker + round/addresses) % 6 {
			case 0: // keys that many have, some of them known
				got = outcome(g.Authenticate(ctx, pool, key(round%16), good))
			case 1: // a key of its own
				got = outcome(g.Authenticate(ctx, pool, key(1000+worker*rounds+round), store(bad)))
			case 2:
				got = outcome(g.Authenticate(ctx, pool, key(1000+worker*rounds+round), store(away)))
			case 3:
				got = noKey(g, pool)
			case 4: // who goes away pays nothing if the key is found to be good
				go leave()
				outcome(g.Authenticate(ctx, pool, key(1000+worker*rounds+round), store(good)))
			case 5:
				g.Forget(key(round % 16))
				g.Stats()
			}
			if got == "bad" {
				failed[address].Add(1)
			}
			if len(got) > 4 && got[:4] == "rate" {
				problems.Store(fmt.Sprint("the pool is far from empty: ", got))
			}
			leave()
		}
	})
	require.Nil(t, problems.Load())
	for address := range addresses {
		require.LessOrEqual(t, most[address].Load(), int64(cap))
		require.Positive(t, failed[address].Load())
	}
	require.Eventually(t, func() bool { return g.Stats().Undecided == 0 }, time.Minute, time.Millisecond, "lookups that nobody waits for end as well")
	require.LessOrEqual(t, g.Stats().Known, 8)
}

// Many attempts with many keys, each of which is asked for at once by several:
// the store is asked once for each.
func TestOneLookupForEachNewKey(t *testing.T) {
	const keys, each = 50, 8
	g := anonymous.New(clock.NewReal(), anonymous.Config{Allowance: allowance(t, 1, keys, keys)})
	var asked [keys]atomic.Int64
	together(keys*each, func(worker int) {
		n := worker % keys
		got := attempt(t, g, "a", n, func(ctx context.Context) (account.Record, error) {
			asked[n].Add(1)
			return account.Record{User: strconv.Itoa(n)}, nil
		})
		if got != "good "+strconv.Itoa(n) {
			t.Errorf("key %d: %s", n, got)
		}
	})
	for n := range asked {
		require.Positive(t, asked[n].Load())
	}
	require.Equal(t, keys, g.Stats().Known)
	require.Zero(t, g.Stats().Pools.Size)
}

// CACHE-1 for addresses: 200,000 that each fail once leave no more than the
// maximum; those with good keys leave none.
func TestRotatingAddressesAreBounded(t *testing.T) {
	const addresses, most = 200_000, 10_000
	c := newFrozen()
	g := anonymous.New(c, anonymous.Config{Pools: limiter.Config{MaximumSize: most}, KnownKeys: most})
	for n := range 2 * most {
		require.Equal(t, "good alice", attempt(t, g, "good "+strconv.Itoa(n), n, good))
	}
	require.Equal(t, anonymous.Stats{Pools: limiter.Stats{Maximum: most}, Known: most}, g.Stats())
	for range 10 {
		noKey(g, "drained")
	}
	for n := range addresses {
		got := ""
		if pool := strconv.Itoa(n); n%10 == 0 {
			got = attempt(t, g, pool, addresses+n, bad)
		} else {
			got = noKey(g, pool)
		}
		if got != "bad" {
			t.Fatal(got)
		}
	}
	stats := g.Stats()
	require.Equal(t, most, stats.Pools.Size)
	require.Zero(t, stats.Undecided)
	require.Equal(t, most, stats.Known, "bad keys push no good one out")
	require.Equal(t, "rate 2", noKey(g, "drained"), "the flood washed nobody's failures away")
	c.Advance(time.Hour)
	require.Zero(t, g.Stats().Pools.Size)
}
