package traffic_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/loadgen/traffic"
)

func TestScaled(t *testing.T) {
	s := parse(t, `duration: 30s
seed: 7
populations:
  - { plan: free, users: 20, arrival: poisson, rate: 0.5x, on-429: ignore }
  - { plan: starter, users: 3, arrival: constant, rate: 12.5, on-429: ignore }
  - { plan: pro, users: 2, arrival: { bursts: 4, every: 10s }, on-429: ignore }
`)
	cast, err := s.Cast(allowances)
	require.NoError(t, err)
	now, allowed := traffic.PerSecond(cast)
	require.InDelta(t, (20*5+3*12.5+2*24)/60, now, 1e-9)
	require.InDelta(t, 2*now, allowed, 1e-9, "free users ask for half of what they may")

	for _, factor := range []float64{0.3, 1, 1.7} {
		scaled, err := s.Scaled(factor, 12*time.Second, 9)
		require.NoError(t, err)
		require.Equal(t, 12*time.Second, scaled.Duration)
		require.EqualValues(t, 9, scaled.Seed)
		more, err := scaled.Cast(allowances)
		require.NoError(t, err)
		require.Len(t, more, len(cast))
		require.Equal(t, cast[24].Name, more[24].Name)
		got, _ := traffic.PerSecond(more)
		require.InEpsilon(t, factor*now, got, 1e-3)
	}
	scaled, err := s.Scaled(0.3, time.Second, 1)
	require.NoError(t, err)
	require.Equal(t, "0.15x", scaled.Populations[0].Rate.String())
	require.Equal(t, "3.75", scaled.Populations[1].Rate.String())
	require.Equal(t, "0.5x", s.Populations[0].Rate.String(), "the scenario stays as it was")

	for text, want := range map[string]string{
		"arrival: { on: 1s, off: 1s }, rate: 1x":                            `load.yaml:3: populations[0].arrival: "1s on, 1s off" has a rate that changes`,
		"arrival: { ramp: { from: 0, to: 1x } }":                            "which cannot be raised in steps; accepted: constant, poisson or bursts",
		"arrival: poisson, rate: 1x, mix: { valid: 3, unauthenticated: 1 }": "populations[0].mix.unauthenticated: such requests are no load to find a capacity by",
	} {
		_, err := parse(t, "duration: 9s\npopulations:\n  - { plan: free, users: 1, on-429: ignore, "+text+" }\n").Scaled(2, time.Second, 1)
		require.ErrorContains(t, err, want)
	}
}
