package replay

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/roster"
	"github.com/invoicespec/brimline/reports/timeline"
)

// instants draws instants with pauses of every size.
func instants(t *rapid.T) []int64 {
	pauses := rapid.SliceOfN(rapid.OneOf(
		rapid.Just(int64(0)),
		rapid.Int64Range(0, 2_000_000),
		rapid.Int64Range(0, 600_000_000),
		rapid.Int64Range(0, math.MaxInt64/64),
	), 1, 60).Draw(t, "pauses")
	at, list := rapid.Int64Range(math.MinInt64/4, 0).Draw(t, "start"), []int64{}
	for _, p := range pauses {
		at += p
		list = append(list, at)
	}
	return list
}

// burstNeeded is the peak of a meter over all instants.
func burstNeeded(list []int64, rate int64) int64 {
	var m meter
	for i, at := range list {
		m.add(rate, since(list[max(0, i-1)], at))
	}
	return m.peak
}

// decided is one user's outcome, through all of a pass.
func decided(list, holds []int64, a policy.Allowance) outcome {
	attempts := make([]timeline.Attempt, len(list))
	for i, at := range list {
		attempts[i] = timeline.Attempt{At: at, Hold: timeline.NoHold}
		if holds != nil {
			attempts[i].Hold = holds[i]
		}
	}
	t := Traffic{Attempts: timeline.Of(attempts...), Roster: roster.Single("", nil, 1), Durations: holds != nil}
	ask := record.ReportAllowance{RequestsPerMinute: a.RequestsPerMinute(), Burst: a.Burst()}
	if holds != nil {
		ask.Concurrency = a.Concurrency()
	}
	answers, err := t.WhatIf(context.Background(), []Ask{{Cells: []record.ReportAllowance{ask}}})
	if err != nil {
		panic(err)
	}
	c := answers[0].Cells[0]
	return outcome{attempts: int64(len(list)), rate: c.RejectedRate, concurrency: c.RejectedConcurrency}
}

// No attempt is rejected for its rate if and only if the burst is at least what
// the meter says: to the unit, also right at the edge.
func TestBurstNeededIsWhatAvoidsRejections(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.OneOf(rapid.Int64Range(1, 400), rapid.Int64Range(1, 1_000_000)).Draw(t, "rate")
		list := instants(t)
		peak := burstNeeded(list, rate)
		edge := (peak + bucket.Token - 1) / bucket.Token // the smallest whole burst that is enough
		for _, burst := range []int64{edge - 1, edge, edge + 1, rapid.Int64Range(1, 100).Draw(t, "burst")} {
			if burst < 1 {
				continue
			}
			a, err := policy.NewAllowance(rate, burst, 1)
			require.NoError(t, err)
			rejected := decided(list, nil, a).rate > 0
			require.Equal(t, peak > burst*bucket.Token, rejected, "rate %d, burst %d, needed %d units", rate, burst, peak)
		}
	})
}

func TestBurstNeeded(t *testing.T) {
	for _, c := range []struct {
		name  string
		rate  int64
		times []int64
		want  float64
	}{
		{"one attempt", 10, []int64{0}, 1},
		{"three at once", 10, []int64{5, 5, 5}, 3},
		{"as fast as the rate", 60, []int64{0, second, 2 * second}, 1},
		{"twice as fast", 60, []int64{0, second / 2, second}, 2},
		{"a pause empties the meter, not more", 60, []int64{0, 0, 3600 * second, 3600 * second}, 2},
		{"a step back drains nothing", 60, []int64{10 * second, 0}, 2},
		{"nothing drains before the first", 60, []int64{math.MinInt64, math.MinInt64}, 2},
		{"a microsecond before the meter is empty", 7, []int64{0, 8_571_428}, 1 + 4.0/60_000_000},
		{"and when it is", 7, []int64{0, 8_571_429}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, float64(burstNeeded(c.times, c.rate))/float64(bucket.Token))
		})
	}
}

func TestQuantilesAreByNearestRank(t *testing.T) {
	var peaks []int64
	for i := range int64(100) {
		peaks = append(peaks, (100-i)*bucket.Token)
	}
	require.Equal(t, record.Needs{Rate: 7, P50: 50, P90: 90, P95: 95, P99: 99, Max: 100}, needs(7, slices.Clone(peaks)))
	require.Equal(t, record.Needs{Rate: 7, P50: 51, P90: 91, P95: 96, P99: 100, Max: 101}, needs(7, append(slices.Clone(peaks), 101*bucket.Token)))
	require.Equal(t, record.Needs{Rate: 7, P50: 50, P90: 90, P95: 95, P99: 99, Max: 99}, needs(7, slices.Clone(peaks[1:])))
	require.Equal(t, record.Needs{Rate: 7, P50: 2, P90: 2, P95: 2, P99: 2, Max: 2}, needs(7, []int64{2 * bucket.Token}))
}

func TestWilson(t *testing.T) {
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{
		{17, 917, 0.0116, 0.0295},
		{5, 10, 0.2366, 0.7634},
		{1, 2, 0.0945, 0.9055},
		{0, 10, 0, 0.3000},
		{10, 10, 0.7000, 1},
	} {
		got := Wilson(c.k, c.n)
		require.InDelta(t, c.low, got[0], 0.00005)
		require.InDelta(t, c.high, got[1], 0.00005)
	}
}

// In flight is counted by a heap; here it is counted by looking at every one.
func TestConcurrencyAgainstCounting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := instants(t)
		slices.Sort(list)
		holds := rapid.SliceOfN(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 3_000_000)), len(list), len(list)).Draw(t, "holds")
		limit := rapid.Int64Range(1, 4).Draw(t, "limit")
		a, err := policy.NewAllowance(1_000_000, 1_000_000, limit)
		require.NoError(t, err)
		got := decided(list, holds, a)

		var want int64
		var admitted []int // places
		for i, at := range list {
			var flying int64
			for _, j := range admitted {
				if list[j]+holds[j] > at {
					flying++
				}
			}
			if flying >= limit {
				want++
			} else {
				admitted = append(admitted, i)
			}
		}
		require.Equal(t, outcome{attempts: int64(len(list)), concurrency: want}, got)
	})
}
