package target_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/internal/pgtest"
)

// ledger is a database with one request of user 42 in it, and its URL.
func ledger(t *testing.T) string {
	t.Helper()
	url := pgtest.Database(t)
	c, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer c.Close(context.Background())
	_, err = c.Exec(t.Context(), `
		create table log (request_id text, user_id bigint, status smallint, rejected boolean, error_code text, raw text);
		insert into log values ('r1', 42, 429, true, 'RATE_LIMIT_EXCEEDED', 'all of it'), ('r2', 42, 200, false, null, 'more');
		create table operations (user_id bigint, granted integer, used integer);
		insert into operations values (42, 10, 3);`)
	require.NoError(t, err)
	return url
}

// asking is a target whose database is asked by queries, which may be altered.
func asking(t *testing.T, url string, alter func(*target.SQL)) *target.Target {
	t.Helper()
	const variable = "BRIMLINE_TEST_LEDGER"
	// An id is text, and the column is what it is.
	of := func(column string) *target.Queries {
		return &target.Queries{
			Entries:     "select request_id, user_id::text as user_id, status, rejected, error_code, raw from log where " + column + " = $1 order by request_id",
			EngineCalls: "select count(*) from log where not rejected and " + column + " = $1",
			Charges:     "select coalesce(sum(1), 0) as count from log where status = 200 and " + column + " = $1",
		}
	}
	s := &target.SQL{DSNVariable: variable, Request: of("request_id"), User: of("user_id::text"),
		Operations: `select granted - used as left, used from operations where user_id::text = $1`}
	if alter != nil {
		alter(s)
	}
	f := fileFor(answering(t, 404))
	f.Can.SQL = s
	f.Can.Commands = map[string]target.Command{"set-operations": command(t, "", "{user}")}
	tg, err := target.Open(t.Context(), f, target.Options{
		Keys:        []target.Key{{User: "42", Plan: "free", Secret: target.NewSecret(theKey)}},
		Environment: func(name string) (string, bool) { return url, name == variable },
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tg.Close()) })
	return tg
}

func anything(control.Audit) bool { return true }

func TestQueriesAnswer(t *testing.T) {
	tg := asking(t, ledger(t), nil)
	require.Empty(t, tg.Untrue(contract.NeedAudit))
	require.True(t, tg.Has(contract.NeedAudit) && tg.Has(contract.NeedOperations))
	rejected := control.Entry{RequestID: "r1", User: "42", Status: 429, Rejected: true, ErrorCode: "RATE_LIMIT_EXCEEDED", Raw: "all of it"}
	a, err := tg.Audit(t.Context(), "r1", anything)
	require.NoError(t, err)
	require.Equal(t, control.Audit{Entries: []control.Entry{rejected}, KeyLookups: -1}, a)
	u := lease(t, tg, "free", 1)
	a, err = tg.UserAudit(t.Context(), u, anything)
	require.NoError(t, err)
	require.Equal(t, control.Audit{
		Entries:     []control.Entry{rejected, {RequestID: "r2", User: "42", Status: 200, Raw: "more"}},
		EngineCalls: 1, Charges: 1, KeyLookups: -1,
	}, a)
	usage, err := tg.Usage(t.Context(), u)
	require.NoError(t, err)
	require.Equal(t, control.Usage{Left: 7, Used: 3}, usage)

	err = tg.SetOperations(t.Context(), u, 1)
	require.ErrorIs(t, err, target.ErrUntrue)
	require.ErrorContains(t, err, "can.commands.set-operations: it says that it is done, and 7 operations are left, not 1", "a query looks after a command")
	require.NoError(t, tg.SetOperations(t.Context(), u, 7))
}

// What a query gets wrong shows when the target is opened, in one line.
func TestUntrueQueries(t *testing.T) {
	url := ledger(t)
	for name, c := range map[string]struct {
		alter func(*target.SQL)
		want  string
	}{
		"no such table":   {func(s *target.SQL) { s.Request.Entries = "select * from logs where id = $1" }, `can.sql.request.entries: relation "logs" does not exist`},
		"other columns":   {func(s *target.SQL) { s.Request.Entries = "select request_id, raw from log where request_id = $1" }, "can.sql.request.entries: columns request_id, raw; accepted: request_id, user_id, status, rejected, error_code, raw"},
		"about everybody": {func(s *target.SQL) { s.User.Charges = "select 5 as count where $1 <> ''" }, "can.sql.user: it says yes to what nobody has: user brimline-asks-about-nobody"},
		"another name":    {func(s *target.SQL) { s.Request.Charges = "select 0 as charges where $1 <> ''" }, "can.sql.request.charges: columns charges; accepted: count"},
		"no row":          {func(s *target.SQL) { s.Request.EngineCalls = "select 1 as count from log where request_id = $1" }, "can.sql.request.engine-calls: no rows in result set, want one"},
		"two rows":        {func(s *target.SQL) { s.Request.EngineCalls = "select 0 as count from log where $1 <> ''" }, "can.sql.request.engine-calls: more than one row"},
		"no number":       {func(s *target.SQL) { s.Request.Charges = "select 'x' || $1 as count" }, "can.sql.request.charges: count holds what does not belong there"},
		"no value":        {func(s *target.SQL) { s.Request.Charges = "select sum(1) as count from log where request_id = $1" }, "can.sql.request.charges: count holds what does not belong there"},
		"writes": {func(s *target.SQL) {
			s.Request.Charges = "insert into log (request_id) values ($1) returning 0 as count"
		}, "can.sql.request.charges: cannot execute INSERT in a read-only transaction"},
		"takes too long": {func(s *target.SQL) {
			s.Timeout, s.Request.Charges = 100*time.Millisecond, "select 0 as count from pg_sleep(60) where $1 <> ''"
		}, "can.sql.request.charges: canceling statement due to statement timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			tg := asking(t, url, c.alter)
			require.False(t, tg.Has(contract.NeedAudit))
			require.Equal(t, c.want, tg.Untrue(contract.NeedAudit))
			require.True(t, tg.Has(contract.NeedOperations), "that is another query")
		})
	}
	tg := asking(t, "postgres://reader:hunter2@127.0.0.1:1/ledger", nil)
	require.Equal(t, "can.sql: PostgreSQL could not be reached", tg.Untrue(contract.NeedAudit))
}

// The connection string itself is nowhere to be seen.
func TestConnectionStrings(t *testing.T) {
	dir := folder(t, map[string]string{"dsn": "postgres://reader:hunter2@127.0.0.1:x/ledger\n", "open": "x", "empty": "\n"})
	require.NoError(t, os.Chmod(filepath.Join(dir, "open"), 0o644))
	for name, c := range map[string]struct {
		sql  target.SQL
		want string
	}{
		"none":            {target.SQL{DSNVariable: "BRIMLINE_TEST_UNSET"}, "the variable BRIMLINE_TEST_UNSET is empty; accepted: the connection string in it"},
		"not one":         {target.SQL{DSNFile: filepath.Join(dir, "dsn")}, "no connection string; accepted: one such as postgres://reader@db.example/billing"},
		"for all to read": {target.SQL{DSNFile: filepath.Join(dir, "open")}, "mode 0644 lets others read it; accepted: 0600"},
		"not there":       {target.SQL{DSNFile: filepath.Join(dir, "gone")}, "no such file"},
		"an empty file":   {target.SQL{DSNFile: filepath.Join(dir, "empty")}, "no connection string; accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fileFor(answering(t, 404))
			c.sql.Operations = "select $1"
			f.Can.SQL = &c.sql
			f.Can.Commands = map[string]target.Command{"set-operations": command(t, "", "{user}")}
			_, err := target.Open(t.Context(), f, target.Options{Keys: []target.Key{{User: "42", Plan: "free", Secret: target.NewSecret(theKey)}}})
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
}
