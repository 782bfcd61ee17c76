package postgres

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/invoicespec/brimline/reference/account"
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

// Explain is how the database carries out a lookup, with what it counted.
func (s *Store) Explain(ctx context.Context, d account.Digest) (string, error) {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer c.Release()
	handle := strconv.FormatInt(handleOf(d), 10)
	rows, err := c.Query(ctx, "explain (analyze, buffers) execute lookup("+handle+", '"+s.now().Format(time.RFC3339Nano)+"')", pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return "", err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(lines, "\n"), err
}

// Floor asks the database for nothing, in a prepared statement.
func (s *Store) Floor(ctx context.Context) error {
	var one int
	return s.pool.QueryRow(ctx, "select 1").Scan(&one)
}

// Connections is how many connections of the API there are, and how many of them
// are free.
func (s *Store) Connections() (all, idle int) {
	st := s.pool.Stat()
	return int(st.TotalConns()), int(st.IdleConns())
}
