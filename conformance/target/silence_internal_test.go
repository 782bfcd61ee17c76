package target

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSilenceIsCountedInARow(t *testing.T) {
	var s silence
	for range mostSilent - 1 {
		s.heard(false, true)
	}
	require.NoError(t, s.away())
	s.heard(false, false) // closed at once: somebody is there
	require.NoError(t, s.away())
	s.heard(true, true)
	s.heard(false, true)
	require.NoError(t, s.away())
	for range mostSilent {
		s.heard(false, true)
	}
	require.ErrorIs(t, s.away(), ErrAway)
	require.ErrorContains(t, s.away(), "requests in a row got no answer")
	s.heard(true, false) // one that was on its way
	require.NoError(t, s.away())
}
