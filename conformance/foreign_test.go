package conformance_test

import (
	"context"
	"flag"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/reports/record"
)

var foreignRuns = flag.Int("foreign", 0, "run the whole suite against other people's limiters so many times, and write the tables of docs/foreign.md")

// foreignClauses are what the gate asks other people's limiters: at least one
// clause of each group that most of them break, with little to wait for.
var foreignClauses = []string{"SCOPE-1", "POOL-1", "RATE-1", "RATE-5", "RATE-9", "HDR-1", "HDR-5", "ERR-1", "ERR-3", "CONC-1", "PERMIT-8", "ANON-4"}

// None of other people's limiters may crash the suite, make it hang, or bring it
// to an error of its own, and each breaks what docs/foreign.md says it breaks.
func TestForeignLimiters(t *testing.T) {
	t.Parallel()
	page := readForeignPage(t)
	program := buildForeign(t)
	if *foreignRuns == 0 {
		judgeForeigners(t, program, foreignClauses, func(t *testing.T, f foreign, c record.Conformance) {
			requireAsPublished(t, c, page.clauses(t, f.name))
		})
		return
	}
	var mu sync.Mutex
	results := map[string][]record.Conformance{}
	for range *foreignRuns {
		judgeForeigners(t, program, nil, func(_ *testing.T, f foreign, c record.Conformance) {
			mu.Lock()
			defer mu.Unlock()
			results[f.name] = append(results[f.name], c)
		})
	}
	if !t.Failed() {
		page.write(t, results)
	}
}

// judgeForeigners runs some clauses, or all, against all limiters at once, and
// returns when the last has ended.
func judgeForeigners(t *testing.T, program string, clauses []string, then func(*testing.T, foreign, record.Conformance)) {
	t.Run("all", func(t *testing.T) {
		for _, f := range foreigners {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				c, err := conformance.Run(ctx, f.open(t, program), conformance.Options{Clauses: clauses, Deadline: 3 * time.Minute})
				require.NoError(t, err)
				require.Empty(t, c.Aborted, "it did not end in time")
				requireSchema(t, c)
				then(t, f, c)
			})
		}
	})
}

// requireAsPublished holds a run of some clauses to what is published. A clause
// whose scenarios a busy machine did not get to settles nothing, but most must.
func requireAsPublished(t *testing.T, c record.Conformance, published map[string]standing) {
	t.Helper()
	var settled, unsettled int
	for _, cl := range c.Clauses {
		if !slices.Contains(foreignClauses, cl.ID) || cl.Verdict == record.NotRun {
			continue
		}
		now, before := standingOf([]record.Verdict{cl.Verdict}), published[cl.ID]
		switch {
		case before == now, before == nowAndThen:
			settled++
		case now == untold, before == untold && now == kept:
			unsettled++
		default:
			t.Errorf("%s: %s, and docs/foreign.md says: %s: %+v", cl.ID, now, before, cl.Scenarios)
		}
	}
	require.Greater(t, settled, unsettled, "clauses that were settled, beside those that were not")
}
