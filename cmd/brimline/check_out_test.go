package main

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
)

func TestAFolderThatCannotHoldAResultIsRefusedAtOnce(t *testing.T) {
	taken := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(taken, "badge.json"), 0o755))
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for out, says := range map[string]string{taken: "badge.json: a folder; accepted: ", file: "not a directory", "/dev/null/out": "not a directory"} {
		code, stdout, stderr := runCheck(t, "--target", "nowhere.yaml", "--out", out)
		require.Equal(t, exitUsage, code)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "brimline: --out: ")
		require.Contains(t, stderr, says)
	}
}

// TestAnOlderResultDoesNotOutliveARun: a run that ends without a result leaves
// none, whatever was there.
func TestAnOlderResultDoesNotOutliveARun(t *testing.T) {
	out, site := t.TempDir(), checkSite(t, "")
	code, _, stderr := runCheck(t, "--target", site, "--clauses", "HDR-5", "--out", out)
	require.Equal(t, exitHolds, code, stderr)
	mine := filepath.Join(out, "notes.txt")
	require.NoError(t, os.WriteFile(mine, nil, 0o600))

	away := filepath.Join(t.TempDir(), "away.yaml")
	require.NoError(t, os.WriteFile(away, []byte(leastTarget("http://127.0.0.1:1")), 0o600))
	code, _, stderr = runCheck(t, "--target", away, "--out", out)
	require.Equal(t, exitCannotTell, code, stderr)
	left, err := os.ReadDir(out)
	require.NoError(t, err)
	require.Len(t, left, 1, "what is not a result's stays")
	require.FileExists(t, mine)
}

// TestAResultThatCannotBeLeftIsPrinted: with the exit code that it stands for.
func TestAResultThatCannotBeLeftIsPrinted(t *testing.T) {
	result := func(v record.Verdict, aborted string) record.Conformance {
		c := record.Conformance{Schema: record.ConformanceSchema, Aborted: aborted, Clauses: []record.Clause{{ID: "HDR-5", Level: "MUST", Verdict: v}}}
		return c.Summed()
	}
	for name, c := range map[string]struct {
		result record.Conformance
		want   int
	}{
		"kept":      {result(record.Pass, ""), exitUsage},
		"not kept":  {result(record.Fail, ""), exitFails},
		"cut short": {result(record.Pass, "interrupted"), exitCannotTell},
		"untrue":    {result(record.Untrue, ""), exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout bytes.Buffer
			dir := t.TempDir()
			require.NoError(t, claim(dir))
			require.NoError(t, os.Mkdir(filepath.Join(dir, "summary.md"), 0o755)) // since it was tried
			require.NoError(t, os.WriteFile(filepath.Join(dir, "summary.md", "x"), nil, 0o600))
			err := checkFlags{out: dir}.report(c.result, world{getenv: noEnvironment, stdout: &stdout})
			v := (*verdict)(nil)
			require.ErrorAs(t, err, &v)
			require.Equal(t, c.want, v.code)
			require.ErrorContains(t, v.err, "--out: ")
			require.Contains(t, stdout.String(), "1 ")
			require.NotContains(t, stdout.String(), "report: ", "nothing was left")
			require.NoFileExists(t, filepath.Join(dir, "index.html"), "not a part of it either")
		})
	}
}

func TestBudgetsThatAreNone(t *testing.T) {
	for _, budget := range []string{"0", "0s", "1ms", "-3m"} {
		code, stdout, stderr := runCheck(t, "--budget="+budget)
		require.Equal(t, exitUsage, code)
		require.Empty(t, stdout)
		require.Contains(t, stderr, "is no time to run in; accepted: 1s or more, such as 3m")
	}
}

// TestWhomNobodyVouchesFor: asked again, it would be the same again.
func TestWhomNobodyVouchesFor(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	path := filepath.Join(t.TempDir(), "t.yaml")
	require.NoError(t, os.WriteFile(path, []byte(leastTarget(s.URL)), 0o600))
	code, _, stderr := runCheck(t, "--target", path)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "unknown authority")
	require.Contains(t, stderr, "; accepted: a certificate that this machine or tls.ca-file vouches for")
}

// leastTarget is a target file with as little in it as may be, and no user.
func leastTarget(url string) string {
	return "base-urls: [" + url + "]\ncredential: { header: A, template: \"{key}\" }\noperations: { valid: { method: POST, path: /v1/invoice/x, body: \"{}\" } }\nallowances: { free: { requests-per-minute: 1, burst: 1, concurrency: 1 } }\n"
}
