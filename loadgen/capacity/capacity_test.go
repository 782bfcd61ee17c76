package capacity_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/loadgen/capacity"
	"github.com/invoicespec/brimline/reports/record"
)

// TestFindsTheCapacityOfAQueue: eight servers with a mean of 40 ms carry 200 a
// second, whatever the dice say. What can be promised lies below, and a step that
// fails by chance far below ends nothing.
func TestFindsTheCapacityOfAQueue(t *testing.T) {
	noisy := 0
	for seed := range uint64(5) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			c := search(t, eight(seed), capacity.Plan{From: 10, To: 260, By: 10, Beyond: 4}, "admitted.latency.p99 < 250ms")
			require.Equal(t, record.EndSLO, c.End)
			require.NotNil(t, c.Knee, "%v", c.Steps)
			require.LessOrEqual(t, c.Knee.From, 200.0)
			require.GreaterOrEqual(t, c.Knee.To, 200.0)
			require.Less(t, c.Knee.To-c.Knee.From, 30.0, "a band that says something")
			require.NotNil(t, c.Warning)
			require.Less(t, c.Warning.At, 200.0)
			require.Greater(t, *c.Holds, 170.0)
			require.Less(t, *c.Holds, 200.0)
			require.Contains(t, c.Said[0], "The SLO holds up to ")
			require.Contains(t, c.Said[1], "The target is full at ")
			for _, s := range c.Steps[:10] {
				if s.Verdict == record.CapacityFails {
					noisy++
				}
			}
		})
	}
	require.Positive(t, noisy, "there was something to be forgiven")
}

// TestNoKneeIsInvented where the load was far below what the target carries.
func TestNoKneeIsInvented(t *testing.T) {
	for seed := range uint64(20) {
		c := search(t, eight(seed), capacity.Plan{From: 10, To: 130, By: 10}, "admitted.latency.p99 < 2s")
		require.Equal(t, record.EndTop, c.End)
		require.Nil(t, c.Knee, "seed %d", seed)
		require.Nil(t, c.Warning, "seed %d", seed)
		require.Contains(t, c.Said[0], "at least.")
		require.Contains(t, c.Said[1], "where the target is full is not known.")
	}
}

// scripted is a search whose steps come to these verdicts.
func scripted(t *testing.T, p capacity.Plan, verdicts ...record.CapacityVerdict) record.Capacity {
	t.Helper()
	steps, end, err := capacity.Search(t.Context(), p, func(_ context.Context, n int, load float64) (record.CapacityStep, error) {
		s := record.CapacityStep{Asked: load, Offered: load, Load: load, Goodput: load, Verdict: verdicts[n-1]}
		if s.Verdict != record.CapacityHolds {
			s.Why = []string{"this machine failed to send 3 of 100 requests in time"}
		}
		return s, nil
	})
	require.NoError(t, err)
	c := record.Capacity{Schema: record.CapacitySchema, Steps: steps, End: end}
	capacity.Conclude(&c)
	require.NoError(t, c.Check())
	return c
}

func TestSearchEnds(t *testing.T) {
	const h, f, g, l = record.CapacityHolds, record.CapacityFails, record.CapacityGenerator, record.CapacityLimits
	for name, c := range map[string]struct {
		beyond   int
		verdicts []record.CapacityVerdict
		end      record.CapacityEnd
		steps    int
		holds    float64 // 0: nowhere
		said     string
	}{
		"two failing steps in a row":       {0, []record.CapacityVerdict{h, h, f, f, h}, record.EndSLO, 4, 20, "The SLO holds up to 20/s; two steps in a row after that broke it."},
		"a noisy one is forgiven":          {0, []record.CapacityVerdict{h, f, h, f, h}, record.EndTop, 5, 50, "The SLO holds up to 50/s at least."},
		"the last one fails":               {0, []record.CapacityVerdict{h, h, h, h, f}, record.EndTop, 5, 40, "The SLO holds up to 40/s at least."},
		"none holds":                       {0, []record.CapacityVerdict{f, f}, record.EndSLO, 2, 0, "The SLO held under no load that was offered, from 10/s on."},
		"steps beyond":                     {2, []record.CapacityVerdict{h, f, f, h, f}, record.EndSLO, 5, 10, "The SLO holds up to 10/s"},
		"fewer steps beyond than wished":   {9, []record.CapacityVerdict{h, h, h, f, f}, record.EndSLO, 5, 30, "The SLO holds up to 30/s"},
		"the generator ends":               {0, []record.CapacityVerdict{h, f, g}, record.EndGenerator, 3, 10, "The generator ends here: at 30/s this machine failed to send 3 of 100 requests in time. That says nothing of the target"},
		"the allowances end":               {0, []record.CapacityVerdict{h, h, l}, record.EndLimits, 3, 20, "The allowances end here: at 30/s"},
		"the generator ends beyond":        {3, []record.CapacityVerdict{h, f, f, g}, record.EndSLO, 4, 10, "The SLO holds up to 10/s; two steps"},
		"an invalid step is not a failing": {0, []record.CapacityVerdict{f, g}, record.EndGenerator, 2, 0, "The generator ends here"},
	} {
		t.Run(name, func(t *testing.T) {
			found := scripted(t, capacity.Plan{From: 10, To: 50, By: 10, Beyond: c.beyond}, c.verdicts...)
			require.Equal(t, c.end, found.End)
			require.Len(t, found.Steps, c.steps)
			require.Contains(t, fmt.Sprint(found.Said), c.said)
			require.Nil(t, found.Knee)
			if c.holds == 0 {
				require.Nil(t, found.Holds)
				return
			}
			require.Equal(t, c.holds, *found.Holds)
		})
	}
}

func TestSearchIsInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	steps, end, err := capacity.Search(ctx, capacity.Plan{From: 10, To: 50, By: 10}, func(ctx context.Context, n int, load float64) (record.CapacityStep, error) {
		if n == 3 {
			stop()
			return record.CapacityStep{}, ctx.Err()
		}
		return record.CapacityStep{Verdict: record.CapacityHolds}, nil
	})
	require.NoError(t, err)
	require.Equal(t, record.EndInterrupted, end)
	require.Len(t, steps, 2, "half a step is none")

	broken := errors.New("broken")
	_, _, err = capacity.Search(t.Context(), capacity.Plan{From: 10, To: 50, By: 10}, func(context.Context, int, float64) (record.CapacityStep, error) {
		return record.CapacityStep{}, broken
	})
	require.ErrorIs(t, err, broken)
}

func TestLoads(t *testing.T) {
	loads, err := capacity.Plan{From: 0.5, To: 0.8, By: 0.1}.Loads()
	require.NoError(t, err)
	require.InDeltaSlice(t, []float64{0.5, 0.6, 0.7, 0.8}, loads, 1e-9)
	for _, p := range []capacity.Plan{{}, {From: 1, To: 0.5, By: 1}, {From: 1, To: 2}, {From: -1, To: 2, By: 1}, {From: 1, To: 1e9, By: 1}} {
		_, err := p.Loads()
		require.Error(t, err, "%v", p)
	}
}

// TestMeasure: what the rate limit keeps away is no load, what the load side did
// not send is not the target's failure, and a full cap is.
func TestMeasure(t *testing.T) {
	of := func(change func(*record.RunPlan, *record.Run)) record.CapacityStep {
		r := eight(1).run(100, hold)
		if change != nil {
			change(&r.Plans[0], &r)
		}
		s, err := capacity.Measure(r, 100, hold, slo(t, "admitted.latency.p99 < 250ms"))
		require.NoError(t, err)
		return s
	}
	plain := of(nil)
	require.Equal(t, record.CapacityHolds, plain.Verdict, plain.Why)
	require.Len(t, plain.PerSecond, 8, "without the first fifth")
	require.InDelta(t, 100, plain.Load, 15)
	require.Equal(t, plain.Offered, plain.Load)

	limited := of(func(p *record.RunPlan, _ *record.Run) { // ten a second more, all refused by the rate limit
		p.Offered, p.RejectedRate = p.Offered+100, 100
		for i := range 10 {
			p.PerSecond.Due[i] += 10
			p.PerSecond.RejectedRate[i] += 10
		}
	})
	require.Equal(t, record.CapacityHolds, limited.Verdict, limited.Why)
	require.InDelta(t, plain.Load, limited.Load, 1e-9)
	require.InDelta(t, 10, limited.Limited, 1e-9)

	many := of(func(p *record.RunPlan, _ *record.Run) { p.Offered, p.HeldOff = p.Offered+400, 400 })
	require.Equal(t, record.CapacityLimits, many.Verdict)
	require.Contains(t, many.Why[0], "the rate limit kept ")

	full := of(func(p *record.RunPlan, _ *record.Run) { p.Offered, p.RejectedConcurrency = p.Offered+50, 50 })
	require.Equal(t, record.CapacityFails, full.Verdict)
	require.Regexp(t, `^9\d\.\d\d % of [\d,]+ requests admitted, 98\.00 % are asked for$`, full.Why[0])

	late := of(func(p *record.RunPlan, _ *record.Run) { p.Offered, p.Dropped = p.Offered+50, 50 })
	require.Equal(t, record.CapacityGenerator, late.Verdict)
	require.Contains(t, late.Why[0], "this machine failed to send 50 of ")

	busy := of(func(p *record.RunPlan, _ *record.Run) { p.Offered, p.Dropped, p.DroppedBusy = p.Offered+50, 50, 50 })
	require.Equal(t, record.CapacityFails, busy.Verdict, "the target was too slow to take them")

	unfit := of(func(_ *record.RunPlan, r *record.Run) {
		r.Untold = []record.RunDoubt{{Plan: "free", Why: "none was admitted"}, {Why: "this machine was too slow"}}
	})
	require.Equal(t, record.CapacityGenerator, unfit.Verdict)
	require.Equal(t, []string{"this machine was too slow"}, unfit.Why)

	slow, err := capacity.Measure(eight(1).run(100, hold), 100, hold, slo(t, "admitted.latency.p99 < 10ms", "pro.admitted.latency.p50 < 1s"))
	require.NoError(t, err)
	require.Equal(t, record.CapacityFails, slow.Verdict)
	require.Len(t, slow.Why, 2, "no data is no pass: %v", slow.Why)

	short, err := capacity.Measure(record.Run{}, 1, time.Second, nil)
	require.NoError(t, err)
	require.Empty(t, short.PerSecond)
}
