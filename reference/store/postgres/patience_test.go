package postgres

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPatienceCountsFromTheLastSignOfLife: a call ends when the database has told
// nobody anything for long enough, and not because it is asked much.
func TestPatienceCountsFromTheLastSignOfLife(t *testing.T) {
	const silence = 150 * time.Millisecond
	for name, c := range map[string]struct {
		beats time.Duration // of others, every so often; 0: none
		until time.Duration // after which none comes
		want  time.Duration
	}{
		"silent from the start":  {0, 0, silence},
		"busy for a while":       {100 * time.Millisecond, 700 * time.Millisecond, 700*time.Millisecond + silence},
		"busy for ever":          {100 * time.Millisecond, time.Hour, mostPatience},
		"heard of just too late": {160 * time.Millisecond, time.Hour, silence},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPulse()
				time.Sleep(time.Minute) // an old sign of life is none
				start := time.Now()
				ctx, stop := p.watch(context.Background(), silence)
				defer stop()
				quit := make(chan struct{})
				go func() {
					for c.beats > 0 && time.Since(start) < c.until {
						select {
						case <-time.After(c.beats):
							p.beat()
						case <-quit:
							return
						}
					}
				}()
				<-ctx.Done()
				close(quit)
				require.Equal(t, c.want, time.Since(start))
				require.ErrorIs(t, context.Cause(ctx), errSilent)
			})
		})
	}
}
