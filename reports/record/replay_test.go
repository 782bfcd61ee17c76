package record_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
)

// keys are the members of v as JSON.
func keys(t *testing.T, v any) map[string]any {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	m := map[string]any{}
	require.NoError(t, json.Unmarshal(text, &m))
	return m
}

// Others script against these: one allowance puts its figures at the top level.
func TestReplayKeys(t *testing.T) {
	scripted := []string{"rejected_rate", "rejected_concurrency", "rejected", "users_affected"}
	always := []string{"schema", "entries", "attempts", "users", "pool", "log", "assumed", "missing", "warnings", "not_attempts", "already_refused"}

	one := keys(t, record.Replay{Cell: &record.Cell{Rate: 10, Burst: 5}})
	for _, k := range append(append([]string{"rate", "burst"}, scripted...), always...) {
		require.Contains(t, one, k)
	}
	require.NotContains(t, one, "cells")
	require.NotContains(t, one, "concurrency", "not replayed")

	grid := keys(t, record.Replay{Cells: []record.Cell{{Rate: 10, Burst: 5, Concurrency: 2}}})
	for _, k := range always {
		require.Contains(t, grid, k)
	}
	for _, k := range append([]string{"rate", "burst", "concurrency"}, scripted...) {
		require.NotContains(t, grid, k)
		require.Contains(t, grid["cells"].([]any)[0], k)
	}

	refused := keys(t, record.Replay{Refused: "no durations"})
	require.Equal(t, "no durations", refused["refused"])
	for _, k := range scripted {
		require.NotContains(t, refused, k, "a replay that was refused has no figures")
	}
}

func TestReplayRoundTrip(t *testing.T) {
	for name, want := range map[string]record.Replay{
		"one":     {Schema: record.ReplaySchema, Users: 3, Cell: &record.Cell{Rate: 10, Burst: 5, Rejections: record.Rejections{Rejected: 7, UsersOK95: [2]float64{0.25, 0.5}}}},
		"grid":    {Cells: []record.Cell{{Rate: 1, WithoutRefused: &record.Rejections{Rejected: 2}}}, BurstNeeded: []record.Needs{{Rate: 1, Max: 2.5}}},
		"refused": {Refused: "so"},
		"agreed":  {Cell: &record.Cell{}, Agreement: &record.Agreed{Compared: 2, First: &record.Disagreement{RequestID: "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(want)
			require.NoError(t, err)
			var got record.Replay
			require.NoError(t, json.Unmarshal(text, &got))
			require.Equal(t, want, got)
		})
	}
}
