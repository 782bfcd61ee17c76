package permit_test

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/reference/permit"
)

func TestTakeAndRelease(t *testing.T) {
	table := permit.New()
	for i := range int64(3) {
		inFlight, ok := table.Take("u", fmt.Sprint(i), 3)
		require.True(t, ok)
		require.Equal(t, i, inFlight, "in flight before this one")
	}
	inFlight, ok := table.Take("u", "one too many", 3)
	require.False(t, ok)
	require.EqualValues(t, 3, inFlight)
	require.False(t, table.Release("u", "one too many"), "a refused request holds nothing")

	require.True(t, table.Release("u", "1"))
	require.EqualValues(t, 2, table.InFlight("u"))
	_, ok = table.Take("u", "one too many", 3)
	require.True(t, ok, "the slot that was given back")
}

func TestSubjectsAreApart(t *testing.T) {
	table := permit.New()
	_, ok := table.Take("a", "1", 1)
	require.True(t, ok)
	_, ok = table.Take("b", "1", 1)
	require.True(t, ok, "the same id of another subject is another request")
	_, ok = table.Take("", "1", 1)
	require.True(t, ok, "a subject without a name is one as well")
	require.False(t, table.Release("c", "1"), "nobody gives back another's slot")
	require.True(t, table.Release("a", "1"))
	require.Zero(t, table.InFlight("a"))
	require.EqualValues(t, 1, table.InFlight("b"))
}

// A lowered cap refuses until enough were given back, and takes nothing away
// (CHG-4). resilience4j/resilience4j#981: lowering it hung.
func TestLoweredAndRaisedLimit(t *testing.T) {
	table := permit.New()
	for i := range 5 {
		_, ok := table.Take("u", strconv.Itoa(i), 5)
		require.True(t, ok)
	}
	for i := range 4 {
		inFlight, ok := table.Take("u", "next", 2)
		require.False(t, ok)
		require.EqualValues(t, 5-i, inFlight)
		require.True(t, table.Release("u", strconv.Itoa(i)))
	}
	_, ok := table.Take("u", "next", 2)
	require.True(t, ok, "the count is below the lower cap")
	_, ok = table.Take("u", "more", 3)
	require.True(t, ok, "a higher cap is there at once")
}

func TestNoLimitBelowOneLetsAnybodyIn(t *testing.T) {
	table := permit.New()
	for _, limit := range []int64{0, -1, -1 << 63} {
		_, ok := table.Take("u", "1", limit)
		require.False(t, ok)
	}
	require.Zero(t, table.Subjects())
}

// An id that is in flight already is refused, and the first one's slot is as it
// was: released once, then free.
func TestDoubledID(t *testing.T) {
	table := permit.New()
	_, ok := table.Take("u", "1", 5)
	require.True(t, ok)
	inFlight, ok := table.Take("u", "1", 5)
	require.False(t, ok)
	require.EqualValues(t, 1, inFlight, "below the limit: that is how it is told from a full cap")

	require.True(t, table.Release("u", "1"))
	require.False(t, table.Release("u", "1"))
	require.Zero(t, table.InFlight("u"))
	_, ok = table.Take("u", "1", 5)
	require.True(t, ok, "no longer in flight, so no longer doubled")
}

// llm-d/llm-d-batch-gateway#206: a second release raised the real cap.
func TestBugC9DoubleRelease(t *testing.T) {
	const limit = 3
	table := permit.New()
	for i := range limit {
		_, ok := table.Take("u", strconv.Itoa(i), limit)
		require.True(t, ok)
	}
	require.True(t, table.Release("u", "0"))
	for range 10 {
		require.False(t, table.Release("u", "0"))
	}
	_, ok := table.Take("u", "a", limit)
	require.True(t, ok)
	_, ok = table.Take("u", "b", limit)
	require.False(t, ok, "ten releases of one permit freed one slot")
}

// traefik/traefik#13876: an entry of zero stayed for every client ever seen.
func TestBugF4NothingStaysOfTheIdle(t *testing.T) {
	table := permit.New()
	for i := range 10_000 {
		subject := strconv.Itoa(i)
		_, ok := table.Take(subject, "1", 1)
		require.True(t, ok)
		_, ok = table.Take(subject, "2", 1)
		require.False(t, ok)
		require.True(t, table.Release(subject, "1"))
	}
	require.Zero(t, table.Subjects())
}

// alibaba/Sentinel#628: check, then add, let 13 in where 10 were allowed.
func TestBugC10HardCap(t *testing.T) {
	const limit, workers, rounds = 10, 100, 200
	table := permit.New()
	var held, most, refused atomic.Int64
	inParallel(workers, func(worker int) {
		for round := range rounds {
			id := fmt.Sprint(worker, "-", round)
			if _, ok := table.Take("u", id, limit); !ok {
				refused.Add(1)
				continue
			}
			raise(&most, held.Add(1))
			held.Add(-1)
			if !table.Release("u", id) {
				t.Error("a permit that was held could not be given back")
			}
		}
	})
	require.LessOrEqual(t, most.Load(), int64(limit))
	require.Zero(t, table.Subjects())

	var taken atomic.Int64
	inParallel(workers, func(worker int) {
		if _, ok := table.Take("u", fmt.Sprint(worker), limit); ok {
			taken.Add(1)
		}
	})
	require.EqualValues(t, limit, taken.Load(), "all at once: neither above the cap nor below it")
}

// Of many releases of one permit at once exactly one is it.
func TestReleasedOnceInParallel(t *testing.T) {
	table := permit.New()
	for range 100 {
		_, ok := table.Take("u", "1", 1)
		require.True(t, ok)
		var released atomic.Int64
		inParallel(8, func(int) {
			if table.Release("u", "1") {
				released.Add(1)
			}
		})
		require.EqualValues(t, 1, released.Load())
	}
}

// The table agrees with a plain set of what is in flight, whatever happens.
func TestAgreesWithASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, model := permit.New(), map[string]map[string]bool{}
		names := rapid.SampledFrom([]string{"", "a", "b", "ab"})
		subjects := func() (n int) {
			for _, held := range model {
				if len(held) > 0 {
					n++
				}
			}
			return n
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			subject, id := names.Draw(t, "subject"), names.Draw(t, "id")
			held := model[subject]
			if rapid.Bool().Draw(t, "release") {
				require.Equal(t, held[id], table.Release(subject, id))
				delete(held, id)
			} else {
				limit := rapid.Int64Range(0, 4).Draw(t, "limit")
				inFlight, ok := table.Take(subject, id, limit)
				require.EqualValues(t, len(held), inFlight)
				require.Equal(t, int64(len(held)) < limit && !held[id], ok)
				if ok {
					if held == nil {
						model[subject] = map[string]bool{}
					}
					model[subject][id] = true
				}
			}
			require.EqualValues(t, len(model[subject]), table.InFlight(subject))
			require.Equal(t, subjects(), table.Subjects())
		}
	})
}

// inParallel runs f in n goroutines that start together, and waits for them.
func inParallel(n int, f func(worker int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	all.Wait()
}

func raise(most *atomic.Int64, n int64) {
	for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
	}
}
