package replay

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/roster"
	"github.com/invoicespec/brimline/reports/timeline"
)

// free and pro are a small plan and a large one.
func free() record.ReportAllowance {
	return record.ReportAllowance{RequestsPerMinute: 1, Burst: 10, Concurrency: 2}
}
func pro() record.ReportAllowance {
	return record.ReportAllowance{RequestsPerMinute: 1, Burst: 20, Concurrency: 3}
}

// times n attempts at an instant, each as long.
func times(n int, at, hold int64) (list []timeline.Attempt) {
	for range n {
		list = append(list, timeline.Attempt{At: at, Hold: hold})
	}
	return list
}

// What somebody brings to a plan, and what a restart takes away.
func TestPhases(t *testing.T) {
	small, large := free(), pro()
	const day = 24 * 3600 * second
	move := roster.Phase{From: 5 * second, Plan: 1}
	for _, c := range []struct {
		name     string
		attempts []timeline.Attempt
		phases   []roster.Phase
		restarts []int64
		free     [2]int64 // rejected for the rate, for concurrency
		pro      [2]int64
	}{
		{"half a bucket is half of the larger one", append(times(5, 0, 0), times(12, 5*second, 0)...),
			[]roster.Phase{move}, nil, [2]int64{}, [2]int64{2, 0}},
		{"an empty one stays empty", append(times(12, 0, 0), times(4, 5*second, 0)...),
			[]roster.Phase{move}, nil, [2]int64{2, 0}, [2]int64{4, 0}},
		{"what is in flight comes along", append(times(2, 0, day), times(3, 5*second, day)...),
			[]roster.Phase{move}, nil, [2]int64{}, [2]int64{0, 2}},
		{"a restart fills the bucket", append(times(12, 0, 0), times(12, 5*second, 0)...),
			nil, []int64{5 * second}, [2]int64{4, 0}, [2]int64{}},
		{"and forgets what is in flight", append(times(3, 0, day), times(3, 5*second, day)...),
			nil, []int64{5 * second}, [2]int64{0, 2}, [2]int64{}},
		{"a moment later it does so later", append(times(3, 0, day), times(3, 5*second, day)...),
			nil, []int64{5*second + 1}, [2]int64{0, 4}, [2]int64{}},
		{"an override spends the same bucket", append(append(times(6, 0, 0), times(3, 5*second, 0)...), times(4, 6*second, 0)...),
			[]roster.Phase{{From: 5 * second, Override: &record.ReportAllowance{RequestsPerMinute: 1, Burst: 10}}, {From: 6 * second}}, nil,
			[2]int64{3, 0}, [2]int64{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := roster.Single("free", &small, 1)
			r.Plans = append(r.Plans, roster.Plan{Name: "pro", Today: &large})
			r.Phases[0] = append([]roster.Phase{{From: math.MinInt64}}, c.phases...)
			r.Restarts = c.restarts
			traffic := Traffic{Attempts: timeline.Of(c.attempts...), Roster: r, Durations: true}
			answers, err := traffic.WhatIf(t.Context(), []Ask{
				{Cells: []record.ReportAllowance{small}}, {Cells: []record.ReportAllowance{large}},
			})
			require.NoError(t, err)
			today, err := traffic.Today(t.Context())
			require.NoError(t, err)
			for plan, want := range [][2]int64{c.free, c.pro} {
				cell := answers[plan].Cells[0]
				require.Equal(t, want, [2]int64{cell.RejectedRate, cell.RejectedConcurrency}, "plan %d", plan)
				require.Equal(t, want[0]+want[1], today.Plans[plan].Anatomy.Rejected, "today's are the same")
			}
		})
	}
}

// A pass ends with its context, and leaves no worker behind.
func TestPassEndsWithItsContext(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithCancel(t.Context())
	traffic := Traffic{
		Attempts: timeline.Of(times(100_000, 0, 0)...), Roster: roster.Single("", nil, 1),
		Progress: func(done, of int64) {
			require.EqualValues(t, 100_000, of)
			cancel()
		},
	}
	_, err := traffic.WhatIf(ctx, []Ask{{}})
	require.ErrorIs(t, err, context.Canceled)
}

// A client that obeys Retry-After: what it waits, and what waits behind it.
func TestClosedLoop(t *testing.T) {
	for _, c := range []struct {
		name     string
		today    record.ReportAllowance
		attempts []timeline.Attempt
		want     record.ReportClosed
	}{
		{"one at a time, six seconds each", record.ReportAllowance{RequestsPerMinute: 10, Burst: 1},
			append(times(3, 0, 0), times(1, 60*second, 0)...),
			record.ReportClosed{Rejected: 2, Sendings: 6, UsersAffected: 1, Delay: record.ReportQuart{P50: 0, P95: 12, P99: 12, Max: 12}}},
		{"later ones wait in order", record.ReportAllowance{RequestsPerMinute: 10, Burst: 1},
			append(append(times(2, 0, 0), times(1, 1, 0)...), times(1, 600*second, 0)...),
			record.ReportClosed{Rejected: 2, Sendings: 6, UsersAffected: 1, Delay: record.ReportQuart{P50: 0, P95: 12, P99: 12, Max: 12}}},
		{"whole seconds, rounded up", record.ReportAllowance{RequestsPerMinute: 11, Burst: 1},
			append(times(2, 0, 0), times(1, 60*second, 0)...),
			record.ReportClosed{Rejected: 1, Sendings: 4, UsersAffected: 1, Delay: record.ReportQuart{P50: 0, P95: 6, P99: 6, Max: 6}}},
		{"a second where every place is taken", record.ReportAllowance{RequestsPerMinute: 600, Burst: 100, Concurrency: 1},
			append(times(2, 0, 2*second+1), times(1, 60*second, 0)...),
			record.ReportClosed{Rejected: 3, Sendings: 6, UsersAffected: 1, Delay: record.ReportQuart{P50: 0, P95: 3, P99: 3, Max: 3}}},
		{"the log ends before its turn", record.ReportAllowance{RequestsPerMinute: 1, Burst: 1},
			times(3, 0, 0), record.ReportClosed{Rejected: 1, Sendings: 2, UsersAffected: 1, Unserved: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			traffic := Traffic{Attempts: timeline.Of(c.attempts...), Roster: roster.Single("", nil, 1), Durations: true}
			answers, err := traffic.WhatIf(t.Context(), []Ask{{ClosedLoop: []record.ReportAllowance{c.today}}})
			require.NoError(t, err)
			c.want.Rate, c.want.Burst, c.want.Concurrency = c.today.RequestsPerMinute, c.today.Burst, c.today.Concurrency
			require.Equal(t, c.want, answers[0].ClosedLoop[0])
		})
	}
}

// One client wants more than there is room for, and one sends what is never
// admitted: both give up in the end.
func TestClosedLoopIsBounded(t *testing.T) {
	list := times(maxWaiting+50, 0, timeline.NoHold)
	list = append(list, timeline.Attempt{At: 1, Pool: 1, Hold: math.MaxInt64}, timeline.Attempt{At: 2, Pool: 1, Hold: 0})
	list = append(list, timeline.Attempt{At: 20_000 * second, Pool: 2})
	traffic := Traffic{Attempts: timeline.Of(list...), Roster: roster.Single("", nil, 3), Durations: true}
	answers, err := traffic.WhatIf(t.Context(), []Ask{{ClosedLoop: []record.ReportAllowance{{RequestsPerMinute: 60, Burst: 1, Concurrency: 1}}}})
	require.NoError(t, err)
	got := answers[0].ClosedLoop[0]
	const served = 20_001 // by the first: one a second
	require.EqualValues(t, maxWaiting+50-served+1, got.Unserved)
	require.EqualValues(t, served+1+maxSendings+1+served, got.Sendings)
}
