package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/internal/pgtest"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/store/postgres"
	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/replay"
)

// TestTheDatabasesLogReplaysAsTheFiles: what a server has logged says the same
// whether it is read from its file or from the database that took it in.
func TestTheDatabasesLogReplaysAsTheFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "api.jsonl")
	site := openLoadSite(t, server.Config{Control: "127.0.0.1:0", APILog: path}, nil)
	code, _, errs := site.load(t.Context(), t, `duration: 2s
populations:
  - { plan: free, users: 3, arrival: constant, rate: 20x, on-429: ignore }
`)
	requireMeasured(t, code, errs)

	var entries []contract.LogEntry
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		var e contract.LogEntry
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		entries = append(entries, e)
	}
	database := pgtest.Database(t)
	_, err = postgres.Migrate(t.Context(), database)
	require.NoError(t, err)
	pool, err := pgxpool.New(t.Context(), database)
	require.NoError(t, err)
	defer pool.Close()
	require.NoError(t, postgres.NewLog(pool).Insert(t.Context(), entries))

	replayed := func(s accesslog.Source) record.Replay {
		log, err := accesslog.Read(t.Context(), []accesslog.Source{s}, accesslog.Options{})
		require.NoError(t, err)
		r, err := replay.Run(t.Context(), log, replay.Question{Rates: []int64{1, 60}, Bursts: []int64{1, 20}})
		require.NoError(t, err)
		return r
	}
	name, lines, done, err := apiLogLines(t.Context(), database, time.Time{}, time.Time{})
	require.NoError(t, err)
	defer done()
	file, stored := replayed(accesslog.File(path)), replayed(accesslog.Stream(name, lines))
	require.NotEmpty(t, file.Cells)
	require.Positive(t, file.Cells[0].Rejected)
	require.Equal(t, file.Cells, stored.Cells)
	require.Zero(t, stored.Agreement.Disagreed)
	require.Equal(t, file.Agreement, stored.Agreement)

	name, lines, done, err = apiLogLines(t.Context(), database, time.Now().Add(time.Hour), time.Time{})
	require.NoError(t, err)
	defer done()
	_, err = accesslog.Read(t.Context(), []accesslog.Source{accesslog.Stream(name, lines)}, accesslog.Options{})
	require.ErrorIs(t, err, accesslog.ErrNothing)
	require.ErrorContains(t, err, "the database's API log from ")
}

// A report takes the log from the database as it does from a file.
func TestReportFromTheDatabase(t *testing.T) {
	database := pgtest.Database(t)
	_, err := postgres.Migrate(t.Context(), database)
	require.NoError(t, err)
	none := reported(t, "--database-url", database, "--json")
	require.Equal(t, exitUsage, none.code)
	require.Contains(t, none.stderr, "the database's API log: no entries")
	away := reported(t, "--database-url", "postgres://u:secret@127.0.0.1:1/none", "--json")
	require.Equal(t, exitCannotTell, away.code)
	require.NotContains(t, away.stderr, "secret")

	pool, err := pgxpool.New(t.Context(), database)
	require.NoError(t, err)
	defer pool.Close()
	var entries []contract.LogEntry
	for line := range strings.Lines(apiEntry(1, "admitted", token) + apiEntry(2, "admitted", 0) + apiEntry(3, "rate", 0)) {
		var e contract.LogEntry
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		entries = append(entries, e)
	}
	require.NoError(t, postgres.NewLog(pool).Insert(t.Context(), entries))
	later := reported(t, "--database-url", database, "--since", "2199-01-01", "--json")
	require.Equal(t, exitUsage, later.code)
	require.Contains(t, later.stderr, "the database's API log from 2199-01-01T00:00:00Z: no entries")
	for want, args := range map[string][]string{
		"--database-url names none":                                  {"--since", "2026-01-01", "--json", "-"},
		`invalid argument "soon" for "--until" flag: a day such as `: {"--database-url", database, "--until", "soon", "--json"},
	} {
		got := reported(t, args...)
		require.Equal(t, exitUsage, got.code)
		require.Contains(t, got.stderr, want)
	}
	got := reported(t, "--database-url", database, "--json")
	require.Equal(t, exitCannotTell, got.code, got.stderr)
	var r record.Report
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &r))
	require.Equal(t, "the database's API log", r.Inputs[0].Name)
	require.EqualValues(t, 3, r.Logs[0].Agreement.Compared)
}

func TestTheDatabaseIsAway(t *testing.T) {
	_, _, _, err := apiLogLines(t.Context(), "postgres://u:secret@127.0.0.1:1/none", time.Time{}, time.Time{})
	require.ErrorIs(t, err, postgres.ErrAway)
	require.NotContains(t, err.Error(), "secret")
}
