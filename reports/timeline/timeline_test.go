package timeline_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/timeline"
)

func TestOfSortsStably(t *testing.T) {
	tl := timeline.Of(timeline.Attempt{At: 5, Pool: 1}, timeline.Attempt{At: 2, Pool: 2}, timeline.Attempt{At: 5, Pool: 3})
	var got []timeline.Attempt
	for batch, err := range tl.Batches(t.Context()) {
		require.NoError(t, err)
		got = append(got, batch...)
	}
	require.Equal(t, []timeline.Attempt{{At: 2, Pool: 2}, {At: 5, Pool: 1}, {At: 5, Pool: 3}}, got)
	require.Equal(t, []int64{3, 2, 5}, []int64{tl.Len(), tl.First(), tl.Last()})
}

func TestBatchesEndWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range timeline.Of(timeline.Attempt{}).Batches(ctx) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

func TestRefused(t *testing.T) {
	for fate, want := range map[timeline.Fate]bool{
		timeline.Passed: false, timeline.RefusedRate: true, timeline.RefusedConcurrency: true,
		timeline.RefusedSomehow: true, timeline.OutOfOperations: false, timeline.Overloaded: false,
	} {
		require.Equal(t, want, timeline.Attempt{Fate: fate}.Refused(), "fate %d", fate)
	}
}
