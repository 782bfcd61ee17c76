package forecast_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/loadgen/forecast"
	"github.com/invoicespec/brimline/loadgen/traffic"
)

// TestExamples: what we show can be sent to the target file that we show, which is
// the reference's, in the time of a coffee, and it shows something.
func TestExamples(t *testing.T) {
	file, err := target.ReadFile("../../examples/target.yaml")
	require.NoError(t, err)
	schema, err := jsonschema.NewCompiler().Compile("../../docs/scenario.schema.json")
	require.NoError(t, err)
	paths, err := filepath.Glob("../../examples/load*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(paths), 5)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Contains(t, string(text), "# yaml-language-server: $schema=../docs/scenario.schema.json\n")
			var v any
			require.NoError(t, yaml.Unmarshal(text, &v))
			text, err = json.Marshal(v)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &v))
			require.NoError(t, schema.Validate(v))

			s, err := traffic.Read(path)
			require.NoError(t, err)
			require.NoError(t, s.Fits(file))
			members, err := s.Cast(file.Allowances)
			require.NoError(t, err)
			require.LessOrEqual(t, s.Duration, 10*time.Minute)
			require.LessOrEqual(t, traffic.MostCharged(members, s.Duration), file.Limits.MaxOperations)
			p, err := forecast.Run(t.Context(), forecast.Question{Members: members, Duration: s.Duration, Seed: s.Seed, Limiter: exact, Latency: 50 * time.Millisecond})
			require.NoError(t, err)
			require.Positive(t, p.All.Admitted)
			require.Positive(t, p.All.RejectedRate+p.All.RejectedConcurrency)
			for i, population := range p.Populations {
				require.Positive(t, population.Admitted, "population %d", i+1)
			}
			if s.MaxRate > 0 {
				require.LessOrEqual(t, p.All.Peak, s.MaxRate)
			}
		})
	}
	// The tour's own is small: serve starts with 20 users on each plan.
	s, err := traffic.Read("../../examples/load.yaml")
	require.NoError(t, err)
	require.LessOrEqual(t, s.Duration, 30*time.Second)
	_, users := s.Plans()
	for plan, n := range users {
		require.LessOrEqual(t, n, int64(20), plan)
	}
	members, err := s.Cast(file.Allowances)
	require.NoError(t, err)
	require.LessOrEqual(t, traffic.MostCharged(members, s.Duration), int64(target.DefaultMaxOperations))
}
