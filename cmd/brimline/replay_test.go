package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
)

// replayed is what a command line left behind.
type replayed struct {
	code           int
	stdout, stderr string
}

func runReplayed(t *testing.T, stdin string, args ...string) replayed {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), append([]string{"replay"}, args...), world{
		getenv: noEnvironment, stdin: strings.NewReader(stdin), stdout: &out, stderr: &errs,
	})
	return replayed{code, out.String(), errs.String()}
}

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// access is a log of n requests of one client in one second.
func access(n int) string {
	return strings.Repeat(`192.0.2.1 - - [04/Oct/2026:04:00:00 +0000] "GET /v1/invoice/7 HTTP/1.1" 200 51`+"\n", n)
}

// apiEntry is a line of our own log: a decision at 10 per minute and burst 2.
func apiEntry(order int, outcome string, level int64) string {
	status, word := 200, "admitted"
	if outcome != "admitted" {
		status, word = 429, "rejected"
	}
	return fmt.Sprintf(`{"schema":1,"request_id":"req_%d","received":"2026-03-02T08:00:00Z","duration_us":5,"method":"POST","path":"/v1/invoice/calculate","status":%d,"outcome":%q,"user":"u1","decision":{"order":%d,"instant_us":7,"outcome":%q,"requests_per_minute":10,"burst":2,"concurrency":9,"in_flight":0,"level":%d},"charged":0}`+"\n",
		order, status, word, order, outcome, level)
}

const token = 60_000_000

func TestReplayJSON(t *testing.T) {
	got := runReplayed(t, "", file(t, "access.log", access(5)), "--rate", "10", "--burst", "3", "--json")
	require.Equal(t, exitHolds, got.code)
	require.Empty(t, got.stderr)
	var one map[string]any
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &one), "one object and nothing else")
	for key, want := range map[string]float64{
		"entries": 5, "attempts": 5, "rejected_rate": 2, "rejected_concurrency": 0, "rejected": 2, "users": 1, "users_affected": 1,
	} {
		require.EqualValues(t, want, one[key], key)
	}
	require.Equal(t, record.ReplaySchema, one["schema"])

	got = runReplayed(t, access(5), "-", "--rate", "10,20", "--rate", "30", "--burst", "3, 5", "--json")
	require.Equal(t, exitHolds, got.code)
	var grid record.Replay
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &grid))
	require.Len(t, grid.Cells, 6)
	require.Equal(t, "standard input", grid.Log.Files[0].Name)
}

func TestReplayText(t *testing.T) {
	got := runReplayed(t, "", file(t, "access.log", access(5)), "--rate", "10", "--burst", "3", "--scope", "/v1/invoice")
	require.Equal(t, exitHolds, got.code)
	for _, want := range []string{"Common Log Format", "5 entries, none dropped", "every entry in scope is an attempt", "below /v1/invoice", "burst that users need"} {
		require.Contains(t, got.stdout, want)
	}
	require.NotContains(t, got.stdout, "192.0.2.1")
}

func TestReplayClosedLoop(t *testing.T) {
	log := access(4) + strings.Replace(access(1), "04:00:00", "05:00:00", 1)
	got := runReplayed(t, log, "-", "--rate", "10", "--burst", "3", "--closed-loop")
	require.Equal(t, exitHolds, got.code)
	require.Contains(t, got.stdout, "clients that obey Retry-After")

	got = runReplayed(t, log, "-", "--rate", "10", "--burst", "3", "--closed-loop", "--json")
	var r record.Replay
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &r))
	require.Equal(t, []record.ReportClosed{{
		Rate: 10, Burst: 3, Rejected: 1, Sendings: 6, UsersAffected: 1, Delay: record.ReportQuart{P95: 6, P99: 6, Max: 6},
	}}, r.ClosedLoop)
}

func TestReplayPlanMap(t *testing.T) {
	dir := t.TempDir()
	plans := filepath.Join(dir, "plans.yaml")
	require.NoError(t, os.WriteFile(plans, []byte(`plans:
  free: { requests-per-minute: 10, burst: 3 }
  pro: { requests-per-minute: 300, burst: 100 }
users:
  - { user: u-1, plan: free, clients: [192.0.2.1, 192.0.2.2] }
  - { user: u-2, plan: pro, clients: [192.0.2.3] }
`), 0o600))
	two, three, four := strings.ReplaceAll(access(2), "192.0.2.1", "192.0.2.2"), strings.ReplaceAll(access(5), "192.0.2.1", "192.0.2.3"), strings.ReplaceAll(access(1), "192.0.2.1", "192.0.2.4")
	got := runReplayed(t, access(2)+two+three+four, "-", "--plan-map", plans, "--json")
	require.Equal(t, exitHolds, got.code, got.stderr)
	var r record.Replay
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &r))
	require.EqualValues(t, 1, r.LeftOut)
	require.Len(t, r.Plans, 2)
	require.EqualValues(t, []int64{4, 1}, []int64{r.Plans[0].Attempts, r.Plans[0].Cells[0].Rejected}, "two clients of one user share a bucket")
	require.EqualValues(t, []int64{5, 0}, []int64{r.Plans[1].Attempts, r.Plans[1].Cells[0].Rejected})

	got = runReplayed(t, access(2)+two+three, "-", "--plan-map", plans, "--rate", "1,2", "--burst", "1", "--closed-loop")
	require.Equal(t, exitHolds, got.code, got.stderr)
	require.Contains(t, got.stdout, "free, today 10 per minute, burst 3: 4 attempts by 1 user")
	for _, secret := range []string{"192.0.2", "u-1"} {
		require.NotContains(t, got.stdout, secret)
	}

	got = runReplayed(t, four, "-", "--plan-map", plans)
	require.Equal(t, exitCannotTell, got.code)
	require.Equal(t, "brimline: the plan map knows the plan of none of the log's clients\n", got.stderr)
}

func TestReplayOfOurOwnLog(t *testing.T) {
	agreeing := apiEntry(1, "admitted", token) + apiEntry(3, "rate", 0) + apiEntry(2, "admitted", 0)
	for _, c := range []struct {
		name, log string
		code      int
		stderr    string
		stdout    string
	}{
		{"agrees", agreeing, exitHolds, "", "3 of 3 decisions come out as recorded"},
		{"disagrees", strings.Replace(agreeing, `"outcome":"rate"`, `"outcome":"admitted"`, 1), exitFails,
			"brimline: 1 of 3 recorded decisions do not come out as recorded\n", "the first is request req_3, decision 3"},
		{"incomplete", apiEntry(1, "admitted", token) + apiEntry(3, "rate", 0), exitCannotTell,
			"brimline: 1 of 2 recorded decisions cannot be checked: 1 are missing from the log\n", "1 decisions are not in the log"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := runReplayed(t, c.log, "-")
			require.Equal(t, c.code, got.code)
			require.Equal(t, c.stderr, got.stderr)
			require.Contains(t, got.stdout, c.stdout)

			got = runReplayed(t, c.log, "-", "--rate", "10", "--burst", "2", "--concurrency", "1", "--json")
			require.Equal(t, c.code, got.code, "the check is made whatever is asked")
			var r record.Replay
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &r))
			require.NotNil(t, r.Agreement)
		})
	}
}

func TestReplayThatCannotTell(t *testing.T) {
	got := runReplayed(t, access(5), "-", "--rate", "10", "--burst", "3", "--concurrency", "2")
	require.Equal(t, exitCannotTell, got.code)
	require.Equal(t, "brimline: the log has no durations, so nothing can be said on concurrency\n", got.stderr)
	require.Contains(t, got.stdout, "5 entries")
	require.NotContains(t, got.stdout, "users OK")

	got = runReplayed(t, access(5), "-", "--rate", "10", "--burst", "3", "--concurrency", "2", "--json")
	require.Equal(t, exitCannotTell, got.code)
	var r map[string]any
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &r))
	require.NotContains(t, r, "rejected")
	require.Contains(t, r, "refused")
}

func TestReplayBadInput(t *testing.T) {
	log := file(t, "access.log", access(1))
	pair := []string{"--rate", "10", "--burst", "10"}
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"no file", pair, "replay needs a log: a file, or - for standard input"},
		{"missing file", append([]string{"nowhere.log"}, pair...), "nowhere.log: no such file or directory"},
		{"folder", append([]string{t.TempDir()}, pair...), "a folder, not a file"},
		{"no entries", append([]string{file(t, "x.log", "hello\n")}, pair...), "no entries in 1 lines"},
		{"empty file", append([]string{file(t, "x.log", "")}, pair...), "no entries"},
		{"nothing asked", []string{log}, "an access log records no allowances: give --rate and --burst, or --plan-map"},
		{"no burst", []string{log, "--rate", "10"}, "--rate and --burst are needed together"},
		{"fraction", []string{log, "--rate", "1.5", "--burst", "1"}, `"--rate" flag: requests-per-minute "1.5" is no whole number from 1 to 1000000`},
		{"null", []string{log, "--rate", "null", "--burst", "1"}, "is no whole number from 1 to 1000000"},
		{"zero", []string{log, "--rate", "10", "--burst", "0"}, `"--burst" flag: burst "0" is no whole number from 1 to 1000000`},
		{"negative", []string{log, "--rate", "-1", "--burst", "1"}, "is no whole number from 1 to 1000000"},
		{"too large", []string{log, "--rate", "1000001", "--burst", "1"}, "is no whole number from 1 to 1000000"},
		{"concurrency too large", []string{log, "--concurrency", "100001"}, "is no whole number from 1 to 100000"},
		{"empty", []string{log, "--rate", "", "--burst", "1"}, "is no whole number from 1 to 1000000"},
		{"hole in a list", []string{log, "--rate", "10,,20", "--burst", "1"}, "is no whole number from 1 to 1000000"},
		{"twice the same", []string{log, "--rate", "10,10", "--burst", "1"}, "10 is given twice"},
		{"too many", []string{log, "--rate", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "--burst", "1"}, "more than 16 values"},
		{"scope", append([]string{log, "--scope", "v1"}, pair...), "a path begins with /"},
		{"nothing in scope", append([]string{log, "--scope", "/v1/invoicex"}, pair...), "none of the 1 entries is an attempt below /v1/invoicex"},
		{"proxies", append([]string{log, "--trusted-proxies", "10.0.0.0"}, pair...), `"10.0.0.0" is no address prefix such as 10.0.0.0/8`},
		{"file twice", append([]string{log, log}, pair...), "given twice"},
		{"file and its gzip", append([]string{log, file(t, "access.log.gz", gzipped(t, access(1)))}, pair...), ": holds the same lines as " + log + ", which would count twice"},
		{"lost file", append([]string{log, ""}, pair...), "argument 2 of replay is empty"},
		{"no plan map", []string{log, "--plan-map", "nowhere.yaml"}, "nowhere.yaml"},
		{"lost plan map", []string{log, "--plan-map", ""}, "--plan-map"},
		{"lost scope", append([]string{log, "--scope", ""}, pair...), "a path begins with /"},
		{"unknown flag", append([]string{log, "--bursts", "1"}, pair...), "unknown flag: --bursts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := runReplayed(t, "", c.args...)
			require.Equal(t, exitUsage, got.code)
			require.Empty(t, got.stdout)
			require.Contains(t, got.stderr, c.want)
			require.Equal(t, 1, strings.Count(got.stderr, "\n"), "one line")
		})
	}
}

// A replay that is interrupted says so, even while its input waits.
func TestReplayIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	defer out.Close()
	go func() {
		_, _ = io.WriteString(out, "192.0.2.7 - - [04/Oct/2022:04:00:00 +0000] \"GET / HTTP/1.1\" 200 51\n")
		cancel()
	}()
	var said, errs bytes.Buffer
	require.Equal(t, exitCannotTell, run(ctx, []string{"replay", "-", "--rate", "1", "--burst", "1"}, world{getenv: noEnvironment, stdin: in, stdout: &said, stderr: &errs}))
	require.Equal(t, "brimline: interrupted: nothing was told\n", errs.String())
	require.Empty(t, said.String())
}

// The demonstration's log gives visibly different answers at different plans.
func TestReplayOfTheGeneratedLog(t *testing.T) {
	for seed := range uint64(3) {
		var text bytes.Buffer
		require.NoError(t, accesslog.Generate(&text, seed))
		var rejected []int64
		for _, allowance := range [][2]string{{"10", "10"}, {"60", "20"}, {"300", "100"}} {
			got := runReplayed(t, text.String(), "-", "--rate", allowance[0], "--burst", allowance[1], "--json")
			require.Equal(t, exitHolds, got.code)
			var r record.Replay
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &r))
			rejected = append(rejected, r.Rejected)
		}
		require.Greater(t, rejected[0], 2*rejected[1], "seed %d", seed)
		require.Greater(t, rejected[1], int64(100), "seed %d", seed)
		require.Zero(t, rejected[2], "seed %d", seed)
	}
}

func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := io.WriteString(z, text)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return b.String()
}
