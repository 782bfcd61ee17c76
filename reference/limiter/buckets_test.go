package limiter_test

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
)

// takeFrom takes one token of subject's bucket in s, at the instant of c.
func takeFrom(s store, subject string, a policy.Allowance, c clock.Clock) (taken bool) {
	s.Update(subject, func(state bucket.State) bucket.State {
		state, taken = state.Take(a, c.Instant())
		return state
	})
	return taken
}

// peek is what a store has of subject.
func peek(b *limiter.Buckets, subject string) (state bucket.State) {
	b.Update(subject, func(s bucket.State) bucket.State {
		state = s
		return s
	})
	return state
}

func TestUpdateKeepsState(t *testing.T) {
	b := limiter.NewBuckets(limiter.Config{})
	want := bucket.State{Level: 5, At: 7, Rate: 10, Burst: 10}
	b.Update("u", func(s bucket.State) bucket.State {
		require.Zero(t, s, "a bucket that is not known")
		return want
	})
	require.Equal(t, want, peek(b, "u"))
	require.Equal(t, 1, b.Stats().Size)
	require.Zero(t, peek(b, "v"))
	require.Equal(t, 1, b.Stats().Size, "a zero state is not kept")

	b.Update("u", func(bucket.State) bucket.State { return bucket.State{} })
	require.Zero(t, peek(b, "u"))
	require.Zero(t, b.Stats().Size)
	require.Zero(t, b.Stats().Evictions, "taken away, not evicted")
}

func TestUpdateIsAtomic(t *testing.T) {
	b := limiter.NewBuckets(limiter.Config{})
	inParallel(8, func(int) {
		for i := range 1000 {
			b.Update(strconv.Itoa(i%3), func(s bucket.State) bucket.State {
				return bucket.State{Level: s.Level + 1, Rate: 1, Burst: 1}
			})
		}
	})
	require.EqualValues(t, 8000, peek(b, "0").Level+peek(b, "1").Level+peek(b, "2").Level)
}

// CACHE-1: whatever is not configured is as the contract says.
func TestConfigIsNeverUnbounded(t *testing.T) {
	for _, n := range []int{0, -1} {
		b := limiter.NewBuckets(limiter.Config{MaximumSize: n, IdleExpiry: time.Duration(n)})
		require.Equal(t, 100_000, b.Stats().Maximum)
	}
}

// CACHE-2: a bucket goes after the idle expiry or when it has filled up, whichever is
// later; a refused request is a use as well.
func TestIdleExpiry(t *testing.T) {
	const us = time.Microsecond
	for _, tc := range []struct {
		name       string
		rpm, burst int64
		takes      int
		idle       time.Duration // configured
		stays      time.Duration // longest time after the last take
	}{
		{"full long before", 10, 10, 1, 15 * time.Minute, 15*time.Minute - us},
		{"full a microsecond before", 60, 900, 900, 15*time.Minute + us, 15 * time.Minute},
		{"full a microsecond after", 60, 900, 900, 15*time.Minute - us, 15*time.Minute - us},
		{"an hour to fill", 1, 60, 61, 15 * time.Minute, time.Hour - us},
		{"a short expiry", 60, 20, 1, time.Second, time.Second - us},
		{"the shortest", 60, 20, 1, 1, time.Second - us},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newFrozen()
			b := limiter.NewBuckets(limiter.Config{IdleExpiry: tc.idle})
			a := allowance(t, tc.rpm, tc.burst, 1)
			for range tc.takes {
				takeFrom(b, "u", a, c)
			}
			c.Advance(tc.stays)
			b.Sweep(c.Instant())
			require.Equal(t, 1, b.Stats().Size)
			c.Advance(us)
			b.Sweep(c.Instant())
			require.Equal(t, limiter.Stats{Maximum: limiter.DefaultMaximumSize, Evictions: 1}, b.Stats())
		})
	}
}

// An instant before the last use is no idle time.
func TestSweepAtAnEarlierInstant(t *testing.T) {
	b := limiter.NewBuckets(limiter.Config{})
	b.Update("u", func(bucket.State) bucket.State {
		return bucket.State{Level: bucket.Token, At: 1_000_000, Rate: 1, Burst: 1}
	})
	b.Sweep(0)
	require.Equal(t, 1, b.Stats().Size)
}

// Nobody need call Sweep for the memory of the idle: whoever goes on asking drops
// those beside them.
func TestUpdatesSweep(t *testing.T) {
	c := newFrozen()
	b := limiter.NewBuckets(limiter.Config{MaximumSize: 1000, IdleExpiry: time.Minute})
	a := allowance(t, 60, 20, 1)
	for i := range 500 {
		takeFrom(b, strconv.Itoa(i), a, c)
	}
	for range 3 {
		c.Advance(50 * time.Second)
		takeFrom(b, "steady", a, c)
	}
	require.Equal(t, limiter.Stats{Size: 1, Maximum: 1000, Evictions: 500}, b.Stats())
}

func TestIdleMemoryIsGivenBack(t *testing.T) {
	const users = 100_000
	c := newFrozen()
	b := limiter.NewBuckets(limiter.Config{})
	a := allowance(t, 60, 20, 1)
	before := heap()
	for i := range users {
		takeFrom(b, "user-"+strconv.Itoa(i), a, c)
	}
	full := heap() - before
	require.Equal(t, users, b.Stats().Size)
	c.Advance(time.Hour)
	b.Sweep(c.Instant())
	require.Less(t, heap()-before, full/10, "of %d bytes", full)
	require.Zero(t, b.Stats().Size)
}

// CACHE-1: as long as there is room nobody has to go, and then no more than need be.
func TestMaximumIsExact(t *testing.T) {
	for _, maximum := range []int{1, 2, 10, 5_000, limiter.DefaultMaximumSize} {
		t.Run(fmt.Sprint(maximum), func(t *testing.T) {
			c := newFrozen()
			b := limiter.NewBuckets(limiter.Config{MaximumSize: maximum})
			a := allowance(t, 10, 10, 1)
			for i := range maximum {
				takeFrom(b, strconv.Itoa(i), a, c)
			}
			require.Equal(t, limiter.Stats{Size: maximum, Maximum: maximum}, b.Stats())
			takeFrom(b, "one more", a, c)
			require.Equal(t, limiter.Stats{Size: maximum, Maximum: maximum, Evictions: 1, Lossy: 1}, b.Stats())
			require.EqualValues(t, 9, peek(b, "one more").Remaining(), "the newcomer is kept")
		})
	}
}

// CACHE-2: what says nothing goes first, and is no loss.
func TestFullBucketsGoFirst(t *testing.T) {
	c := newFrozen()
	b := limiter.NewBuckets(limiter.Config{MaximumSize: 50})
	a := allowance(t, 60, 20, 1)
	for i := range 20 {
		takeFrom(b, "early-"+strconv.Itoa(i), a, c)
	}
	c.Advance(time.Second) // the early ones are full again
	for i := range 30 {
		takeFrom(b, "late-"+strconv.Itoa(i), a, c)
	}
	for i := range 20 {
		takeFrom(b, "new-"+strconv.Itoa(i), a, c)
	}
	require.Equal(t, limiter.Stats{Size: 50, Maximum: 50, Evictions: 20}, b.Stats())
	takeFrom(b, "new-20", a, c)
	require.Equal(t, limiter.Stats{Size: 50, Maximum: 50, Evictions: 21, Lossy: 1}, b.Stats())
}

// Traefik's TTL (traefik/traefik#8235) was not renewed by use.
func TestBugF1IdleMeansUnused(t *testing.T) {
	c := newFrozen()
	b := limiter.NewBuckets(limiter.Config{IdleExpiry: 5 * time.Second})
	a := allowance(t, 1, 30, 1)
	for i := range 20 {
		require.True(t, takeFrom(b, "u", a, c))
		c.Advance(3 * time.Second)
		b.Sweep(c.Instant())
		require.EqualValues(t, 29-i+i/20, peek(b, "u").Remaining())
	}
}

// spring-cloud/spring-cloud-gateway#2453: a burst below the rate was forgotten at once.
func TestBugF2BurstBelowRate(t *testing.T) {
	c := newFrozen()
	b := limiter.NewBuckets(limiter.Config{IdleExpiry: 1})
	a := allowance(t, 300, 1, 1)
	require.True(t, takeFrom(b, "u", a, c))
	b.Sweep(c.Instant())
	require.False(t, takeFrom(b, "u", a, c))
}

// elastic/apm-server#1367: under many new keys an entry vanished between two steps.
func TestBugF6ManyNewKeys(t *testing.T) {
	const maximum = 10
	c := clock.NewReal()
	b := limiter.NewBuckets(limiter.Config{MaximumSize: maximum})
	a := allowance(t, 60, 20, 1)
	var above atomic.Int64
	inParallel(32, func(worker int) {
		for i := range 1000 {
			takeFrom(b, strconv.Itoa(worker*1000+i), a, c)
			if b.Stats().Size > maximum {
				above.Add(1)
			}
		}
	})
	require.Zero(t, above.Load())
	require.Equal(t, limiter.Stats{Size: maximum, Maximum: maximum, Evictions: 32_000 - maximum, Lossy: 32_000 - maximum}, b.Stats())
}

// nginx limit_req by way of ELares/IronTraffic#217: a flood made the limiter
// forget whoever was over the limit. falabellamichael/SignalR.E.A.C.H#76: at the
// maximum all were forgotten.
func TestBugF7F9FloodForgetsNobodyWhoSpentMore(t *testing.T) {
	for _, maximum := range []int{2, 100, 3_000} {
		t.Run(fmt.Sprint(maximum), func(t *testing.T) {
			c := newFrozen()
			b := limiter.NewBuckets(limiter.Config{MaximumSize: maximum})
			a := allowance(t, 10, 10, 1)
			for range 10 {
				require.True(t, takeFrom(b, "victim", a, c))
			}
			for i := range 10 * maximum {
				takeFrom(b, strconv.Itoa(i), a, c)
			}
			require.False(t, takeFrom(b, "victim", a, c))
		})
	}
}

// cyanheads/mcp-ts-core#405: the empty key was picked and never dropped.
func TestBugF10EmptyKey(t *testing.T) {
	c := newFrozen()
	b := limiter.NewBuckets(limiter.Config{MaximumSize: 2})
	a := allowance(t, 10, 10, 1)
	for _, subject := range []string{"", "one", "two", "three", "", "four"} {
		takeFrom(b, subject, a, c)
		require.LessOrEqual(t, b.Stats().Size, 2)
	}
}

// rack/rack-attack#85: a key that expired between two reads let a request in.
func TestBugF12NoGapAtTheExpiry(t *testing.T) {
	c := newFrozen()
	b := limiter.NewBuckets(limiter.Config{IdleExpiry: time.Second})
	a := allowance(t, 60, 1, 1)
	admitted := 0
	for range 10_000 {
		b.Sweep(c.Instant())
		if takeFrom(b, "u", a, c) {
			admitted++
		}
		c.Advance(time.Millisecond)
	}
	require.Equal(t, 10, admitted)
}

// Whatever is asked, swept and let go by, a store with room enough answers like
// one that drops nothing.
func TestDroppingWithoutLossIsInvisible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newFrozen()
		b := limiter.NewBuckets(limiter.Config{IdleExpiry: time.Duration(rapid.Int64Range(1, 20_000_000_000).Draw(t, "idle expiry"))})
		all := map[string]bucket.State{}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			c.Advance(time.Duration(rapid.Int64Range(0, 10_000_000_000).Draw(t, "pause")))
			if rapid.Bool().Draw(t, "sweep") {
				b.Sweep(c.Instant())
			}
			subject := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "subject")
			a, err := policy.NewAllowance(rapid.Int64Range(1, 300).Draw(t, "rate"), rapid.Int64Range(1, 3).Draw(t, "burst"), 1)
			require.NoError(t, err)
			want, ok := all[subject].Take(a, c.Instant())
			all[subject] = want
			require.Equal(t, ok, takeFrom(b, subject, a, c))
			require.Equal(t, want, peek(b, subject))
		}
		require.Zero(t, b.Stats().Lossy)
	})
}
