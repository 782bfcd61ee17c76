package main

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/loadgen/traffic"
	"github.com/invoicespec/brimline/reference/clientip"
	"github.com/invoicespec/brimline/reference/server"
)

// ahead runs the verb on a scenario and a target file where nobody listens.
func ahead(t *testing.T, scenario string, change func(*target.File), flags ...string) (code int, stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	f := target.File{
		BaseURLs:   []string{"http://127.0.0.1:1"},
		Credential: target.Credential{Header: "Authorization", Template: "Bearer {key}"},
		Operations: target.Operations{Valid: target.Operation{Method: "POST", Path: "/v1/invoice/calculate"}},
		Allowances: map[string]target.Allowance{
			"free": {RequestsPerMinute: 10, Burst: 10, Concurrency: 2}, "pro": {RequestsPerMinute: 300, Burst: 100, Concurrency: 20},
		},
		Can: target.Can{Control: &target.ControlAddress{URL: "http://127.0.0.1:1"}},
	}
	if change != nil {
		change(&f)
	}
	require.NoError(t, target.Write(filepath.Join(dir, "target.yaml"), f, nil, target.NewSecret("token")))
	path := filepath.Join(dir, "load.yaml")
	require.NoError(t, os.WriteFile(path, []byte(scenario), 0o600))
	var out, errs bytes.Buffer
	args := append([]string{"load", path, "--target", filepath.Join(dir, "target.yaml")}, flags...)
	code = run(t.Context(), args, world{getenv: noEnvironment, stdin: strings.NewReader(""), stdout: &out, stderr: &errs})
	return code, strings.ReplaceAll(out.String(), dir+"/", ""), strings.ReplaceAll(errs.String(), dir+"/", "")
}

const planned = `duration: 1m
seed: 7
populations:
  - { plan: free, users: 20, arrival: constant, rate: 6x, on-429: ignore }
  - { plan: free, users: 5, arrival: constant, rate: 6x, on-429: obey-retry-after }
  - { plan: pro, users: 2, arrival: { bursts: 30, every: 10s }, mix: { valid: 9, unauthenticated: 1 }, on-429: ignore }
`

func TestDryRun(t *testing.T) {
	code, out, errs := ahead(t, planned, nil, "--dry-run")
	require.Equal(t, exitHolds, code, errs)
	require.Empty(t, errs)
	require.Equal(t, `load.yaml, seed 7, 1m0s: 27 users, 1,860 requests; nothing was sent

  plan  population  users  planned  mean/s  peak/s  charged, at most  held off  admitted  429 rate  429 conc.
  free           1     20    1,200      20      20               420         0       380   68.33 %     0.00 %
  free           2      5      300       5       5               105       160        95   32.14 %     0.00 %
   pro           3      2      360       6      30               360         0       240    0.00 %    25.23 %
  free         all     25    1,500      25      25               525       160       475   64.55 %     0.00 %
   pro         all      2      360       6      30               360         0       240    0.00 %    25.23 %
   all         all     27    1,860      31      55               885       160       715   52.08 %     4.88 %

  peak/s is of planned requests in one second, wherever it begins
  429s are those of an exact limiter, as shares of the requests that ask it: every
  bucket is full at the start, nothing is late, and every answer takes 50ms
  39 requests have no good key: a 401, or a 429 of the address's pool, which is not foreseen
`, out)

	_, quick, _ := ahead(t, planned, nil, "--dry-run", "--assume-latency", "0s")
	require.Contains(t, quick, "every answer takes 0s")
	_, again, _ := ahead(t, planned, nil, "--dry-run")
	require.Equal(t, out, again)
}

func TestDryRunIsRefused(t *testing.T) {
	bounded := func(n string) string { return "max-rate: " + n + "\n" + planned }
	frugal := func(f *target.File) { f.Limits.MaxOperations = 100 }
	remote := func(f *target.File) { f.BaseURLs = []string{"https://invoices.example"} }
	for name, c := range map[string]struct {
		scenario string
		change   func(*target.File)
		flags    []string
		want     string
		printed  bool // what it comes to is said all the same
	}{
		"more than its bound":       {bounded("54"), nil, []string{"--dry-run"}, "load.yaml:1: max-rate: 54 is less than the 55 requests that are planned for the busiest second; accepted: a higher rate, or less traffic", true},
		"more than its bound, sent": {bounded("54"), nil, []string{"--out", "run"}, "max-rate: 54 is less than the 55 requests", false},
		"more than may be charged":  {planned, frugal, []string{"--dry-run"}, "up to 885 operations may be charged, limits.max-operations of target.yaml is 100", true},
		"beyond without a bound":    {planned, remote, []string{"--allow-host", "invoices.example", "--out", "run"}, "load.yaml:1: max-rate: missing, and invoices.example is not this machine; accepted: requests per second that it may get at most, 1 to 1000000", false},
		"beyond, not named":         {bounded("55"), remote, []string{"--out", "run"}, "invoices.example is not this machine; say --allow-host", false},
		"no invalid operation":      {strings.Replace(planned, "unauth", "invalid: 1, unauth", 1), nil, []string{"--dry-run"}, "load.yaml:6: populations[2].mix.invalid: the target has no such operation; accepted: a target file with operations.invalid, or no weight", false},
		"no slow operation":         {strings.Replace(planned, "unauth", "slow: 1, unauth", 1), nil, []string{"--dry-run"}, "populations[2].mix.slow: the target has no such operation", false},
		"no addresses":              {strings.Replace(planned, "users: 20", "users: 20, addresses: 4", 1), nil, []string{"--dry-run"}, "load.yaml:4: populations[0].addresses: the target says of no addresses that they can be sent from; accepted: a target file with can.addresses or can.proxy, or no such key", false},
		"a folder to leave it in":   {planned, nil, []string{"--dry-run", "--out", "run"}, "--dry-run leaves nothing in --out: give one of them", false},
		"an assumption for nothing": {planned, nil, []string{"--out", "run", "--assume-latency", "1s"}, "--assume-latency is for --dry-run", false},
		"an answer before it":       {planned, nil, []string{"--dry-run", "--assume-latency", "-1s"}, "--assume-latency -1s is out of range; accepted: 0s to 1h", false},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := ahead(t, c.scenario, c.change, c.flags...)
			require.Equal(t, exitUsage, code, errs)
			require.Contains(t, errs, c.want)
			require.Equal(t, 1, strings.Count(errs, "\n"), "one line")
			require.Equal(t, c.printed, out != "")
		})
	}
}

// TestExplainNamesEveryKey: whatever is read is explained, and the reverse is
// held by the schema's own test.
func TestExplainNamesEveryKey(t *testing.T) {
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"load", "--explain"}, world{getenv: noEnvironment, stdin: strings.NewReader(""), stdout: &out, stderr: &errs})
	require.Equal(t, exitHolds, code, errs.String())
	keys := keysOfType("", reflect.TypeFor[traffic.Scenario]())
	require.Greater(t, len(keys), 30)
	for _, key := range keys {
		require.Contains(t, "\n"+out.String(), "\n"+key+"  (", key)
	}
	require.Contains(t, out.String(), "accepted: ignore, obey-retry-after, obey-with-jitter\n")
	require.NotContains(t, out.String(), "map[")

	errs.Reset()
	code = run(t.Context(), []string{"load", "a.yaml", "--explain"}, world{getenv: noEnvironment, stdin: strings.NewReader(""), stdout: &out, stderr: &errs})
	require.Equal(t, exitUsage, code)
	require.Equal(t, "brimline: --explain takes no scenario file\n", errs.String())
}

// TestLoadOfEverything sends what a mix, several keys and client addresses come to
// against the reference, and finds nothing wrong with it.
func TestLoadOfEverything(t *testing.T) {
	for name, can := range map[string]func(*target.Can){
		"addresses of this machine": func(c *target.Can) { c.Addresses, c.Proxy = []string{"127.0.64.0/24"}, nil },
		"named by a proxy": func(c *target.Can) {
			c.Addresses, c.Proxy = nil, &target.Proxy{From: "127.0.9.1", Trusted: []string{"127.0.9.1"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			site := openLoadSite(t, server.Config{Control: "127.0.0.1:0", Addresses: clientip.Config{Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.9.1/32")}, Logged: clientip.LogFull}}, func(f *target.File) { can(&f.Can) })
			code, out, errs := site.load(t.Context(), t, `duration: 2s
seed: 7
max-rate: 500
populations:
  - plan: free
    users: 6
    keys: 2
    addresses: 3
    arrival: { ramp: { from: 60, to: 600 }, process: poisson }
    spread: { lognormal: 0.5 }
    mix: { valid: 6, invalid: 2, unauthenticated: 2 }
    on-429: { backoff: { first: 100ms, max: 1s } }
`)
			requireMeasured(t, code, errs)
			require.NotContains(t, out, "!!", "the reference is right")
			r := site.record(t)
			p := r.Plans[0]
			require.EqualValues(t, 500, r.Scenario.MaxRate)
			require.Equal(t, "valid 6, invalid 2, unauthenticated 2", r.Scenario.Populations[0].Mix)
			require.Equal(t, "lognormal 0.5", r.Scenario.Populations[0].Spread)
			require.Equal(t, "backoff from 100ms to 1s", r.Scenario.Populations[0].On429)
			require.Positive(t, p.Admitted)
			require.Positive(t, p.HeldOff)
			require.Empty(t, p.OtherStatuses)
			require.Empty(t, p.TransportErrors)
			require.Zero(t, p.RateJudged.Undue)
			// Three addresses try 10 times at once each, and half a time a second.
			require.GreaterOrEqual(t, p.Unauthenticated, int64(3))
			require.LessOrEqual(t, p.Unauthenticated, int64(3*(10+2)))
			if p.Unauthenticated+p.RejectedAnonymous > 36 {
				require.Positive(t, p.RejectedAnonymous)
			}
		})
	}
}
