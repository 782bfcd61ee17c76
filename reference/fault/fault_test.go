package fault_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/fault"
)

var update = flag.Bool("update", false, "rewrite docs/faults.md")

func TestFaultsAreWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range fault.All() {
		require.Regexp(t, `^[a-z0-9]+(-[a-z0-9]+)*$`, f.Name)
		require.False(t, seen[f.Name], "%s is there twice", f.Name)
		seen[f.Name] = true
		_, known := contract.FindClause(f.Clause)
		require.True(t, known, "%s: clause %s", f.Name, f.Clause)
		require.NotNil(t, f.Apply, f.Name)
		require.Regexp(t, `^[^.]+[^. ]$`, f.Wrong, "%s: one sentence, without a full stop", f.Name)
	}
}

func TestByName(t *testing.T) {
	f, err := fault.ByName("cost-two")
	require.NoError(t, err)
	require.Equal(t, "RATE-4", f.Clause)

	for name, want := range map[string]string{
		"cost-tow":      `unknown fault "cost-tow": did you mean cost-two?`,
		"after-is":      `unknown fault "after-is": did you mean retry-after-is-reset?`,
		"leak-on-sucks": `unknown fault "leak-on-sucks": did you mean leak-on-success?`,
	} {
		_, err := fault.ByName(name)
		require.EqualError(t, err, want)
	}
	for _, name := range []string{"", "x", "quite-something-else"} {
		_, err := fault.ByName(name)
		require.ErrorContains(t, err, fmt.Sprintf("unknown fault %q: there are ", name))
		for _, f := range fault.All() {
			require.ErrorContains(t, err, f.Name)
		}
	}
}

// TestPage holds docs/faults.md to the faults there are.
func TestPage(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "faults.md")
	want := page()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
	}
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "go test ./reference/fault -update rewrites the page")
}

func page() string {
	var b strings.Builder
	clauses := map[string]bool{}
	for _, f := range fault.All() {
		clauses[f.Clause] = true
	}
	fmt.Fprintf(&b, `# Faults

Servers that are wrong on purpose: %d faults against %d clauses, each wrong in one way and right otherwise. `+"`brimline serve --fault NAME`"+` runs one, on loopback only, to test a suite or a client against; `+"`brimline check --self-test`"+` shows that the suite tells each from a correct server.

This page is made from reference/fault by its tests (`+"`go test ./reference/fault -update`"+`).
`, len(fault.All()), len(clauses))
	for _, table := range fault.Tables() {
		fmt.Fprintf(&b, "\n## %s\n\n| fault | breaks | what is wrong |\n|---|---|---|\n", table.Title)
		for _, f := range table.Faults {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, f.Clause, f.Wrong)
		}
	}
	return b.String()
}

// TestFaultsAreWrong runs the trial of each fault on a correct server, where it
// must come out right, and on the wrong one, where it must come out as said.
func TestFaultsAreWrong(t *testing.T) {
	all := trials()
	for _, f := range fault.All() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			if _, atStart := startTrials()[f.Name]; atStart {
				return // see TestFaultsAtTheStartAreWrong
			}
			trial, ok := all[f.Name]
			require.True(t, ok, "this fault has no trial")
			require.NotEqual(t, trial.right, trial.wrong)
			require.Equal(t, trial.right, trial.probe(open(t, nil)), "on a correct server")
			require.Equal(t, trial.wrong, trial.probe(open(t, f.Apply)), "on the wrong server")
		})
	}
	var names []string
	for _, f := range fault.All() {
		names = append(names, f.Name)
	}
	for name := range all {
		require.True(t, slices.Contains(names, name), "there is a trial of %s, but no such fault", name)
	}
}

// TestFaultsAreRightOtherwise asks each wrong server for what no fault is about.
func TestFaultsAreRightOtherwise(t *testing.T) {
	for _, f := range fault.All() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			s := open(t, f.Apply)
			u := s.user("free")
			a := u.asks(valid)
			require.Equal(t, 200, a.status)
			require.Contains(t, a.text, `"gross":"357.00"`)
			require.Equal(t, 422, u.asks(invalid).status)
			for _, path := range []string{"/health", "/ready", "/openapi.json"} {
				require.Equal(t, 200, s.send(ask{method: "GET", path: path}, "").status, path)
			}
			require.Equal(t, 404, s.send(ask{method: "GET", path: "/elsewhere"}, "").status)
		})
	}
}
