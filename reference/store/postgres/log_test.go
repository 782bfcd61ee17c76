package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/internal/pgtest"
	"github.com/invoicespec/brimline/reference/apilog"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/store/postgres"
)

var received = time.Date(2026, 11, 30, 1, 2, 3, 456789000, time.UTC)

func logEntry(id string) contract.LogEntry {
	return contract.LogEntry{
		Schema: 1, RequestID: id, Received: received, Duration: 1234, Method: "POST", Path: "/v1/invoice/calculate",
		Status: 429, ErrorCode: contract.CodeRateLimited, Outcome: contract.LogRejected, User: "usr_1", Plan: "free", Charged: 1,
		Decision: &contract.LogDecision{
			Order: 7, Instant: 1_000_001, Outcome: "rate", RequestsPerMinute: 10, Burst: 11, Concurrency: 2, InFlight: 1, Level: 59_999_999,
		},
	}
}

// newLog is a log in a database of its own.
func newLog(t *testing.T) (postgres.Log, *pgxpool.Pool) {
	t.Helper()
	database := pgtest.Database(t)
	_, err := postgres.Migrate(t.Context(), database)
	require.NoError(t, err)
	pool, err := pgxpool.New(t.Context(), database)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return postgres.NewLog(pool), pool
}

func TestLogGivesBackWhatItTook(t *testing.T) {
	l, _ := newLog(t)
	unknown := contract.LogEntry{Schema: 1, RequestID: "anonymous", Received: received, Method: "GET", Path: "/v1/invoice", Status: 401,
		ErrorCode: contract.CodeUnauthenticated, Outcome: contract.LogUnauthenticated, Client: "2001:db8::/64", Correlation: "hop-1"}
	great := logEntry("great")
	great.Duration, great.Status = math.MaxInt64, math.MaxInt32
	great.Decision.Order, great.Decision.Level = math.MaxUint64, math.MinInt64
	for name, e := range map[string]contract.LogEntry{
		"of a user": logEntry("r1"), "of nobody": unknown, "great numbers": great, "zero": {RequestID: "zero", Decision: &contract.LogDecision{}},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, l.Insert(t.Context(), []contract.LogEntry{e}))
			got, err := l.Entry(t.Context(), e.RequestID)
			require.NoError(t, err)
			require.Equal(t, e, got)
		})
	}
	_, err := l.Entry(t.Context(), "never")
	require.ErrorIs(t, err, postgres.ErrNoEntry)
	require.ErrorContains(t, err, `"never"`)

	found, err := l.Find(t.Context(), "r1")
	require.NoError(t, err)
	require.Equal(t, []contract.LogEntry{logEntry("r1")}, found)
	found, err = l.Find(t.Context(), "never")
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestLogKeepsAnEntryOnce(t *testing.T) {
	l, pool := newLog(t)
	first, second := logEntry("r1"), logEntry("r2")
	require.NoError(t, l.Insert(t.Context(), []contract.LogEntry{first, first}))
	changed := first
	changed.Status = 500
	require.NoError(t, l.Insert(t.Context(), []contract.LogEntry{changed, second}))
	require.Equal(t, 2, count(t, pool))
	got, err := l.Entry(t.Context(), "r1")
	require.NoError(t, err)
	require.Equal(t, first, got)
	require.NoError(t, l.Insert(t.Context(), nil))
}

func count(t *testing.T, pool *pgxpool.Pool) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), "select count(*) from api_log").Scan(&n))
	return n
}

// TestLogHoldsWhatPostgreSQLCannot: a client chooses the path, and must not
// choose which of its requests are logged.
func TestLogHoldsWhatPostgreSQLCannot(t *testing.T) {
	l, _ := newLog(t)
	e := logEntry("r1")
	e.Path = "/v1/invoice/a\x00b\xff"
	require.NoError(t, l.Insert(t.Context(), []contract.LogEntry{e}))
	got, err := l.Entry(t.Context(), "r1")
	require.NoError(t, err)
	require.Equal(t, "/v1/invoice/a\uFFFDb\uFFFD", got.Path)
}

func TestLogTellsItsFaultFromTheEntrys(t *testing.T) {
	l, pool := newLog(t)
	good, bad, long := logEntry("good"), logEntry("bad"), logEntry("long")
	bad.Status = math.MaxInt32 + 1
	var user strings.Builder // too much for an index, also compressed
	for i := range 20_000 {
		fmt.Fprint(&user, i*i%977)
	}
	long.User = user.String()
	for name, e := range map[string]contract.LogEntry{"out of range": bad, "too long for an index": long} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, l.Insert(t.Context(), []contract.LogEntry{good, e}), apilog.ErrRefused)
			require.Zero(t, count(t, pool), "all or none")
		})
	}
	_, err := pool.Exec(t.Context(), "alter table api_log rename to elsewhere")
	require.NoError(t, err)
	err = l.Insert(t.Context(), []contract.LogEntry{good})
	require.Error(t, err)
	require.NotErrorIs(t, err, apilog.ErrRefused, "a table that is missing is mended one day")
}

func TestUserEntries(t *testing.T) {
	l, _ := newLog(t)
	var entries []contract.LogEntry
	for i := range 1100 {
		e := logEntry(fmt.Sprint("r", i))
		e.Received = received.Add(time.Duration(i) * time.Second)
		if i%10 == 9 {
			e.User = "usr_2"
		}
		entries = append(entries, e)
	}
	require.NoError(t, l.Insert(t.Context(), entries))
	got, err := l.UserEntries(t.Context(), "usr_1", 3)
	require.NoError(t, err)
	require.Equal(t, []contract.LogEntry{entries[1098], entries[1097], entries[1096]}, got)
	for name, c := range map[string]struct {
		user       string
		most, want int
	}{
		"all":           {"usr_2", 1000, 110},
		"nobody":        {"usr_3", 10, 0},
		"no user":       {"", 10, 0},
		"none":          {"usr_1", -1, 0},
		"not as many":   {"usr_1", 990, 990},
		"never so many": {"usr_1", 5000, 990},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := l.UserEntries(t.Context(), c.user, c.most)
			require.NoError(t, err)
			require.Len(t, got, c.want)
		})
	}
}

// fill has n entries, one a second, the first at received.
func fill(t *testing.T, l postgres.Log, n int) {
	t.Helper()
	entries := make([]contract.LogEntry, n)
	for i := range entries {
		entries[i] = logEntry(fmt.Sprint("r", i))
		entries[i].Received = received.Add(time.Duration(i) * time.Second)
	}
	require.NoError(t, l.Insert(t.Context(), entries))
}

func TestPrune(t *testing.T) {
	l, pool := newLog(t)
	fill(t, l, 2600)
	for _, c := range []struct {
		age, removed, left int
	}{{0, 0, 2600}, {2500, 2500, 100}, {2500, 0, 100}, {2501, 1, 99}} {
		n, err := l.Prune(t.Context(), received.Add(time.Duration(c.age)*time.Second))
		require.NoError(t, err)
		require.EqualValues(t, c.removed, n)
		require.Equal(t, c.left, count(t, pool))
	}
	_, err := l.Entry(t.Context(), "r2501")
	require.NoError(t, err, "the newest are kept")
}

// TestPruneLeavesRowsThatAnotherRemoves does not wait for a lock.
func TestPruneLeavesRowsThatAnotherRemoves(t *testing.T) {
	l, pool := newLog(t)
	fill(t, l, 10)
	other, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), "delete from api_log where request_id in ('r0', 'r1')")
	require.NoError(t, err)
	n, err := l.Prune(t.Context(), received.Add(5*time.Second))
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
	require.NoError(t, other.Commit(t.Context()))
	require.Equal(t, 5, count(t, pool))
}

func TestRetain(t *testing.T) {
	l, pool := newLog(t)
	fill(t, l, 100)
	frozen := clock.NewFrozen(received.Add(time.Hour))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Retain(ctx, postgres.Retention{Age: time.Hour, Every: time.Millisecond, Clock: frozen, Logger: slog.New(slog.DiscardHandler)})
	}()
	left := func(want int) {
		t.Helper()
		require.Eventually(t, func() bool { return count(t, pool) == want }, 30*time.Second, time.Millisecond)
	}
	frozen.Advance(40 * time.Second)
	left(60)
	_, err := pool.Exec(t.Context(), "alter table api_log rename to elsewhere")
	require.NoError(t, err)
	frozen.Advance(10 * time.Second)
	_, err = pool.Exec(t.Context(), "alter table elsewhere rename to api_log")
	require.NoError(t, err)
	left(50)
	cancel()
	<-done
	require.Equal(t, 50, count(t, pool))
}
