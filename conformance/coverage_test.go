package conformance_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/features"
	"github.com/invoicespec/brimline/reference/fault"
)

var updateCoverage = flag.Bool("coverage", false, "rewrite docs/coverage.md")

const coveragePage = "../docs/coverage.md"

// later are clauses that nothing covers yet, and why.
func later() map[string]string {
	const adapter = "comes with the first adapter for a storage that replicas share: until then a server refuses every storage but its own memory (GUARD-2)"
	return map[string]string{"DIST-1": adapter, "DIST-2": adapter, "DIST-3": adapter}
}

// inside are clauses that no scenario can see, because of what happens inside a
// server or in its store: Go tests that name them in their comment cover them.
func inside() map[string]string {
	return map[string]string{
		"AUTH-2":  "how often a store is asked does not show outside",
		"CACHE-1": "it takes more users than a suite can be, and what is forgotten does not show",
		"CACHE-2": "likewise",
	}
}

// beside are clauses of which scenarios see a part: Go tests cover the rest.
func beside() map[string]string {
	return map[string]string{
		"LOG-5": "a database that is away, a full spool, and a log that cannot be written",
		"LOG-6": "a delivery into a database that a kill breaks off",
	}
}

// Each clause has a scenario and a fault, or a Go test that names it where
// nothing can be seen from outside, or a reason why it has none yet.
func TestEveryClauseIsCovered(t *testing.T) {
	scenarios, faults, tests := covered(t)
	var page strings.Builder
	page.WriteString(`# What covers which clause

A clause that can be seen from outside has scenarios, in features/, and [faults](faults.md) that turn them red: [kill-table.md](kill-table.md) says which by which. The others, and what scenarios cannot see of some, have Go tests that name the clause in their comment. A test holds this page to both (` + "`go test ./conformance -run TestEveryClauseIsCovered -coverage`" + ` rewrites it) and fails for a clause without.

| clause | scenarios | faults | Go tests, or why not |
|---|---|---|---|
`)
	for _, c := range contract.Clauses() {
		within, isInside := inside()[c.ID]
		why, isLater := later()[c.ID]
		cell := ""
		switch {
		case isLater:
			require.Zero(t, scenarios[c.ID]+faults[c.ID], "%s is covered by now", c.ID)
			cell = why
		case isInside:
			require.Zero(t, scenarios[c.ID]+faults[c.ID], "%s can be seen after all", c.ID)
			require.NotEmpty(t, tests[c.ID], "no Go test names %s in its comment: %s", c.ID, c.Sentence)
			cell = within + ": " + strings.Join(tests[c.ID], ", ")
		default:
			if rest, more := beside()[c.ID]; more {
				require.NotEmpty(t, tests[c.ID], "no Go test names %s in its comment: %s", c.ID, c.Sentence)
				cell = rest + ": " + strings.Join(tests[c.ID], ", ")
			}
			require.NotZero(t, scenarios[c.ID], "no scenario sees %s: %s", c.ID, c.Sentence)
			require.NotZero(t, faults[c.ID], "no fault breaks %s: %s", c.ID, c.Sentence)
		}
		fmt.Fprintf(&page, "| %s | %d | %d | %s |\n", c.ID, scenarios[c.ID], faults[c.ID], cell)
	}
	if *updateCoverage {
		require.NoError(t, os.WriteFile(coveragePage, []byte(page.String()), 0o644))
	}
	got, err := os.ReadFile(coveragePage)
	require.NoError(t, err)
	require.Equal(t, page.String(), string(got), "go test ./conformance -run TestEveryClauseIsCovered -coverage rewrites the page")
}

// covered counts scenarios and faults, and lists tests, by clause.
func covered(t *testing.T) (scenarios, faults map[string]int, tests map[string][]string) {
	t.Helper()
	scenarios, faults, tests = map[string]int{}, map[string]int{}, map[string][]string{}
	plan, err := conformance.NewPlan(everything{}, features.FS, nil)
	require.NoError(t, err)
	for _, s := range plan.Scenarios {
		require.Empty(t, s.NotRun, "%s is out of reach for a target that offers all there is", s.At)
		scenarios[s.Clauses[0]]++
	}
	for _, f := range fault.All() {
		faults[f.Clause]++
	}
	clause := regexp.MustCompile(`\b[A-Z]+-[0-9]+\b`)
	eachTest(t, func(folder string, f *ast.FuncDecl) {
		for _, id := range clause.FindAllString(f.Doc.Text(), -1) {
			name := fmt.Sprintf("%s `%s`", folder, f.Name.Name)
			if !slices.Contains(tests[id], name) {
				tests[id] = append(tests[id], name)
			}
		}
	})
	return scenarios, faults, tests
}

// eachTest calls do for every Go test of the module.
func eachTest(t *testing.T, do func(folder string, f *ast.FuncDecl)) {
	t.Helper()
	root := os.DirFS("..")
	require.NoError(t, fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				do(filepath.ToSlash(filepath.Dir(path)), f)
			}
		}
		return nil
	}))
}

// The list of known faults that the suite began with: each is modelled, or it is
// said what holds instead.
func TestEveryKnownFaultIsModelled(t *testing.T) {
	data, err := os.ReadFile("../docs/known-faults.md")
	require.NoError(t, err)
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| (.*) \|$`).FindAllStringSubmatch(string(data), -1)
	require.Len(t, rows, 161)
	named := map[string]bool{}
	eachTest(t, func(_ string, f *ast.FuncDecl) { named[f.Name.Name] = true })
	quoted := regexp.MustCompile("`([^`]+)`")
	for i, row := range rows {
		require.Equal(t, strconv.Itoa(i+1), row[1], "the rows are numbered")
		names := quoted.FindAllStringSubmatch(row[2], -1)
		require.NotEmpty(t, names, "row %s names neither a fault nor a test", row[1])
		for _, name := range names {
			if strings.HasPrefix(name[1], "Test") {
				require.True(t, named[name[1]], "row %s: there is no %s", row[1], name[1])
				continue
			}
			_, err := fault.ByName(name[1])
			require.NoError(t, err, "row %s", row[1])
		}
	}
}
