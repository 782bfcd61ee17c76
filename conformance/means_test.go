package conformance_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/internal/pgtest"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reports/record"
)

// auditVariable holds the connection string of the audit's queries.
const auditVariable = "BRIMLINE_TEST_AUDIT"

// auditQueries is what the reference's own tables say of requests. What entered the
// engine shows in the log alone: admitted, and not turned away by validation or for
// want of an operation.
func auditQueries() *target.SQL {
	of := func(column string) *target.Queries {
		return &target.Queries{
			Entries: `select request_id, user_id, status, outcome = 'rejected' as rejected, error_code, to_jsonb(l)::text as raw
				from api_log l where ` + column + ` = $1 order by received`,
			EngineCalls: `select count(*) from api_log where ` + column + ` = $1 and outcome = 'admitted' and status not in (400, 402, 404, 405, 413, 415, 422)`,
			Charges:     `select coalesce(sum(charged), 0)::bigint as count from api_log where ` + column + ` = $1`,
		}
	}
	return &target.SQL{DSNVariable: auditVariable, Request: of("request_id"), User: of("user_id")}
}

// onPostgreSQL is the reference on a database that queries may look into.
func onPostgreSQL(t *testing.T, clock control.ClockMode) reference {
	t.Helper()
	url := pgtest.Database(t)
	t.Setenv(auditVariable, url)
	r, err := newReference(clock, &server.Database{
		URL: url, KeySecret: []byte(strings.Repeat("k", account.MinSecret)), Migrate: true, Spool: t.TempDir(),
	}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	r.file.Can.SQL, r.file.Can.Process = auditQueries(), nil
	// One plan shows as much as five.
	r.file.Allowances = map[string]target.Allowance{"free": r.file.Allowances["free"]}
	r.keys = slices.DeleteFunc(r.keys, func(k target.Key) bool { return k.Plan != "free" })
	return r
}

func ofClause(t *testing.T, c record.Conformance, id string) record.Clause {
	t.Helper()
	for _, cl := range c.Clauses {
		if cl.ID == id {
			return cl
		}
	}
	t.Fatal(id)
	return record.Clause{}
}

// Queries alone show what requests leave behind, where nobody speaks the control
// protocol.
func TestAuditThroughSQLAlone(t *testing.T) {
	r := onPostgreSQL(t, "")
	require.Nil(t, r.file.Can.Control)
	tgt := r.open(t)
	require.True(t, tgt.Has(contract.NeedAudit), tgt.Untrue(contract.NeedAudit))
	c, err := conformance.Run(t.Context(), tgt, conformance.Options{Clauses: []string{"RATE-7", "LOG-1", "LOG-3"}})
	require.NoError(t, err)
	requireKept(t, c)
	for _, id := range []string{"RATE-7", "LOG-1", "LOG-3"} {
		require.Equal(t, record.Pass, ofClause(t, c, id).Verdict, "%+v", ofClause(t, c, id))
	}
}

// Beside a control server queries take over what they are given for, and what they
// show is judged: these charge one operation more than there was.
func TestQueriesAreWhatIsJudged(t *testing.T) {
	for name, more := range map[string]string{"as it is": "", "one more": " + 1"} {
		t.Run(name, func(t *testing.T) {
			r := onPostgreSQL(t, control.ClockFrozen)
			q := &r.file.Can.SQL.Request.Charges
			*q = strings.Replace(*q, "::bigint", "::bigint"+more+" * (select count(*) from api_log where request_id = $1)", 1)
			c, err := conformance.Run(t.Context(), r.open(t), conformance.Options{Clauses: []string{"RATE-7", "CONC-5"}})
			require.NoError(t, err)
			if more == "" {
				requireKept(t, c)
				return
			}
			require.Equal(t, record.Fail, ofClause(t, c, "RATE-7").Verdict)
		})
	}
}
