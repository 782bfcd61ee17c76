package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/clock"
)

// TestGateBeginsAnew: as in a new process, every pool is full.
func TestGateBeginsAnew(t *testing.T) {
	c := clock.NewFrozen(time.Unix(0, 0))
	g := renewableGate{newRenewable(func() *anonymous.Gate { return anonymous.New(c, anonymous.Config{}) })}
	for range anonymous.DefaultBurst {
		require.NoError(t, g.NoKey("a"))
	}
	require.Error(t, g.NoKey("a"))
	require.Equal(t, 1, g.Stats().Pools.Size)
	g.renew()
	require.Zero(t, g.Stats().Pools.Size)
	require.NoError(t, g.NoKey("a"))
}
