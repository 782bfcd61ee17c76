package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/internal/pgtest"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/store/postgres"
	"github.com/invoicespec/brimline/reference/store/storetest"
)

func TestReplicasMigrateAtOnce(t *testing.T) {
	database := pgtest.Database(t)
	var wg sync.WaitGroup
	steps, errs := make([]int, 4), make([]error, 4)
	for i := range steps {
		wg.Go(func() { steps[i], errs[i] = postgres.Migrate(t.Context(), database) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	sum := 0
	for _, n := range steps {
		sum += n
	}
	again, err := postgres.Migrate(t.Context(), database)
	require.NoError(t, err)
	require.Zero(t, again)
	require.Positive(t, sum)
	require.Equal(t, versions(t, database), sum, "each step was taken once")
}

func versions(t *testing.T, database string) (n int) {
	t.Helper()
	query(t, database, "select count(*) from goose_db_version where version_id > 0", &n)
	return n
}

func query(t testing.TB, database, statement string, to ...any) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	defer c.Close(context.Background())
	require.NoError(t, c.QueryRow(t.Context(), statement).Scan(to...))
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	_, err := postgres.Open(t.Context(), config(t, pgtest.Database(t), clock.NewReal()))
	require.ErrorIs(t, err, postgres.ErrSchema)
	_, err = postgres.Open(t.Context(), config(t, "postgres:///none?host=/nowhere", clock.NewReal()))
	require.ErrorIs(t, err, postgres.ErrAway)
	_, err = postgres.Migrate(t.Context(), "postgres:///none?host=/nowhere")
	require.ErrorIs(t, err, postgres.ErrAway)
	_, err = postgres.Open(t.Context(), config(t, "password = 'secret", clock.NewReal()))
	require.ErrorContains(t, err, "accepted: postgres://")
	require.NotContains(t, err.Error(), "secret")
	_, err = postgres.Open(t.Context(), config(t, "postgres://u:secret@/x?pool_max_conns=many", clock.NewReal()))
	require.ErrorContains(t, err, "pool_max_conns")
	require.NotContains(t, err.Error(), "secret")
	database := migrated(t)
	execute(t, database, "delete from goose_db_version where version_id = 3")
	_, err = postgres.Open(t.Context(), config(t, database, clock.NewReal()))
	require.ErrorIs(t, err, postgres.ErrSchema)
	require.ErrorContains(t, err, "step 2 of 3")
	execute(t, database, "insert into goose_db_version (version_id, is_applied) values (3, true)")
	another := config(t, database, clock.NewReal())
	another.Digester = account.NewDigester()
	_, err = postgres.Open(t.Context(), another)
	require.ErrorContains(t, err, "the key secret is not the one")
	_, err = postgres.Migrate(t.Context(), "postgres://u:secret@host:port")
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
}

func TestPlansThatAreThereStay(t *testing.T) {
	database := migrated(t)
	s := open(t, config(t, database, clock.NewReal()))
	plans := storetest.Plans()
	plans["free"].Entitlements["burst"] = "11"
	require.NoError(t, s.AddPlans(t.Context(), plans))
	var burst string
	query(t, database, "select burst from plan where id = 'free'", &burst)
	require.Equal(t, "10", burst)
}

// TestBillingPeriodsAreTheSame: the database counts months as Go does.
func TestBillingPeriodsAreTheSame(t *testing.T) {
	c, err := pgx.Connect(t.Context(), migrated(t))
	require.NoError(t, err)
	defer c.Close(context.Background())
	_, err = c.Exec(t.Context(), "set timezone = 'Pacific/Auckland'")
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		instant := rapid.Int64Range(0, 7_000_000_000_000_000)
		anchor, now := time.UnixMicro(instant.Draw(t, "anchor")).UTC(), time.UnixMicro(instant.Draw(t, "now")).UTC()
		if rapid.Bool().Draw(t, "at a boundary") {
			now = account.PeriodAt(anchor, now).End.Add(-time.Duration(rapid.IntRange(0, 1).Draw(t, "before")) * time.Microsecond)
		}
		var got account.Period
		require.NoError(t, c.QueryRow(context.Background(), "select begins, ends from billing_period($1, $2)", anchor, now).Scan(&got.Start, &got.End))
		require.Equal(t, account.PeriodAt(anchor, now), account.Period{Start: got.Start.UTC(), End: got.End.UTC()})
	})
}
