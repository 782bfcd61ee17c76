package conformance_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/internal/pgtest"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reports/record"
)

// What is kept in PostgreSQL keeps the contract like what is kept in memory, and
// a restart is a real one there.
func TestReferenceOnPostgreSQLKeepsTheContract(t *testing.T) {
	r, _ := withDatabase(t)
	c, err := conformance.Run(t.Context(), r.open(t), conformance.Options{})
	require.NoError(t, err)
	requireKept(t, c)
	for _, cl := range c.Clauses {
		if len(cl.Scenarios) > 0 {
			require.Equal(t, record.Pass, cl.Verdict, cl.ID)
		}
	}
}

// So do servers that scenarios start on the same database: entries wait in a
// spool there, and what a killed server has not delivered the next one does.
func TestServersOnPostgreSQLLoseNoEntry(t *testing.T) {
	r, db := withDatabase(t)
	r.file.Can.Process = onDatabase(t, *r.file.Can.Process, db)
	c, err := conformance.Run(t.Context(), r.open(t), conformance.Options{Clauses: []string{"LOG-5", "LOG-6", "RESTART-1"}})
	require.NoError(t, err)
	requireKept(t, c)
	require.Equal(t, 3, c.Counts.Pass)
}

// withDatabase is the reference on a database, and which.
func withDatabase(t *testing.T) (reference, server.Database) {
	t.Helper()
	db := server.Database{URL: pgtest.Database(t), KeySecret: []byte(strings.Repeat("k", account.MinSecret)), Migrate: true, Spool: t.TempDir()}
	r, err := newReference(control.ClockFrozen, &db, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	return r, db
}

// onDatabase is p for servers that keep their users and their log in a database.
func onDatabase(t *testing.T, p target.Process, db server.Database) *target.Process {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "key.secret")
	require.NoError(t, os.WriteFile(secret, db.KeySecret, 0o600))
	p.Environment = maps.Clone(p.Environment)
	maps.Copy(p.Environment, map[string]string{"BRIMLINE_DATABASE_URL": db.URL, "BRIMLINE_KEY_SECRET_FILE": secret, "BRIMLINE_API_LOG_SPOOL": "{folder}/spool"})
	var command []string
	for i, a := range p.Command {
		inMemory := func(a string) bool { return a == "--keys-file" || a == "--api-log" }
		if !inMemory(a) && !(i > 0 && inMemory(p.Command[i-1])) {
			command = append(command, a)
		}
	}
	p.Command = command
	return &p
}
