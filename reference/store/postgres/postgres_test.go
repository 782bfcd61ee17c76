package postgres_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/internal/pgtest"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/store/postgres"
	"github.com/invoicespec/brimline/reference/store/storetest"
)

// config is for a store on a database. The machine may be busy: where a test is
// not about how long a call may take, it may take long.
func config(t testing.TB, database string, c clock.Clock) postgres.Config {
	t.Helper()
	d, err := account.DigesterFrom(bytes.Repeat([]byte("s"), account.MinSecret))
	require.NoError(t, err)
	return postgres.Config{URL: database, Digester: d, Clock: c, Logger: slog.New(slog.DiscardHandler), Patience: time.Minute}
}

func open(t testing.TB, cfg postgres.Config) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// migrated is a fresh database with the schema and the plans of storetest.
func migrated(t testing.TB) string {
	t.Helper()
	database := pgtest.Database(t)
	_, err := postgres.Migrate(t.Context(), database)
	require.NoError(t, err)
	s, err := postgres.Open(t.Context(), config(t, database, clock.NewReal()))
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.AddPlans(t.Context(), storetest.Plans()))
	return database
}

func TestStore(t *testing.T) {
	// One database for all: what a case does is about its own users.
	database := migrated(t)
	storetest.Run(t, func(t testing.TB) storetest.Harness {
		execute(t, database, "truncate reservation") // the ids of requests recur
		c := clock.NewFrozen(time.Now())
		return storetest.Harness{Store: open(t, config(t, database, c)), Clock: c}
	})
}

func execute(t testing.TB, database, statement string, args ...any) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer c.Close(t.Context())
	_, err = c.Exec(t.Context(), statement, args...)
	require.NoError(t, err)
}
