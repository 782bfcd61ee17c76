package steps

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Whoever is alone is alone, everybody gets in, and who gives up leaves no trace.
func TestDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor()
		var besides, alones, done atomic.Int32
		visit := func(enter func(context.Context, *Scenario) error, here *atomic.Int32) {
			var s Scenario
			require.NoError(t, enter(t.Context(), &s))
			require.NoError(t, enter(t.Context(), &s), "it is in already")
			here.Add(1)
			require.True(t, alones.Load() == 0 || alones.Load() == 1 && besides.Load() == 0)
			time.Sleep(time.Second)
			here.Add(-1)
			if s.stay == alone { // a target to wait for is another matter
				d.change(func() { d.taken = false })
			} else {
				require.NoError(t, d.leave(t.Context(), &s))
			}
			done.Add(1)
		}
		for i := range 40 {
			if i%4 == 0 {
				go visit(d.alone, &alones)
			} else {
				go visit(d.enter, &besides)
			}
		}
		synctest.Wait() // somebody is in
		var s Scenario
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, d.alone(impatient, &s), context.DeadlineExceeded)
		time.Sleep(time.Minute)
		require.EqualValues(t, 40, done.Load())
		require.Equal(t, []any{0, false, 0}, []any{d.inside, d.taken, d.waiting})
	})
}
