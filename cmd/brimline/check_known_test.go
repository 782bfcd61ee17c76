package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
)

// known writes a list of known failures and returns its path.
func known(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "known.txt")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestCheckOfAKnownFailure(t *testing.T) {
	path := checkSite(t, "retry-after-plus-one")
	list := known(t, "# of staging\nHDR-5 # it rounds up twice\n")
	code, stdout, stderr := runCheck(t, "--target", path, "--clauses", "HDR-5", "--known-failing", list)
	require.Equal(t, exitHolds, code, stderr)
	require.Contains(t, stdout, "~ HDR-5      known to fail: it rounds up twice")
	require.Contains(t, stdout, "partial: 1 known to fail")
	require.NotContains(t, stdout, "curl", "it is known")

	code, stdout, _ = runCheck(t, "--target", path, "--clauses", "HDR-2,HDR-5", "--known-failing", known(t, "HDR-5\nHDR-2 # was the rate\nCONC-1\n"), "--quiet")
	require.Equal(t, exitFails, code, "HDR-2 is kept")
	require.Contains(t, stdout, "+ HDR-2")
	require.Contains(t, stdout, "· CONC-1     listed as known to fail, and not judged: not selected")
}

func TestCheckAgainstAnEarlierRun(t *testing.T) {
	first := t.TempDir()
	code, _, stderr := runCheck(t, "--target", checkSite(t, ""), "--clauses", "HDR-5", "--out", first, "--quiet")
	require.Equal(t, exitHolds, code)
	require.Empty(t, stderr)

	out := t.TempDir()
	earlier := filepath.Join(first, "conformance.json")
	code, stdout, _ := runCheck(t, "--target", checkSite(t, "retry-after-plus-one"), "--clauses", "HDR-5", "--against", earlier, "--out", out)
	require.Equal(t, exitFails, code)
	require.Contains(t, stdout, ": 1 newly failing\n  HDR-5      newly failing     pass → fail")

	c, err := record.ReadConformance(filepath.Join(out, "conformance.json"))
	require.NoError(t, err)
	require.Equal(t, []record.Change{{Clause: "HDR-5", Kind: record.NewlyFailing, Was: record.Pass, Is: record.Fail}}, c.Changes.List)

	// A file that lost part of itself is refused before anything is sent.
	c.Clauses = c.Clauses[1:]
	cut, err := json.Marshal(c)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(earlier, cut, 0o600))
	code, stdout, stderr = runCheck(t, "--against", earlier)
	require.Equal(t, exitUsage, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "conformance.json: cut or edited: it says it holds 100 clauses")
}

func TestCommandOfARun(t *testing.T) {
	f := checkFlags{target: "it's here/t.yaml", clauses: []string{"HDR-5", "RATE-1"}, knownFailing: "known.txt", strict: true, out: "out", quiet: true}
	require.Equal(t, `brimline check --target 'it'\''s here/t.yaml' --clauses HDR-5,RATE-1 --known-failing known.txt --strict`, f.command())
	require.Equal(t, "brimline check", checkFlags{}.command())
}

// TestExitCodesAreDocumented: the page has a row for each code and no other, and
// a row for each verdict with the mark that is printed for it.
func TestExitCodesAreDocumented(t *testing.T) {
	page := textOf(t, "../../docs/verdicts.md")
	for code, says := range map[int]string{exitHolds: "it holds", exitFails: "it does not hold", exitUsage: "usage, configuration or bad input", exitCannotTell: "it could not be told"} {
		require.Contains(t, page, fmt.Sprintf("\n| %d | %s", code, says))
	}
	require.Len(t, regexp.MustCompile(`(?m)^\| \d`).FindAllString(page, -1), 4)
	require.Len(t, regexp.MustCompile("(?m)^\\| `[a-z_]+` \\| . \\|").FindAllString(page, -1), len(record.Verdicts()))
	for _, v := range record.Verdicts() {
		require.Contains(t, page, fmt.Sprintf("\n| `%s` | ", v))
		require.Regexp(t, fmt.Sprintf(`(?m)^  %s +[a-z]`, v), checkHelp)
	}
	for _, r := range []record.Result{record.ResultSuccess, record.ResultPartial, record.ResultFailure} {
		require.Contains(t, page, fmt.Sprintf("\n| `%s` | ", r))
	}
	for _, k := range record.ChangeKinds() {
		require.Contains(t, page, strings.ReplaceAll(string(k), "_", " "))
	}
}
