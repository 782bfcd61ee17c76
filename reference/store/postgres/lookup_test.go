package postgres_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/store/postgres"
)

// trips counts the round trips of a store: each query, batch and preparation is
// one.
type trips struct{ n atomic.Int64 }

func (c *trips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}
func (c *trips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *trips) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c.n.Add(1)
	return ctx
}
func (c *trips) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (c *trips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

func (c *trips) TracePrepareStart(ctx context.Context, _ *pgx.Conn, _ pgx.TracePrepareStartData) context.Context {
	c.n.Add(1)
	return ctx
}
func (c *trips) TracePrepareEnd(context.Context, *pgx.Conn, pgx.TracePrepareEndData) {}

// of is how many do needs.
func (c *trips) of(do func()) int {
	before := c.n.Load()
	do()
	return int(c.n.Load() - before)
}

type fixture struct {
	*postgres.Store
	t        *testing.T
	database string
	clock    *clock.Shifted
	trips    *trips
}

// newFixture is a store on a database and a clock of its own, with one connection.
// The database tells nobody of changes, so that nothing is forgotten behind the
// back of a test that counts.
func newFixture(t *testing.T, change func(*postgres.Config)) fixture {
	t.Helper()
	database := migrated(t)
	for _, table := range []string{"account", "api_key", "subscription", "rate_override", "plan"} {
		execute(t, database, "alter table "+table+" disable trigger notify")
	}
	return newTalkative(t, database, change)
}

// newTalkative is newFixture on a database that may tell of changes.
func newTalkative(t *testing.T, database string, change func(*postgres.Config)) fixture {
	t.Helper()
	f := fixture{t: t, database: database, clock: clock.NewFrozen(time.Now()), trips: &trips{}}
	cfg := config(t, f.database, f.clock).Traced(f.trips)
	cfg.URL += "&pool_max_conns=1"
	change(&cfg)
	f.Store = open(t, cfg)
	require.Eventually(t, func() bool { return f.Flushes() == 2 }, 30*time.Second, time.Millisecond, "it listens")
	return f
}

func asItIs(*postgres.Config) {}

func (f fixture) user(plan string) (string, account.Key) {
	f.t.Helper()
	user, keys, err := f.CreateUser(f.t.Context(), plan, 1)
	require.NoError(f.t, err)
	return user, keys[0]
}

func (f fixture) find(k account.Key) account.Record {
	f.t.Helper()
	rec, err := f.Lookup(f.t.Context(), f.Digest(k))
	require.NoError(f.t, err)
	return rec
}

func (f fixture) burst(k account.Key) int64 {
	f.t.Helper()
	rec := f.find(k)
	e, err := policy.Resolve(rec.Plans, rec.Subscription, rec.Overrides, f.clock.Now())
	require.NoError(f.t, err)
	return e.Allowance.Burst()
}

func note(reason string) account.Note { return account.Note{Author: "ann", Reason: reason} }

// AUTH-2: all that a request is judged by comes with one query, or with none.
func TestALookupIsOneRoundTripOrNone(t *testing.T) {
	f := newFixture(t, asItIs)
	alice, k := f.user("free")
	_, err := f.SchedulePlan(t.Context(), alice, "pro")
	require.NoError(t, err)
	for _, d := range policy.Dimensions() {
		require.NoError(t, f.SetOverride(t.Context(), alice, policy.Override{Dimension: d, Value: "7"}, note("x")))
	}
	require.Equal(t, 1, f.trips.of(func() { f.find(k) }), "the first of all")
	require.Equal(t, 0, f.trips.of(func() { f.find(k) }), "what is kept")
	f.clock.Advance(postgres.DefaultTTL)
	require.Equal(t, 1, f.trips.of(func() { f.find(k) }))
	unknown, err := account.NewKey("free")
	require.NoError(t, err)
	for range 2 {
		require.Equal(t, 1, f.trips.of(func() {
			_, err := f.Lookup(t.Context(), f.Digest(unknown))
			require.ErrorIs(t, err, account.ErrUnknownKey)
		}))
	}
}

func TestARequestIsTwoRoundTripsOfTheLedger(t *testing.T) {
	f := newFixture(t, asItIs)
	alice, _ := f.user("free")
	require.Equal(t, 1, f.trips.of(func() { require.NoError(t, f.Reserve(t.Context(), alice, "a")) }))
	require.Equal(t, 1, f.trips.of(func() { require.NoError(t, f.Charge(t.Context(), "a")) }))
	require.Equal(t, 0, f.trips.of(func() { require.NoError(t, f.GiveBack(t.Context(), "a")) }))
	require.NoError(t, f.Reserve(t.Context(), alice, "b"))
	require.Equal(t, 1, f.trips.of(func() { require.NoError(t, f.GiveBack(t.Context(), "b")) }))
}

func TestWhatIsKeptEndsInTime(t *testing.T) {
	f := newFixture(t, func(c *postgres.Config) { c.TTL = time.Hour })
	alice, k := f.user("free")
	_, other := f.user("free")
	f.find(k)
	f.find(other)
	fresh := func(k account.Key) bool { return f.trips.of(func() { f.find(k) }) == 1 }

	require.NoError(t, f.SetOverride(t.Context(), alice,
		policy.Override{Dimension: policy.Burst, Value: "7", Expires: f.clock.Now().Add(time.Minute)}, note("x")))
	require.True(t, fresh(k), "what this process has changed is looked up by the very next request")
	require.False(t, fresh(other), "another user's is not")
	f.clock.Advance(time.Minute - time.Microsecond)
	require.False(t, fresh(k))
	f.clock.Advance(time.Microsecond)
	require.True(t, fresh(k), "an override has expired")
	f.clock.Advance(time.Hour - time.Microsecond)
	require.False(t, fresh(k))
	f.clock.Advance(time.Microsecond)
	require.True(t, fresh(k), "the time to live is over")
	f.clock.Advance(-time.Microsecond)
	require.True(t, fresh(k), "the clock was set back to before it was looked up")
	f.Forget()
	require.True(t, fresh(k))
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	f := newFixture(t, func(c *postgres.Config) { c.CacheSize = 2 })
	var keys []account.Key
	for range 4 {
		_, k := f.user("free")
		keys = append(keys, k)
	}
	for _, k := range keys {
		f.find(k)
	}
	require.Zero(t, f.trips.of(func() { f.find(keys[3]) }), "the last is kept")
	require.GreaterOrEqual(t, f.trips.of(func() {
		for _, k := range keys {
			f.find(k)
		}
	}), 2)
}

func TestManyAtOnceAreOneQuery(t *testing.T) {
	f := newFixture(t, asItIs)
	_, k := f.user("free")
	release := lock(t, f.database, "api_key")
	var wg sync.WaitGroup
	arrived := make(chan struct{}, 20)
	require.Equal(t, 1, f.trips.of(func() {
		for range cap(arrived) {
			wg.Go(func() {
				arrived <- struct{}{}
				f.find(k)
			})
		}
		for range cap(arrived) {
			<-arrived
		}
		waiting(t, f.database)
		release()
		wg.Wait()
	}))
}

// lock keeps every query of a table waiting until it is released.
func lock(t *testing.T, database, table string) (release func()) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), database)
	require.NoError(t, err)
	_, err = c.Exec(t.Context(), "begin; lock table "+table+" in access exclusive mode")
	require.NoError(t, err)
	release = sync.OnceFunc(func() { c.Close(context.Background()) })
	t.Cleanup(release)
	return release
}

// waiting returns once a query waits for a lock.
func waiting(t *testing.T, database string) {
	t.Helper()
	require.Eventually(t, func() bool {
		var n int
		query(t, database, "select count(*) from pg_locks where not granted", &n)
		return n > 0
	}, 30*time.Second, time.Millisecond)
}

// TestALookupThatRacedAChangeIsNotKept: it began before the change and ended
// after, so it may have seen what was there before.
func TestALookupThatRacedAChangeIsNotKept(t *testing.T) {
	f := newFixture(t, func(c *postgres.Config) { c.URL += "0" }) // ten connections
	require.NoError(t, f.Warm(t.Context(), 5))
	alice, k := f.user("free")
	release := lock(t, f.database, "api_key")
	racing := make(chan error, 1)
	go func() {
		_, err := f.Lookup(t.Context(), f.Digest(k))
		racing <- err
	}()
	waiting(t, f.database)
	require.NoError(t, f.SetOverride(t.Context(), alice, policy.Override{Dimension: policy.Burst, Value: "7"}, note("x")))
	after := make(chan int64, 1)
	go func() { after <- f.burst(k) }()
	release()
	require.NoError(t, <-racing)
	require.Equal(t, int64(7), <-after, "a request after the change does not join a query from before it")
	require.Equal(t, int64(7), f.burst(k))
}

func TestAClientThatLeavesBreaksNothing(t *testing.T) {
	f := newFixture(t, asItIs)
	_, k := f.user("free")
	release := lock(t, f.database, "api_key")
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := f.Lookup(ctx, f.Digest(k))
			gone <- err
		}()
		cancel()
		require.ErrorIs(t, <-gone, context.Canceled)
	}
	release()
	f.find(k)
	f.Forget()
	require.Equal(t, 1, f.trips.of(func() { f.find(k) }), "on the one connection that there is, prepared as ever")
}

func TestChangesElsewhereAreSeen(t *testing.T) {
	f := newTalkative(t, migrated(t), asItIs) // its clock stands, so no time to live ends
	other := open(t, config(t, f.database, f.clock))
	alice, keys, err := f.CreateUser(t.Context(), "free", 2)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change func()
		want   int64
	}{
		"an override": {func() {
			require.NoError(t, other.SetOverride(t.Context(), alice, policy.Override{Dimension: policy.Burst, Value: "7"}, note("x")))
		}, 7},
		"in the table itself": {func() { execute(t, f.database, "update plan set burst = '9'") }, 9},
	} {
		t.Run(name, func(t *testing.T) {
			f.find(keys[0])
			c.change()
			require.Eventually(t, func() bool { return f.burst(keys[0]) == c.want }, 30*time.Second, time.Millisecond)
			require.NoError(t, other.EndOverride(t.Context(), alice, policy.Burst, note("x")))
		})
	}
	for name, revoke := range map[string]func() error{
		"a key revoked": func() error { return other.RevokeKey(t.Context(), alice, keys[0]) },
		"a key removed": func() error { execute(t, f.database, "delete from api_key where number = 2"); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			k := keys[0]
			if name == "a key removed" {
				k = keys[1]
			}
			f.find(k)
			require.NoError(t, revoke())
			require.Eventually(t, func() bool {
				_, err := f.Lookup(t.Context(), f.Digest(k))
				return errors.Is(err, account.ErrUnknownKey)
			}, 30*time.Second, time.Millisecond)
		})
	}
}

// TestWhatNobodyHeardIsSeenAfterReconnecting: the notification is lost with the
// connection that it was meant for.
func TestWhatNobodyHeardIsSeenAfterReconnecting(t *testing.T) {
	f := newFixture(t, asItIs)
	_, k := f.user("free")
	require.Equal(t, int64(10), f.burst(k))
	execute(t, f.database, "update plan set burst = '9'")
	require.Equal(t, int64(10), f.burst(k))
	execute(t, f.database, "select pg_terminate_backend(pid) from pg_stat_activity where query = 'listen brimline_accounts' and datname = current_database()")
	require.Eventually(t, func() bool { return f.burst(k) == 9 }, 30*time.Second, time.Millisecond)
}
