package reassess

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
)

func TestMetrics(t *testing.T) {
	m := &record.ReportMetrics{Job: "engine", Figures: []record.ReportMetric{
		{Name: record.MetricSaturation, Unit: "of its places", P50: ref(0.2), P95: ref(0.4), Max: ref(0.5), Points: 9},
		{Name: record.MetricDecisionP99, Unit: "s", P50: ref(1e-6), P95: ref(2e-6), Max: ref(3e-6), Points: 9},
		{Name: record.MetricCPU, Missing: "no such meter"}, {Name: record.MetricDecisions, Total: ref(7.)},
	}}
	s := signals(m)
	require.InDelta(t, 0.5, *s.Saturated, 1e-12)
	require.InDelta(t, 2e-6, *s.Decision, 1e-12)
	require.Nil(t, s.Processors)
	require.Len(t, observed(m), 2, "what has a spread")
	require.Equal(t, []string{"Prometheus, job engine: engine saturation 0.2 of its places half of the time, 0.4 for 95 % of it, 0.5 at most."}, metered(m, record.MetricSaturation))
	require.Zero(t, signals(nil))
	require.Empty(t, observed(nil))

	e := engine{saturated: s.Saturated}
	ok, known, _ := e.room(1.4, 1, Rules())
	require.True(t, known)
	require.True(t, ok, "half of the places and two fifths more are 70 %")
	ok, _, why := e.room(1.5, 1, Rules())
	require.False(t, ok)
	require.Equal(t, "the busiest 10 s would take 75 % of its places, where 70 % are allowed", why)
	_, known, _ = engine{}.room(1, 1, Rules())
	require.False(t, known)
	require.InDelta(t, 0.75, *e.section(&record.ReportPeaks{Ten: 1}, &record.ReportPeaks{Ten: 1.5}, nil, Rules()).Share, 1e-12)
}

// A search's load steps bound the room by its latency as well.
func TestRoomByLatency(t *testing.T) {
	hold := 100.
	e := engine{name: "search", found: &record.Capacity{Holds: &hold, Steps: []record.CapacityStep{
		{Load: 40, P99US: 20_000, Verdict: record.CapacityHolds}, {Load: 60, P99US: 300_000, Verdict: record.CapacityHolds},
	}}}
	ok, _, _ := e.room(40, 0, Rules())
	require.True(t, ok)
	ok, _, why := e.room(41, 0, Rules())
	require.False(t, ok)
	require.Equal(t, "its p99 at that peak is 300 ms, where 250 ms are allowed", why)
	ok, _, why = e.room(71, 0, Rules())
	require.False(t, ok)
	require.Equal(t, "the busiest 10 s would ask for 71 a second, where 70 are 70 % of its capacity", why)
	e.found.Holds = nil
	_, known, _ := e.room(1, 0, Rules())
	require.True(t, known)
}
