package clock_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/clock"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestFrozenMovesOnlyWhenMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewFrozen(noon)
		time.Sleep(time.Hour)
		require.Equal(t, noon, c.Now())
		require.Zero(t, c.Instant())

		c.Advance(90 * time.Second)
		require.Equal(t, noon.Add(90*time.Second), c.Now())
		require.EqualValues(t, 90_000_000, c.Instant())
	})
}

// In the bubble of synctest the machine's clock is ours.
func TestRealRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewReal()
		require.Zero(t, c.Instant())
		time.Sleep(1500*time.Millisecond + 999)
		require.EqualValues(t, 1_500_000, c.Instant(), "whole microseconds, rounded down")
		require.Equal(t, time.Now(), c.Now())
	})
}

func TestShiftedRunsAndMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewShifted(clock.NewReal())
		start := time.Now()
		time.Sleep(time.Second)
		c.Advance(time.Minute)
		time.Sleep(time.Second)
		require.Equal(t, start.Add(time.Minute+2*time.Second), c.Now())
		require.EqualValues(t, 62_000_000, c.Instant())
	})
}

// A date that is set back takes nothing from the timeline, and set forward again
// it counts as time passed.
func TestTheTimelineNeverStepsBack(t *testing.T) {
	c := clock.NewFrozen(noon)
	last := c.Instant()
	for _, step := range []struct {
		by      time.Duration
		date    time.Time
		instant bucket.Instant
	}{
		{10 * time.Second, noon.Add(10 * time.Second), 10_000_000},
		{-time.Hour, noon.Add(10*time.Second - time.Hour), 10_000_000},
		{0, noon.Add(10*time.Second - time.Hour), 10_000_000},
		{5 * time.Second, noon.Add(15*time.Second - time.Hour), 15_000_000},
		{-1, noon.Add(15*time.Second - time.Hour - 1), 15_000_000},
	} {
		c.Advance(step.by)
		require.Equal(t, step.date, c.Now())
		require.Equal(t, step.instant, c.Instant())
		require.GreaterOrEqual(t, c.Instant(), last)
		last = c.Instant()
	}
}

func TestPartsOfAMicrosecondAddUp(t *testing.T) {
	c := clock.NewFrozen(noon)
	for range 2500 {
		c.Advance(400)
	}
	require.EqualValues(t, 1_000, c.Instant())
	require.Equal(t, noon.Add(time.Millisecond), c.Now())
}

// Ten leaps of the longest duration there is: the timeline goes on, the date
// stays where it can be written.
func TestLeapsOfCenturies(t *testing.T) {
	c := clock.NewFrozen(noon)
	for i := range 10 {
		before := c.Instant()
		c.Advance(math.MaxInt64)
		require.InDelta(t, math.MaxInt64/1000, int64(c.Instant()-before), 1, "leap %d", i)
		require.Equal(t, noon.Add(math.MaxInt64), c.Now(), "leap %d", i)
	}
	for range 3 {
		c.Advance(math.MinInt64)
	}
	require.Equal(t, noon.Add(math.MinInt64), c.Now())
}
