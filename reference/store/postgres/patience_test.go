package postgres

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/internal/pgtest"
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

// TestWaitingForAConnectionCostsNothingOfTheAnswersTime: a call that got its
// connection late has as long for its answer as any other. Else each connection
// of a database that is back would be broken by the next who has waited.
func TestWaitingForAConnectionCostsNothingOfTheAnswersTime(t *testing.T) {
	const patience = time.Second
	cfg, err := pgxpool.ParseConfig(pgtest.Database(t))
	require.NoError(t, err)
	cfg.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	defer pool.Close()
	s := &Store{pool: pool, pulse: newPulse(), patience: patience}

	held, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	time.AfterFunc(patience/4, held.Release)
	var had time.Duration
	err = s.promptly(t.Context(), func(ctx context.Context, _ *pgxpool.Conn) error {
		start := time.Now()
		<-ctx.Done()
		had = time.Since(start)
		return ctx.Err()
	})
	require.ErrorIs(t, err, errSilent)
	require.GreaterOrEqual(t, had, patience)

	// One who never gets a connection breaks none.
	held, err = pool.Acquire(t.Context())
	require.NoError(t, err)
	opened := pool.Stat().NewConnsCount()
	err = s.promptly(t.Context(), func(context.Context, *pgxpool.Conn) error {
		t.Error("there was no connection to be had")
		return nil
	})
	require.ErrorIs(t, err, errSilent)
	held.Release()
	require.NoError(t, pool.Ping(t.Context()))
	require.Equal(t, opened, pool.Stat().NewConnsCount())
}
