package capacity_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/loadgen/capacity"
	"github.com/invoicespec/brimline/loadgen/threshold"
	"github.com/invoicespec/brimline/reports/record"
)

// queue is a target in virtual time: so many servers, service times of a mean
// with a long tail, first come first served. What it carries is servers / mean.
type queue struct {
	servers int
	mean    time.Duration
	seed    uint64
}

// eight carry 200 requests per second.
func eight(seed uint64) queue { return queue{8, 40 * time.Millisecond, seed} }

// run is the record of a step at a load, held for so long.
func (q queue) run(load float64, hold time.Duration) record.Run {
	r := rand.New(rand.NewPCG(q.seed, math.Float64bits(load)))
	const sigma = 0.8
	free := make([]float64, q.servers) // when each is
	h := hdrhistogram.New(1, 300_000_000, 3)
	least, most := int64(math.MaxInt64), int64(0)
	p := record.RunPlan{Plan: "free", Users: 1}
	s := &p.PerSecond
	tally := func(list *[]int64, at float64) {
		for len(*list) <= int(at) {
			*list = append(*list, 0)
		}
		(*list)[int(at)]++
	}
	for at := r.ExpFloat64() / load; at < hold.Seconds(); at += r.ExpFloat64() / load {
		soonest := 0
		for i := range free {
			if free[i] < free[soonest] {
				soonest = i
			}
		}
		service := q.mean.Seconds() * math.Exp(sigma*r.NormFloat64()-sigma*sigma/2)
		done := max(at, free[soonest]) + service
		free[soonest] = done
		us := int64((done - at) * 1e6)
		least, most = min(least, us), max(most, us)
		_ = h.RecordValue(us)
		tally(&s.Due, at)
		tally(&s.Admitted, done)
		p.Offered++
	}
	p.Sent, p.Admitted = p.Offered, p.Offered
	quantiles, err := record.QuantilesOf(h, least, most, 0).WithHistogram(h)
	if err != nil {
		panic(err)
	}
	p.Latency = []record.RunLatency{{Outcome: record.OutcomeAdmitted, FromDue: quantiles, FromSend: quantiles}}
	for len(s.Due) < len(s.Admitted) {
		s.Due = append(s.Due, 0)
	}
	s.RejectedRate = make([]int64, len(s.Due))
	return record.Run{PlannedMS: hold.Milliseconds(), ActualMS: hold.Milliseconds(), Plans: []record.RunPlan{p}}
}

func slo(t testing.TB, texts ...string) (list []threshold.Threshold) {
	t.Helper()
	for _, text := range texts {
		one, err := threshold.Parse(text)
		require.NoError(t, err)
		list = append(list, one)
	}
	return list
}

const hold = 10 * time.Second

// search looks for the capacity of a queue.
func search(t testing.TB, q queue, p capacity.Plan, texts ...string) record.Capacity {
	t.Helper()
	asked := slo(t, texts...)
	steps, end, err := capacity.Search(t.Context(), p, func(_ context.Context, _ int, load float64) (record.CapacityStep, error) {
		return capacity.Measure(q.run(load, hold), load, hold, asked)
	})
	require.NoError(t, err)
	c := record.Capacity{Schema: record.CapacitySchema, Steps: steps, End: end}
	capacity.Conclude(&c)
	require.NoError(t, c.Check())
	return c
}
