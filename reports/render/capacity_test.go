package render_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

func TestCapacity(t *testing.T) {
	steps := []record.CapacityStep{
		{Asked: 180, Load: 182.55, Goodput: 182.5, P50US: 57_600, P99US: 222_591, Verdict: record.CapacityHolds},
		{Asked: 200, Load: 203.5, Goodput: 194, P50US: 196_351, P99US: 1_596_479, Verdict: record.CapacityFails, Why: []string{"admitted.latency.p99 < 250ms: 1.60 s (of 2,013)"}},
	}
	var b strings.Builder
	require.NoError(t, render.Capacity(&b, record.Capacity{
		HoldMS: 10_000, SLO: []string{"admitted.latency.p99 < 250ms"}, Target: record.RunTarget{Hosts: []string{"127.0.0.1:8080"}},
		Scenario: record.RunScenario{Seed: 7}, Steps: steps, Said: []string{"The SLO holds up to 182.6/s at least."},
	}))
	require.Equal(t, `2 steps of 10 s against 127.0.0.1:8080, seed 7: admitted.latency.p99 < 250ms

  asked/s  load/s  goodput/s      p50     p99    slo
      180   182.6      182.5  57.6 ms  223 ms  holds
      200   203.5        194   196 ms  1.60 s  fails

  - The SLO holds up to 182.6/s at least.
`, b.String())
	require.Equal(t, "203.5/s: goodput 194/s, p99 1.60 s, fails: admitted.latency.p99 < 250ms: 1.60 s (of 2,013)", render.CapacityStep(steps[1]))
}
