package capacity

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSticksOfKnownShape are found exactly.
func TestSticksOfKnownShape(t *testing.T) {
	for name, want := range map[string]stick{
		"flat after the knee":  {knee: 55, before: 1},
		"falls after the knee": {knee: 42, before: 0.9, after: -0.4},
		"rises at a level":     {knee: 61, level: 3, before: 0.01, after: 0.2},
	} {
		t.Run(name, func(t *testing.T) {
			var points []point
			for x := 10.0; x <= 100; x += 10 {
				points = append(points, point{x, want.at(x)})
			}
			got, ok := breakAt(points, want.level == 0)
			require.True(t, ok)
			require.InDelta(t, want.knee, got.knee, 1e-6)
			require.InDelta(t, want.before, got.before, 1e-6)
			require.InDelta(t, want.after, got.after, 1e-6)
			require.InDelta(t, want.level, got.level, 1e-6)
			require.InDelta(t, 0, got.rss, 1e-9)
		})
	}
	_, ok := breakAt([]point{{1, 1}, {2, 2}, {3, 2}}, true)
	require.False(t, ok, "a knee needs two points on each side")
	_, ok = breakAt([]point{{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, false)
	require.False(t, ok, "one load tells no slope")
}

func TestQuantile(t *testing.T) {
	list := []float64{1, 2, 3, 4}
	require.Equal(t, []float64{1, 1, 2, 4, 4}, []float64{quantile(list, 0), quantile(list, 0.25), quantile(list, 0.5), quantile(list, 0.975), quantile(list, 1)})
	require.False(t, math.IsNaN(quantile([]float64{7}, 0.5)))
}
