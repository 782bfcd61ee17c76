package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Traced is cfg with a tracer of the API's own queries.
func (cfg Config) Traced(t pgx.QueryTracer) Config {
	cfg.tracer = t
	return cfg
}

// Dialing is cfg with another way to reach the database.
func (cfg Config) Dialing(dial pgconn.DialFunc) Config {
	cfg.dial = dial
	return cfg
}

// Flushes is how often the cache was flushed, its beginning included.
func (s *Store) Flushes() uint64 {
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	return s.cache.epoch
}

// Warm opens so many connections of the API.
func (s *Store) Warm(ctx context.Context, n int) error {
	for range n {
		c, err := s.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer c.Release()
	}
	return nil
}

// Connections is how many connections of the API there are, and how many of them
// are free.
func (s *Store) Connections() (all, idle int) {
	st := s.pool.Stat()
	return int(st.TotalConns()), int(st.IdleConns())
}
