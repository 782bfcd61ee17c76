package replay_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/replay"
)

// TestDescribe: what is said of a log is what a replay of it says, but for cells,
// and a log that cannot carry one is told with the reason.
func TestDescribe(t *testing.T) {
	var busy []string
	for i := range 150 {
		busy = append(busy, line(fmt.Sprintf("192.0.2.%d", i%3), i, 200))
	}
	log := read(t, accesslog.Options{}, busy)
	replayed, err := replay.Run(t.Context(), log, ask(60, 3))
	require.NoError(t, err)
	described, err := replay.Describe(t.Context(), log)
	require.NoError(t, err)
	replayed.Cell, replayed.BurstNeeded = nil, nil
	require.Equal(t, replayed, described)

	_, err = replay.Describe(t.Context(), read(t, accesslog.Options{Scope: "/x"}, busy[:3]))
	require.EqualError(t, err, "none of the 3 entries is an attempt below /x")
}
