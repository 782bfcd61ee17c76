package hostclock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/internal/hostclock"
)

// TestNow: what is not known says nothing, and no bound is negative.
func TestNow(t *testing.T) {
	s := hostclock.Now()
	if !s.Known {
		require.Zero(t, s)
	}
	require.GreaterOrEqual(t, s.MostOff, hostclock.State{}.MostOff)
	t.Log(s)
}
