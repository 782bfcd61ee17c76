package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reports/record"
)

// TestReportFindsAWrongAllowance: a server that limits a plan below what its
// target file says is named by the report on a load run against it: which plan,
// how many 429s were not due, and that it is the first thing to look at.
func TestReportFindsAWrongAllowance(t *testing.T) {
	site := openLoadSite(t, server.Config{Control: "127.0.0.1:0"}, func(f *target.File) {
		a := f.Allowances["starter"]
		require.EqualValues(t, 60, a.RequestsPerMinute)
		a.RequestsPerMinute, a.Burst = 600, 100 // the server holds to 60/20
		f.Allowances["starter"] = a
	})
	code, _, errs := site.load(t.Context(), t, `duration: 3s
populations:
  - { plan: free, users: 2, arrival: constant, rate: 1x, on-429: ignore }
  - { plan: starter, users: 2, arrival: constant, rate: 2x, on-429: ignore }
`)
	requireMeasured(t, code, errs)
	out := filepath.Join(site.dir, "report")
	got := reported(t, filepath.Join(site.dir, "run"), "--gate", "--out", out)
	if code == exitCannotTell {
		require.Equal(t, exitCannotTell, got.code)
		require.Contains(t, got.stderr, "this machine was too slow")
		return
	}
	require.Equal(t, exitFails, got.code, got.stderr)
	require.Contains(t, got.stderr, "starter: wrong decisions in load runs: ")
	require.Regexp(t, `(?m)^Starter: .*\n  \S+: \d+ rejections for the rate though there surely was a token\.$`, got.stdout)

	data, err := os.ReadFile(filepath.Join(out, "report.json"))
	require.NoError(t, err)
	var r record.Report
	require.NoError(t, json.Unmarshal(data, &r))
	require.Equal(t, "starter", r.Plans[0].Plan, "the biggest news comes first")
	require.Positive(t, r.Plans[0].Scores[0].RateJudged.Undue)
	require.Zero(t, r.Plans[1].Scores[0].Wrong(), "and nothing is said against the other plan")
	for _, g := range r.Plans[1].Gates {
		require.NotEqual(t, record.GateFails, g.State, g.Name)
	}
	page, err := os.ReadFile(filepath.Join(out, "report.html"))
	require.NoError(t, err)
	require.Contains(t, string(page), "though there surely was a token")
}

// A capacity search's folder is an input like any other: with it the engine has
// room, or none, and the report says so.
func TestReportWithACapacitySearch(t *testing.T) {
	log := file(t, "access.log", busyWeek())
	for name, c := range map[string]struct {
		holds    float64
		code     int
		headline string
	}{
		"room":    {500, exitHolds, "All clients: raise to 15 a minute, burst 15\n"},
		"no room": {1, exitHolds, "All clients: keep 10 a minute, burst 10; the engine has no room for more\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "capacity")
			require.NoError(t, record.WriteCapacity(dir, record.Capacity{
				Schema: record.CapacitySchema, Brimline: "1.0", Started: time.Date(2026, 3, 9, 1, 2, 3, 0, time.UTC), SLO: []string{"admitted.latency.p99 < 250ms"},
				Steps: []record.CapacityStep{
					{Folder: "step-01", Asked: c.holds, Offered: c.holds, Load: c.holds, Goodput: c.holds, P50US: 4_000, P99US: 20_000, Verdict: record.CapacityHolds, Why: []string{}},
				},
				End: record.EndTop, Holds: &c.holds, Said: []string{"so much"},
			}))
			got := reported(t, log, dir, "--allowance", "10/10", "--json")
			require.Equal(t, c.code, got.code, got.stderr)
			var r record.Report
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &r))
			require.Equal(t, dir, r.Capacity.Source)
			require.Equal(t, record.InputCapacity, r.Inputs[1].Kind)
			require.NotNil(t, r.Capacity.Share)
			got = reported(t, log, dir, "--allowance", "10/10", "--out", t.TempDir())
			require.Contains(t, got.stdout, c.headline)
			junit := filepath.Join(t.TempDir(), "gates.xml")
			gated := reported(t, log, dir, "--allowance", "10/10", "--out", t.TempDir(), "--gate", "--junit", junit)
			require.Equal(t, exitFails, gated.code, "not enough users are OK today")
			require.Contains(t, gated.stderr, "the first: ")
			xml, err := os.ReadFile(junit)
			require.NoError(t, err)
			require.Contains(t, string(xml), `<failure type="fails" message="needed: 99 %`)
		})
	}
}

func TestReportGates(t *testing.T) {
	printed := reported(t, "--print-gates")
	require.Equal(t, exitHolds, printed.code)
	log, gates := file(t, "access.log", busyWeek()), file(t, "gates.yaml", printed.stdout)
	dir := t.TempDir()
	require.Equal(t, exitCannotTell, reported(t, log, "--allowance", "10/10", "--out", dir).code)
	usual, err := os.ReadFile(filepath.Join(dir, "report.json"))
	require.NoError(t, err)
	require.Equal(t, exitCannotTell, reported(t, log, "--allowance", "10/10", "--gates", gates, "--out", dir).code)
	same, err := os.ReadFile(filepath.Join(dir, "report.json"))
	require.NoError(t, err)
	var a, b record.Report
	require.NoError(t, json.Unmarshal(usual, &a))
	require.NoError(t, json.Unmarshal(same, &b))
	require.Equal(t, gates, b.Rules.From)
	b.Rules.From, b.Inputs = a.Rules.From, a.Inputs
	require.Equal(t, a, b, "what is printed is what is usual")

	wrong := reported(t, log, "--gates", file(t, "gates.yaml", "users: { ok: 200 % }\n"), "--out", dir)
	require.Equal(t, exitUsage, wrong.code)
	require.Contains(t, wrong.stderr, "gates.yaml:1: users.ok: got 200 %")
}

func TestReportAgainst(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "report.json")
	gates := file(t, "gates.yaml", "evidence: []\nchange: { days: 3000, reports: 2 }\n")
	log := file(t, "access.log", busyWeek())
	first := reported(t, log, "--allowance", "10/10", "--gates", gates, "--out", dir)
	require.Contains(t, first.stdout, "All clients: keep 10 a minute, burst 10 for now\n", first.stderr)
	more := file(t, "access.log", busyWeek()+access(3))
	second := reported(t, more, "--allowance", "10/10", "--gates", gates, "--against", old, "--json")
	require.Equal(t, exitHolds, second.code, second.stderr)
	var r record.Report
	require.NoError(t, json.Unmarshal([]byte(second.stdout), &r))
	require.Equal(t, record.Raise, r.Plans[0].Verdict.Word, "two reports agree")
	require.NotEmpty(t, r.Against.Rows)
	require.Equal(t, old, r.Earlier[0].Name)
	require.Equal(t, "users affected", r.Against.Rows[0].Figure)
	require.NotNil(t, r.Against.Rows[0].P)
	require.Nil(t, r.Against.Rows[0].Delta, "hardly anything has changed")

	refused := reported(t, log, "--against", file(t, "report.json", `{"schema":"brimline.report/1"}`), "--json")
	require.Equal(t, exitUsage, refused.code)
	require.Contains(t, refused.stderr, `a report of schema "brimline.report/1", from before decisions were kept by dimension; accepted: "brimline.report/2"`)
	none := reported(t, log, "--against", log, "--json")
	require.Equal(t, exitUsage, none.code)
	require.Contains(t, none.stderr, `accepted: a report.json of schema "brimline.report/2"`)
}

// A report that is interrupted leaves nothing, even while its input waits.
func TestReportIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	silent, write := io.Pipe()
	defer write.Close()
	context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, func() { write.Close() }) })
	cancel()
	dir := filepath.Join(t.TempDir(), "out")
	var out, errs bytes.Buffer
	code := run(ctx, []string{"report", "-", "--allowance", "10/10", "--out", dir}, world{getenv: noEnvironment, stdin: silent, stdout: &out, stderr: &errs})
	require.Equal(t, exitCannotTell, code)
	require.Equal(t, "brimline: interrupted: no report was written\n", errs.String())
	require.NoDirExists(t, dir)
}

func TestReportFromStandardInput(t *testing.T) {
	got := reportedFrom(t, busyWeek(), "-", "--allowance", "10/10", "--json")
	require.Equal(t, exitCannotTell, got.code, got.stderr)
	var r record.Report
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &r))
	require.Equal(t, "standard input", r.Inputs[0].Name)
	require.EqualValues(t, len(busyWeek()), r.Inputs[0].Bytes)
	require.Equal(t, exitUsage, reportedFrom(t, "", "-", "--json").code, "an empty one is no log")
}
