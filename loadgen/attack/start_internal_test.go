package attack

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBegin(t *testing.T) {
	t.Run("at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began, late, err := begin(t.Context(), time.Time{})
			require.NoError(t, err)
			require.Zero(t, late)
			require.Zero(t, time.Since(began))
		})
	})
	t.Run("when the wall clock says so", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			now := time.Now()
			began, late, err := begin(t.Context(), now.Add(90*time.Second+time.Millisecond/2).UTC())
			require.NoError(t, err)
			require.Zero(t, late)
			require.Equal(t, 90*time.Second+time.Millisecond/2, began.Sub(now))
		})
	})
	t.Run("a little late, and the timeline is that of the others", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			at := time.Now().Round(0)
			time.Sleep(MostLate)
			began, late, err := begin(t.Context(), at)
			require.NoError(t, err)
			require.Equal(t, MostLate, late)
			require.Equal(t, MostLate, time.Since(began))
			require.True(t, began.Equal(at))
		})
	})
	t.Run("too late", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			at := time.Now().Round(0)
			time.Sleep(MostLate + 1)
			_, late, err := begin(t.Context(), at)
			require.ErrorIs(t, err, ErrStartMissed)
			require.ErrorContains(t, err, "it was to be 2000-01-01T00:00:00.000Z, now it is 2000-01-01T00:00:00.100Z")
			require.Equal(t, MostLate+1, late)
		})
	})
	t.Run("stopped while it waits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			start := time.Now()
			time.AfterFunc(3300*time.Millisecond, stop)
			_, _, err := begin(ctx, start.Add(time.Hour))
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, 3300*time.Millisecond, time.Since(start))
		})
	})
}
