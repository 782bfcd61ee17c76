package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reference/invoice"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/wiring"
	"github.com/invoicespec/brimline/reports/record"
)

const evenLoad = `duration: 30s
seed: 7
populations:
  - { plan: enterprise, users: 30, arrival: poisson, rate: 0.5x, on-429: ignore }
`

// openPaced is a server that carries 50 requests a second.
func openPaced(t *testing.T) loadSite {
	return openLoadSite(t, server.Config{Users: 30, Engine: invoice.NewPaced(2, 40*time.Millisecond)}, func(f *target.File) { f.Limits.MaxOperations = 100_000 })
}

func (s loadSite) capacity(t *testing.T) record.Capacity {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "run", "capacity.json"))
	require.NoError(t, err)
	var c record.Capacity
	require.NoError(t, json.Unmarshal(text, &c))
	require.NoError(t, c.Check())
	requireSchemaOf(t, filepath.Join(s.dir, "run", "capacity.json"), "../../docs/capacity.schema.json")
	return c
}

// TestFindCapacity has a server whose engine is the bottleneck. How much of what
// it could carry it carries beside all other tests is not asked; that it is never
// said to carry more is.
func TestFindCapacity(t *testing.T) {
	site := openPaced(t)
	code, out, errs := site.load(t.Context(), t, evenLoad, "--find-capacity", "--slo", "admitted.latency.p99 < 1500ms", "--from", "10", "--to", "90", "--step", "20", "--hold", "2s")
	c := site.capacity(t)
	require.Contains(t, out, "capacity: "+filepath.Join(site.dir, "run", "capacity.json"))
	require.Contains(t, errs, "5 steps of 2s, from 10 to 90 requests per second")
	require.NotEmpty(t, c.Said)
	for i, s := range c.Steps {
		require.InDelta(t, float64(10+20*i), s.Asked, 1e-9)
		require.LessOrEqual(t, s.Goodput, 50.0+2, "two invoices may have been under way when the second began")
		r, err := record.ReadRun(filepath.Join(site.dir, "run", s.Folder))
		require.NoError(t, err)
		require.EqualValues(t, 7+i+1, r.Scenario.Seed)
		require.EqualValues(t, 2000, r.PlannedMS)
		require.Equal(t, c.Target, r.Target)
	}
	if c.Holds != nil && c.End != record.EndGenerator {
		require.Less(t, *c.Holds, 90.0)
	}
	require.Contains(t, []int{exitHolds, exitFails, exitCannotTell}, code)
	require.Equal(t, c.End == record.EndGenerator, code == exitCannotTell, errs)
	code, _, errs = site.load(t.Context(), t, evenLoad, "--find-capacity", "--slo", "admitted.latency.p99 < 1s")
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "holds a run already")
}

// TestNoLoadHoldsAnImpossibleSLO: two steps, and the exit code of what is broken.
func TestNoLoadHoldsAnImpossibleSLO(t *testing.T) {
	site := openPaced(t)
	code, out, errs := site.load(t.Context(), t, evenLoad+"thresholds: [admitted.latency.p50 < 1ms]\n", "--find-capacity", "--to", "8", "--step", "2", "--hold", "2s")
	c := site.capacity(t)
	if c.End == record.EndGenerator { // a machine that is too busy to send eight requests in time
		require.Equal(t, exitCannotTell, code)
		return
	}
	require.Equal(t, exitFails, code, errs)
	require.Len(t, c.Steps, 2)
	require.Equal(t, []string{"admitted.latency.p50 < 1ms"}, c.SLO)
	require.Contains(t, out, "The SLO held under no load that was offered")
}

// TestFindCapacityIsInterrupted in its second step: what was found is left.
func TestFindCapacityIsInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	site := openLoadSite(t, server.Config{Users: 30, Alter: func(p *wiring.Parts) {
		p.Engine = &stopping{Engine: p.Engine, stop: stop, after: 90}
	}}, nil)
	code, out, errs := site.load(ctx, t, evenLoad, "--find-capacity", "--slo", "admitted.latency.p99 < 20s", "--from", "15", "--to", "40", "--step", "5", "--hold", "3s")
	require.Equal(t, exitCannotTell, code, errs)
	c := site.capacity(t)
	if c.End == record.EndGenerator {
		return
	}
	require.Equal(t, record.EndInterrupted, c.End)
	require.NotEmpty(t, c.Steps)
	require.Contains(t, out, "The search was interrupted.")
	require.Contains(t, errs, "interrupted before a capacity was found")
}

func TestFindCapacityOfNobody(t *testing.T) {
	site := openPaced(t)
	require.NoError(t, site.server.Close(t.Context()))
	code, _, errs := site.load(t.Context(), t, evenLoad, "--find-capacity", "--slo", "admitted.latency.p99 < 1s")
	require.Equal(t, exitCannotTell, code, errs)
	require.Contains(t, errs, "the target is away")
}

func TestFindCapacityIsRefused(t *testing.T) {
	site := openPaced(t)
	slo := []string{"--find-capacity", "--slo", "admitted.latency.p99 < 1s"}
	for name, c := range map[string]struct {
		scenario string
		flags    []string
		want     string
	}{
		"no SLO":                {evenLoad, []string{"--find-capacity"}, "--find-capacity needs --slo THRESHOLD"},
		"an SLO that is none":   {evenLoad, []string{"--find-capacity", "--slo", "quick"}, "--slo: "},
		"an SLO alone":          {evenLoad, []string{"--slo", "admitted.latency.p99 < 1s"}, "--slo goes with --find-capacity"},
		"a shard":               {evenLoad, append(slo, "--shard", "0/2", "--start-at", time.Now().Add(time.Minute).UTC().Format(time.RFC3339)), "--find-capacity and --shard exclude each other"},
		"a short hold":          {evenLoad, append(slo, "--hold", "1s"), "--hold: 1s is out of range; accepted: 2s to 10m"},
		"beyond the allowances": {evenLoad, append(slo, "--to", "1000"), "--to: at 1000/s some users would ask for more than they may, and what is found would be their allowances; accepted: up to "},
		"no steps":              {evenLoad, append(slo, "--from", "20", "--to", "10"), "--from, --to, --step: from 20 to 10"},
		"a changing rate":       {"duration: 9s\npopulations:\n  - { plan: free, users: 1, arrival: { ramp: { from: 0, to: 1x } }, on-429: ignore }\n", slo, "has a rate that changes, which cannot be raised in steps"},
		"too many operations":   {evenLoad, append(slo, "--hold", "10m", "--step", "1"), "operations may be charged, limits.max-operations of the target is 100000"},
		"more than max-rate":    {"max-rate: 5\n" + evenLoad, append(slo, "--to", "20"), "requests that are planned for the busiest second at"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := site.load(t.Context(), t, c.scenario, c.flags...)
			require.Equal(t, exitUsage, code, errs)
			require.Contains(t, errs, c.want)
			require.Empty(t, out)
			require.NoDirExists(t, filepath.Join(site.dir, "run"))
		})
	}
}
