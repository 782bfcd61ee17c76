package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/reassess"
	"github.com/invoicespec/brimline/reports/record"
)

// reported carries out one report command and returns what it left behind.
func reported(t *testing.T, args ...string) replayed {
	t.Helper()
	return reportedFrom(t, "", args...)
}

// reportedFrom is [reported] with something on standard input.
func reportedFrom(t *testing.T, stdin string, args ...string) replayed {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), append([]string{"report"}, args...), world{
		getenv: noEnvironment, stdin: strings.NewReader(stdin), stdout: &out, stderr: &errs,
	})
	return replayed{code, out.String(), errs.String()}
}

// busyWeek is an access log of 400 clients on seven days, of whom 40 send 14
// requests in one second.
func busyWeek() string {
	var b strings.Builder
	for client := range 400 {
		for range 1 + 13*max(0, min(1, 40-client)) {
			fmt.Fprintf(&b, "198.18.%d.%d - - [%02d/Mar/2026:10:%02d:00 +0000] \"POST /v1/invoice/calculate HTTP/1.1\" 200 5\n",
				client/200, client%200, 1+client%7, client%60)
		}
	}
	return b.String()
}

func TestReportWritesTheSameFilesEveryTime(t *testing.T) {
	log, dir := file(t, "access.log", busyWeek()), filepath.Join(t.TempDir(), "a", "b")
	gates := file(t, "gates.yaml", "evidence: []\n")
	first := map[string]string{}
	for again := range 2 {
		got := reported(t, log, "--allowance", "10/10", "--gates", gates, "--out", dir)
		require.Equal(t, exitHolds, got.code, got.stderr)
		require.Contains(t, got.stdout, "All clients: raise to 15 a minute, burst 15\n")
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		charts := 0
		for _, entry := range left {
			data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			require.NoError(t, err)
			if again == 0 {
				first[entry.Name()] = string(data)
			}
			require.True(t, first[entry.Name()] == string(data), "%s is another the second time", entry.Name())
			if strings.HasSuffix(entry.Name(), ".csv") {
				charts++
			}
		}
		require.Len(t, left, 3+charts, "and nothing else")
		require.Positive(t, charts)
		for _, name := range []string{"report.html", "report.json", "report.md"} {
			require.NotEmpty(t, first[name])
		}
	}
}

func TestReportJSONKeepsItsPublishedSchema(t *testing.T) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := c.Compile("../../docs/report.schema.json")
	require.NoError(t, err)
	log, api := file(t, "access.log", busyWeek()), file(t, "api.jsonl", apiEntry(1, "admitted", token)+apiEntry(2, "admitted", 0)+apiEntry(3, "rate", 0))
	for name, args := range map[string][]string{
		"access log": {log, "--allowance", "10/10"}, "allowance unknown": {log}, "API log": {api}, "both": {log, api, "--plan", "free"},
	} {
		t.Run(name, func(t *testing.T) {
			got := reported(t, append(args, "--json")...)
			doc, err := jsonschema.UnmarshalJSON(strings.NewReader(got.stdout))
			require.NoError(t, err)
			require.NoError(t, schema.Validate(doc))
			var r record.Report
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &r))
			require.NotEmpty(t, r.Plans)
		})
	}
}

func TestReportWithoutEnoughEvidence(t *testing.T) {
	dir := t.TempDir()
	got := reported(t, file(t, "access.log", access(30)), "--allowance", "10/10", "--out", dir)
	require.Equal(t, exitCannotTell, got.code)
	require.Contains(t, got.stdout, "All clients: not enough evidence\n  1 client, where 300 are needed; 0 s of traffic, where 7 days are needed.\n")
	require.Equal(t, "brimline: not enough evidence on any plan\n", got.stderr)
	require.FileExists(t, filepath.Join(dir, "report.html"), "it says what is missing")
}

func TestReportRefuses(t *testing.T) {
	log := file(t, "access.log", access(5))
	out := func(args ...string) []string { return append(args, "--out", filepath.Join(t.TempDir(), "out")) }
	for name, c := range map[string]struct {
		args  []string
		wrong string
	}{
		"no input":          {out(), "report needs an input"},
		"nowhere to go":     {[]string{log}, "report needs --out DIR, or --json"},
		"no such file":      {out("/nonexistent/x"), "brimline: /nonexistent/x: no such file or directory; accepted: a folder that brimline load left, access logs, API logs"},
		"a lost input":      {out(log, ""), "argument 2 of report is empty"},
		"a lost plan":       {out(log, "--plan", ""), "--plan is empty"},
		"a lost folder":     {[]string{log, "--json", "--out", ""}, "--out is empty"},
		"a log and its gz":  {out(log, file(t, "access.log.gz", gzipped(t, access(5)))), ": holds the same lines as " + log + ", which would count twice"},
		"half an allowance": {out(log, "--allowance", "10"), "such as 10/10"},
		"no allowance":      {out(log, "--allowance", "0/10"), `requests-per-minute "0" is no whole number`},
		"a fraction":        {out(log, "--allowance", "10/1.5"), `burst "1.5" is no whole number`},
		"out is a file":     {[]string{log, "--out", log}, "--out: "},
	} {
		t.Run(name, func(t *testing.T) {
			got := reported(t, c.args...)
			require.Equal(t, exitUsage, got.code)
			require.Contains(t, got.stderr, c.wrong)
			require.Equal(t, 1, strings.Count(got.stderr, "\n"), "one line")
			require.Empty(t, got.stdout)
		})
	}
}

// What is said of lines that were dropped and of the goal is on the terminal too,
// and the help names as many users as are asked for.
func TestReportSaysOnTheTerminal(t *testing.T) {
	log := file(t, "access.log", busyWeek()+strings.Repeat("rubbish\n", 200))
	got := reported(t, log, "--allowance", "10/10", "--out", t.TempDir())
	require.Equal(t, exitCannotTell, got.code, got.stderr)
	require.Contains(t, got.stdout, "All clients: not enough evidence to raise to 15 a minute, burst 15\n")
	require.Contains(t, got.stdout, "read: "+log+": 1,120 lines: 920 entries, 200 dropped (200 × no client and time at its start)\n")
	require.True(t, strings.HasPrefix(got.stdout, "The goal: 99 % of a plan's users are OK"), got.stdout)

	require.Contains(t, reported(t, "--help").stdout, fmt.Sprintf("at least %d users", reassess.Rules().MinUsers))
}
