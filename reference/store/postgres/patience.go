package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// mostPatience is how long a call of the API waits for a database that is busy,
// not away: it goes on answering others.
const mostPatience = 2 * time.Second

// pulse is when the database was last heard of, on this machine's own clock. A
// silence tells one that is away or hangs from one that many ask at once.
type pulse struct {
	start time.Time
	last  atomic.Int64 // nanoseconds since start
}

func newPulse() *pulse { return &pulse{start: time.Now()} }

func (p *pulse) beat() { p.last.Store(int64(time.Since(p.start))) }

// watch ends ctx once the database has been silent for so long, counted from now
// at the earliest.
func (p *pulse) watch(ctx context.Context, silence time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeoutCause(ctx, mostPatience, fmt.Errorf("%w after %v", errSilent, mostPatience))
	ctx, giveUp := context.WithCancelCause(ctx)
	begun := time.Since(p.start)
	var t *time.Timer
	set := make(chan struct{})
	t = time.AfterFunc(silence, func() {
		<-set
		left := silence - (time.Since(p.start) - max(begun, time.Duration(p.last.Load())))
		if left > 0 {
			t.Reset(left)
			return
		}
		giveUp(fmt.Errorf("%w for %v", errSilent, silence))
	})
	close(set)
	return ctx, func() {
		t.Stop()
		giveUp(nil)
		cancel()
	}
}

// errSilent is the end of a call's patience. It is no client's leaving.
var errSilent = errors.New("the database did not answer")

// promptly does something for a request. A client that leaves breaks no
// connection: what was begun is ended, or given up when the database is silent.
// It may be done a second time, if the connection turned out to be a broken one.
func (s *Store) promptly(ctx context.Context, do func(context.Context, *pgxpool.Conn) error) error {
	ctx = context.WithoutCancel(ctx)
	err := s.once(ctx, do)
	if isSevered(err) {
		s.pool.Reset()
		err = s.once(ctx, do)
	}
	var unreachable *pgconn.ConnectError
	if !errors.Is(err, errSilent) && !errors.As(err, &unreachable) && !isSevered(err) {
		s.pulse.beat()
	}
	return err
}

// once waits for a connection and then for an answer, each with a patience of its
// own. Who has waited for a connection too long leaves it to others whole: were
// the rest of one patience spent on the question, each connection of a database
// that is back would be broken by the next who has too little left of it.
func (s *Store) once(ctx context.Context, do func(context.Context, *pgxpool.Conn) error) error {
	waiting, done := s.pulse.watch(ctx, s.patience/2)
	defer done()
	c, err := s.pool.Acquire(waiting)
	if err != nil {
		return silent(waiting, err)
	}
	defer c.Release()
	asking, answered := s.pulse.watch(ctx, s.patience)
	defer answered()
	return silent(asking, do(asking, c))
}

// silent is err, or, if ctx was ended by the database's silence, that.
func silent(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("%w: %v", context.Cause(ctx), err)
	}
	return err
}
