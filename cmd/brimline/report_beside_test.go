package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
)

// A plan map, prices, operations and tickets make several plans of one log; no
// user's or client's name is in anything that is written.
func TestReportWithAllThatPeopleExport(t *testing.T) {
	var users strings.Builder
	users.WriteString("client,user,plan\n")
	for i := range 400 {
		fmt.Fprintf(&users, "198.18.%d.%d,secret-%d,%s\n", i/200, i%200, i, map[bool]string{true: "free", false: "starter"}[i < 350])
	}
	dir := t.TempDir()
	put := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	put("users.csv", users.String(), 0o600)
	plans := put("plans.yaml", `users-file: users.csv
plans:
  free: { requests-per-minute: 10, burst: 10, paid: false }
  starter: { requests-per-minute: 60, burst: 20, paid: true }
`, 0o600)
	out := filepath.Join(dir, "out")
	args := []string{
		file(t, "access.log", busyWeek()), "--plan-map", plans, "--out", out,
		"--prices", put("prices.csv", "plan,amount,currency,period\nfree,0,EUR,month\nstarter,19,EUR,month\n", 0o600),
		"--operations", put("operations.csv", "user,time,used,included\nsecret-399,2026-03-02,10,10\n", 0o600),
		"--tickets", put("tickets.csv", "id,user,date,symptom\nT-1,secret-0,2026-03-01T10:20:00Z,refused in the morning\n", 0o600),
		"--pseudonym-key", put("key", strings.Repeat("k", 32), 0o600),
	}
	got := reported(t, args...)
	require.Contains(t, got.stdout, "Free: not enough evidence to raise to 15 a minute, burst 15\n", got.stderr)
	data, err := os.ReadFile(filepath.Join(out, "report.json"))
	require.NoError(t, err)
	var r record.Report
	require.NoError(t, json.Unmarshal(data, &r))
	require.Len(t, r.Plans, 2)
	require.Len(t, r.Inputs, 6, "the log, the map and its table, and three more")
	require.Equal(t, 400, r.Coverage.ClientsKnown)
	require.Contains(t, r.Coverage.Pseudonyms, "key")
	require.Equal(t, "the limiter refuses 4 of 14 requests in that hour", r.Support.Tickets[0].Shows)
	require.Regexp(t, `^u[0-9a-f]{16}$`, r.Support.Tickets[0].User)
	require.Equal(t, 1., *r.Fairness.Plans[1].RevenueShare)
	left, err := os.ReadDir(out)
	require.NoError(t, err)
	for _, entry := range left {
		text, err := os.ReadFile(filepath.Join(out, entry.Name()))
		require.NoError(t, err)
		require.NotContains(t, string(text), "secret-", entry.Name())
		require.NotContains(t, string(text), "198.18.", entry.Name())
	}
	for name, c := range map[string]struct {
		more  []string
		wrong string
	}{
		"two who say it": {[]string{"--allowance", "10/10"}, "--plan-map and --allowance exclude each other"},
		"no map":         {[]string{"--plan-map", filepath.Join(dir, "none")}, "none: no such file or directory"},
		"a wrong price":  {[]string{"--prices", put("p.csv", "plan,amount,currency,period\nfree,much,EUR,month\n", 0o600)}, "p.csv:2: amount"},
		"no Prometheus":  {[]string{"--prometheus", "ftp://x"}, "--prometheus: it is no such address"},
		"an open key":    {[]string{"--pseudonym-key", put("open", strings.Repeat("k", 32), 0o644)}, "others than its owner may use it"},
	} {
		t.Run(name, func(t *testing.T) {
			got := reported(t, append(args, c.more...)...)
			require.Equal(t, exitUsage, got.code)
			require.Contains(t, got.stderr, c.wrong)
		})
	}
}

// A Prometheus that does not answer is no bad input.
func TestReportWithoutItsPrometheus(t *testing.T) {
	got := reported(t, file(t, "access.log", busyWeek()), "--prometheus", "http://127.0.0.1:1", "--json")
	require.Equal(t, exitCannotTell, got.code)
	require.Contains(t, got.stderr, "the Prometheus server does not answer")
	require.Empty(t, got.stdout)
}
