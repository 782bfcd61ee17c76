package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// channel is where the database tells whose policy has changed: a user's number,
// or nothing if everybody's may have.
const channel = "brimline_accounts"

// How long to wait before connecting again, at first and at most, and how long a
// connection may be silent before it is asked whether it still is one.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 5 * time.Second
	silence    = 30 * time.Second
)

// listen forgets what has changed elsewhere, until ctx ends. Whatever happened
// while nobody listened went unheard, so every connection begins with a flush;
// without one, what is kept lasts no longer than its time to live.
func (s *Store) listen(ctx context.Context, cfg *pgx.ConnConfig) {
	pause := firstPause
	for {
		err := s.hear(ctx, cfg, func() { pause = firstPause })
		if ctx.Err() != nil {
			return
		}
		s.logger.Warn("not told of changes in the database; what is looked up is kept for the time to live", "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, lastPause)
	}
}

// hear returns when its connection has ended.
func (s *Store) hear(ctx context.Context, cfg *pgx.ConnConfig, connected func()) error {
	c, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectPatience)
		defer cancel()
		c.Close(ctx)
	}()
	if err := answers(ctx, c, "listen "+channel); err != nil {
		return err
	}
	connected()
	s.cache.flush()
	for {
		quiet, cancel := context.WithTimeout(ctx, silence)
		n, err := c.WaitForNotification(quiet)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			err = answers(ctx, c, "select")
		case err == nil && n.Payload == "":
			s.cache.flush()
		case err == nil:
			s.cache.flushUser(userPrefix + n.Payload)
		}
		if err != nil {
			return err
		}
	}
}

func answers(ctx context.Context, c *pgx.Conn, statement string) error {
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	_, err := c.Exec(ctx, statement)
	return err
}
