package limiter_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/limiter/limitertest"
	"github.com/invoicespec/brimline/reference/policy"
)

func allowance(t testing.TB, rpm, burst, concurrency int64) policy.Allowance {
	t.Helper()
	a, err := policy.NewAllowance(rpm, burst, concurrency)
	require.NoError(t, err)
	return a
}

func newFrozen() *clock.Shifted { return clock.NewFrozen(time.Unix(0, 0)) }

func TestLocalKeepsTheContract(t *testing.T) {
	movable := func(c clock.Movable) limitertest.Harness {
		return limitertest.Harness{Limiter: limiter.NewLocal(c, limiter.Config{}), Instant: c.Instant, Advance: c.Advance}
	}
	t.Run("frozen clock", func(t *testing.T) {
		limitertest.Run(t, func(testing.TB) limitertest.Harness { return movable(newFrozen()) })
	})
	t.Run("shifted clock", func(t *testing.T) {
		limitertest.Run(t, func(testing.TB) limitertest.Harness { return movable(clock.NewShifted(clock.NewReal())) })
	})
	t.Run("real clock", func(t *testing.T) {
		limitertest.Run(t, func(testing.TB) limitertest.Harness {
			c := clock.NewReal()
			return limitertest.Harness{Limiter: limiter.NewLocal(c, limiter.Config{}), Instant: c.Instant}
		})
	})
}

// Errors tell an allowance that is none from an id that is used twice.
func TestAdmitErrors(t *testing.T) {
	ctx, l := context.Background(), limiter.NewLocal(newFrozen(), limiter.Config{})
	d, err := l.Admit(ctx, "u", policy.Allowance{}, "1")
	require.ErrorIs(t, err, limiter.ErrNoAllowance)
	require.Zero(t, d)
	require.Zero(t, l.Stats().Size, "nothing is kept of it")

	a := allowance(t, 10, 10, 2)
	_, err = l.Admit(ctx, "u", a, "1")
	require.NoError(t, err)
	d, err = l.Admit(ctx, "u", a, "1")
	require.ErrorIs(t, err, limiter.ErrDoubledID)
	require.ErrorContains(t, err, `"1"`)
	require.Zero(t, d)
}

// Asked again in their order, the decisions of many users at once on a running
// clock come out of [admission.Decide] exactly as they were.
func TestDecisionsReplayInOrder(t *testing.T) {
	const workers, rounds, users = 16, 200, 3
	c := clock.NewShifted(clock.NewReal())
	l := limiter.NewLocal(c, limiter.Config{})
	plans := []policy.Allowance{allowance(t, 1_000_000, 40, 3), allowance(t, 900_000, 7, 2), allowance(t, 1_000_000, 40, 4)}
	type made struct {
		limiter.Decision
		subject string
	}
	var mu sync.Mutex
	var all []made
	inParallel(workers, func(worker int) {
		for round := range rounds {
			subject, id := strconv.Itoa((worker+round)%users), fmt.Sprint(worker, "-", round)
			if round%50 == 0 {
				c.Advance(time.Duration(round%100-25) * time.Millisecond)
			}
			d, err := l.Admit(context.Background(), subject, plans[round%len(plans)], id)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			all = append(all, made{d, subject})
			mu.Unlock()
			if err := l.Release(context.Background(), subject, id); err != nil {
				t.Error(err)
			}
		}
	})

	slices.SortFunc(all, func(x, y made) int { return cmp.Compare(x.Order, y.Order) })
	states, last := map[string]bucket.State{}, map[string]bucket.Instant{}
	for i, d := range all {
		require.EqualValues(t, i+1, d.Order, "every order once")
		require.GreaterOrEqual(t, d.At, last[d.subject], "instants of a subject follow the order")
		last[d.subject] = d.At
		next, again := admission.Decide(states[d.subject], d.InFlight, d.Allowance, d.At)
		require.Equal(t, again, d.Decision.Decision, "decision %d", d.Order)
		states[d.subject] = next
	}
	require.Zero(t, l.SubjectsInFlight())
}

// golang/go#23145: many callers at once got more than the burst.
func TestBugA7ManyAtOnce(t *testing.T) {
	const callers, burst, refilled = 810, 400, 7
	c := newFrozen()
	l := limiter.NewLocal(c, limiter.Config{})
	a := allowance(t, 60, burst, callers)
	require.EqualValues(t, burst, admittedAtOnce(t, l, a, callers, "first"))
	c.Advance(refilled*time.Second + 999_999*time.Microsecond)
	require.EqualValues(t, refilled, admittedAtOnce(t, l, a, callers, "second"), "what came back meanwhile")
}

// jsocol/django-ratelimit#76: check and count in two calls let two pass.
func TestBugA21CheckAndCountAreOne(t *testing.T) {
	l := limiter.NewLocal(newFrozen(), limiter.Config{})
	require.EqualValues(t, 1, admittedAtOnce(t, l, allowance(t, 1, 1, 100), 20, "x"))
}

// Kong/kong#13811: parallel requests drove the count below zero, and a test for
// zero never held again.
func TestBugA23NeverBelowZero(t *testing.T) {
	l := limiter.NewLocal(newFrozen(), limiter.Config{})
	a := allowance(t, 1, 1, 100)
	require.EqualValues(t, 1, admittedAtOnce(t, l, a, 5, "first"))
	require.Zero(t, admittedAtOnce(t, l, a, 5, "second"))
	d, err := l.Admit(context.Background(), "user", a, "third")
	require.NoError(t, err)
	require.Zero(t, d.Level)
	require.EqualValues(t, time.Minute.Microseconds(), d.ToToken)
}

// llm-d/llm-d-batch-gateway#206: panic recovery and normal path both released.
func TestBugC9DoubleRelease(t *testing.T) {
	ctx, l := context.Background(), limiter.NewLocal(newFrozen(), limiter.Config{})
	a := allowance(t, 1, 100, 2)
	outcome := func(id string) admission.Outcome {
		d, err := l.Admit(ctx, "user", a, id)
		require.NoError(t, err)
		return d.Outcome
	}
	require.Equal(t, admission.Admitted, outcome("1"))
	require.Equal(t, admission.Admitted, outcome("2"))
	require.NoError(t, l.Release(ctx, "user", "1"))
	require.NoError(t, l.Release(ctx, "user", "1"))
	require.Equal(t, admission.Admitted, outcome("3"))
	require.Equal(t, admission.ConcurrencyRejected, outcome("4"))
}

// alibaba/Sentinel#628: threads that reach the check together exceeded the cap.
func TestBugC10HardCap(t *testing.T) {
	const limit, workers, rounds = 10, 100, 50
	l := limiter.NewLocal(clock.NewReal(), limiter.Config{})
	a := allowance(t, 1_000_000, 1_000_000, limit)
	require.EqualValues(t, limit, admittedAtOnce(t, l, a, workers, "held"))
	for i := range workers {
		require.NoError(t, l.Release(context.Background(), "user", fmt.Sprint("held-", i)))
	}

	var inFlight, above atomic.Int64
	inParallel(workers, func(worker int) {
		for round := range rounds {
			id := fmt.Sprint(worker, "-", round)
			d, err := l.Admit(context.Background(), "user", a, id)
			if err != nil {
				t.Error(err)
			}
			if d.Outcome == admission.Admitted {
				if inFlight.Add(1) > limit {
					above.Add(1)
				}
				inFlight.Add(-1)
			}
			if err := l.Release(context.Background(), "user", id); err != nil {
				t.Error(err)
			}
		}
	})
	require.Zero(t, above.Load())
	require.Zero(t, l.SubjectsInFlight())
}

// A permit outlives its bucket: with room for one bucket only, a flood of others
// leaves what is in flight as it was (CACHE-2).
func TestEvictionNeverLosesAPermit(t *testing.T) {
	ctx, l := context.Background(), limiter.NewLocal(newFrozen(), limiter.Config{MaximumSize: 1})
	a := allowance(t, 10, 10, 2)
	for _, id := range []string{"1", "2"} {
		d, err := l.Admit(ctx, "user", a, id)
		require.NoError(t, err)
		require.Equal(t, admission.Admitted, d.Outcome)
	}
	for i := range 100 {
		_, err := l.Admit(ctx, "other-"+strconv.Itoa(i), a, "1")
		require.NoError(t, err)
	}
	require.Equal(t, limiter.Stats{Size: 1, Maximum: 1, Evictions: 100, Lossy: 100}, l.Stats())
	d, err := l.Admit(ctx, "user", a, "3")
	require.NoError(t, err)
	require.Equal(t, admission.ConcurrencyRejected, d.Outcome)
	require.EqualValues(t, 9, d.Remaining(), "the bucket was lost, and that was counted")
	require.Equal(t, 101, l.SubjectsInFlight())
}

// CACHE-1: 15 minutes where nothing else is configured.
func TestStatsDropWhatIsIdle(t *testing.T) {
	c := newFrozen()
	l := limiter.NewLocal(c, limiter.Config{})
	_, err := l.Admit(context.Background(), "user", allowance(t, 10, 10, 2), "1")
	require.NoError(t, err)
	c.Advance(15*time.Minute - time.Microsecond)
	require.Equal(t, 1, l.Stats().Size)
	c.Advance(time.Microsecond)
	require.Equal(t, limiter.Stats{Size: 0, Maximum: limiter.DefaultMaximumSize, Evictions: 1}, l.Stats())
	require.Equal(t, 1, l.SubjectsInFlight(), "the permit stays")
}

// admittedAtOnce sends requests of one user together and counts the admitted.
func admittedAtOnce(t *testing.T, l limiter.Limiter, a policy.Allowance, callers int, name string) int64 {
	t.Helper()
	var admitted atomic.Int64
	inParallel(callers, func(caller int) {
		d, err := l.Admit(context.Background(), "user", a, fmt.Sprint(name, "-", caller))
		if err != nil {
			t.Error(err)
		}
		if d.Outcome == admission.Admitted {
			admitted.Add(1)
		}
	})
	return admitted.Load()
}

// inParallel runs f in n goroutines that start together, and waits for them.
func inParallel(n int, f func(worker int)) {
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
