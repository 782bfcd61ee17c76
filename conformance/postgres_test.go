package conformance_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/internal/pgtest"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reports/record"
)

// What is kept in PostgreSQL keeps the contract like what is kept in memory, and
// a restart is a real one there.
func TestReferenceOnPostgreSQLKeepsTheContract(t *testing.T) {
	r, err := newReference(control.ClockFrozen, &server.Database{
		URL: pgtest.Database(t), KeySecret: []byte(strings.Repeat("k", account.MinSecret)), Migrate: true, Spool: t.TempDir(),
	}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	c, err := conformance.Run(t.Context(), r.open(t), conformance.Options{})
	require.NoError(t, err)
	requireKept(t, c)
	for _, cl := range c.Clauses {
		if len(cl.Scenarios) > 0 {
			require.Equal(t, record.Pass, cl.Verdict, cl.ID)
		}
	}
}
