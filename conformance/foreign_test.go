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
var foreignClauses = []string{"SCOPE-1", "POOL-1", "POOL-2", "RATE-1", "RATE-2", "RATE-5", "RATE-9", "HDR-1", "HDR-5", "ERR-1", "ERR-3", "CONC-1", "PERMIT-8", "ANON-4"}

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

// requireAsPublished holds a run of some clauses to what is published: nothing is
// broken that is kept there, and no group is kept of which something is not kept
// there. More is not to be had of a part: whether a window has begun depends on
// what was asked before, and a busy machine leaves some of it open.
func requireAsPublished(t *testing.T, c record.Conformance, published map[string]standing) {
	t.Helper()
	unlike := map[string]bool{} // groups of which something is not kept there, and nothing but kept here
	for _, cl := range c.Clauses {
		if !slices.Contains(foreignClauses, cl.ID) {
			continue
		}
		broken := cl.Verdict == record.Fail || cl.Verdict == record.Differs
		if broken {
			require.NotEqual(t, kept, published[cl.ID], "%s is not kept, and docs/foreign.md says that it is: %+v", cl.ID, cl.Scenarios)
		}
		if published[cl.ID] == notKept {
			before, seen := unlike[cl.Group]
			unlike[cl.Group] = (before || !seen) && cl.Verdict == record.Pass
		}
	}
	for group, kept := range unlike {
		require.False(t, kept, "%s: all is kept, and docs/foreign.md says that something is not", group)
	}
}
