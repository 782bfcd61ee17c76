package contract_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
)

func TestClausesAreWellFormed(t *testing.T) {
	id := regexp.MustCompile(`^[A-Z]+-[1-9][0-9]?$`)
	seen := map[string]bool{}
	for _, c := range contract.Clauses() {
		t.Run(c.ID, func(t *testing.T) {
			require.Regexp(t, id, c.ID)
			require.False(t, seen[c.ID], "given twice")
			seen[c.ID] = true
			require.Contains(t, []contract.Level{contract.Must, contract.Decided}, c.Level)
			require.NotEmpty(t, c.Group)
			require.NotEmpty(t, c.Needs)
			require.True(t, strings.HasSuffix(c.Sentence, "."), "a sentence ends in a full stop: %q", c.Sentence)
			require.Equal(t, c.Level == contract.Decided, c.Decision != "", "what was decided here is said, and nothing else")
			for _, n := range c.Needs {
				_, err := contract.ParseNeed(string(n))
				require.NoError(t, err)
			}
			found, ok := contract.FindClause(c.ID)
			require.True(t, ok)
			require.Equal(t, c, found)
		})
	}
}

// The numbers of each family are pinned, so that a clause lost from the list
// cannot go unnoticed: results would simply no longer speak of it.
func TestNoClauseIsMissing(t *testing.T) {
	want := map[string]int{
		"SCOPE": 4, "AUTH": 2, "POOL": 3, "RATE": 10, "HDR": 9, "ERR": 5, "CONC": 6, "PERMIT": 8, "LOG": 8,
		"PLAN": 3, "OVR": 8, "CHG": 4, "CFG": 5, "ANON": 8, "PROXY": 5, "GUARD": 2, "RESTART": 2,
		"CACHE": 2, "METRIC": 2, "BILL": 1, "DIST": 3,
	}
	got := map[string]int{}
	for _, c := range contract.Clauses() {
		family, number, _ := strings.Cut(c.ID, "-")
		got[family]++
		require.Equal(t, fmt.Sprint(got[family]), number, "%s is out of order", c.ID)
	}
	require.Equal(t, want, got)
	require.Len(t, contract.Clauses(), 100)
}

func TestFindClauseKnowsNothingElse(t *testing.T) {
	for _, id := range []string{"", "RATE-0", "rate-1", "RATE-1 ", "RATE-11"} {
		_, ok := contract.FindClause(id)
		require.False(t, ok, "%q", id)
	}
}

func TestParseNeedNamesTheKnownOnes(t *testing.T) {
	_, err := contract.ParseNeed("holds")
	require.ErrorContains(t, err, `unknown need "holds"`)
	require.ErrorContains(t, err, "hold, upload, gates")
}
