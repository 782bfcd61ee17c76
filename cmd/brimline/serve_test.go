package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reference/invoice"
)

// transcript is an output that can be read while it is written.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *transcript) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(b)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// serving is a serve that runs.
type serving struct {
	stdout, stderr transcript
	stop           context.CancelFunc
	code           chan int
}

// runServe starts serve and waits until it has said all it has to say.
func runServe(t *testing.T, args ...string) *serving {
	t.Helper()
	return runServeWith(t, world{}, args...)
}

// runServeWith is runServe in a world that is the test's own in part.
func runServeWith(t *testing.T, w world, args ...string) *serving {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	s := &serving{stop: stop, code: make(chan int, 1)}
	w.getenv, w.stdin, w.stdout, w.stderr = noEnvironment, strings.NewReader(""), &s.stdout, &s.stderr
	go func() { s.code <- run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), w) }()
	t.Cleanup(stop)
	require.Eventually(t, func() bool { return strings.Contains(s.stdout.String(), "curl") || len(s.code) > 0 }, 10*time.Second, time.Millisecond)
	require.Empty(t, s.code, "it has ended: %s", s.stderr.String())
	return s
}

// ended stops serve, if it still runs, and returns its exit code.
func (s *serving) ended() int {
	s.stop()
	return <-s.code
}

var apiKey = regexp.MustCompile(`isk_[a-z]+_[0-9A-Za-z]{16,}`)

// TestServe does what the line it prints says.
func TestServe(t *testing.T) {
	log := filepath.Join(t.TempDir(), "api.jsonl")
	s := runServe(t, "--api-log", log, "--users", "2")
	out := s.stdout.String()
	line := regexp.MustCompile(`(?m)^  curl -i (\S+) -H '(\S+): ([^']+)' -d '([^']+)'$`).FindStringSubmatch(out)
	require.NotNil(t, line, out)
	req, err := http.NewRequest(http.MethodPost, line[1], strings.NewReader(line[4]))
	require.NoError(t, err)
	req.Header.Set(line[2], line[3])
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := client.Do(req)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "10", resp.Header.Get("RateLimit-Limit"))
	require.Contains(t, string(body), `"gross":"357.00"`)

	require.Equal(t, exitHolds, s.ended())
	require.Len(t, apiKey.FindAllString(s.stdout.String(), -1), 1, "one key is shown, once")
	require.Contains(t, out, "(10 users on 5 plans, clock: real)")
	require.Empty(t, s.stderr.String())
	entries, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, 1, bytes.Count(entries, []byte("\n")))
	require.Empty(t, apiKey.FindAll(entries, -1))
	_, err = net.Dial("tcp", req.URL.Host)
	require.Error(t, err, "nothing listens any more")
}

func TestServeControl(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("one for everybody to read, from before"), 0o644))
	s := runServe(t, "--control", "127.0.0.1:0", "--control-token-file", token, "--clock", "frozen")
	url := regexp.MustCompile(`(?m)^control on (\S+)$`).FindStringSubmatch(s.stdout.String())
	require.NotNil(t, url, s.stdout.String())
	info, err := os.Stat(token)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	secret, err := os.ReadFile(token)
	require.NoError(t, err)
	require.NotContains(t, s.stdout.String()+s.stderr.String(), strings.TrimSpace(string(secret)))
	req, err := http.NewRequest(http.MethodGet, url[1], nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(secret)))
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := client.Do(req)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, string(body), `"clock":"frozen"`)
	require.Equal(t, exitHolds, s.ended())
}

func TestServeControlAlone(t *testing.T) {
	t.Chdir(t.TempDir())
	s := runServe(t, "--control", "127.0.0.1:0")
	require.Contains(t, s.stdout.String(), "control token in "+defaultTokenFile+"\n")
	info, err := os.Stat(defaultTokenFile)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.Equal(t, exitHolds, s.ended())
}

func TestServeRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	plans := filepath.Join(t.TempDir(), "plans.yaml")
	require.NoError(t, os.WriteFile(plans, []byte("plans:\n  free: { requests-per-minute: 1.5 }\n"), 0o600))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a port in use":         {[]string{"--listen", taken.Addr().String()}, taken.Addr().String() + ": bind: address already in use"},
		"other machines":        {[]string{"--listen", "0.0.0.0:0"}, "--allow-remote"},
		"a name of no address":  {[]string{"--listen", "nowhere"}, `address "nowhere"`},
		"another clock":         {[]string{"--clock", "sundial"}, `clock "sundial": want real, shifted or frozen`},
		"fewer than no users":   {[]string{"--users", "-1"}, "--users\" flag: accepted: a whole number from 0 to 10000"},
		"very many users":       {[]string{"--users", "10001"}, "--users\" flag: accepted: a whole number from 0 to 10000"},
		"users in words":        {[]string{"--users", "many"}, "accepted: a whole number from 0 to 10000"},
		"part of a user":        {[]string{"--users", "1.5"}, `invalid argument "1.5" for "--users" flag: accepted: a whole number from 0 to 10000`},
		"a lost file":           {[]string{"--write-target", ""}, "--write-target is empty"},
		"a lost setting":        {[]string{"--database-url", ""}, "--database-url is empty"},
		"neither yes nor no":    {[]string{"--list-faults=perhaps"}, `--list-faults: got "perhaps"; accepted: true or false`},
		"plans that are broken": {[]string{"--plans", plans}, plans + ":2: plans.free.requests-per-minute"},
		"plans that are away":   {[]string{"--plans", plans + "x"}, plans + "x: no such file"},
		"a log in no folder":    {[]string{"--api-log", "/nonexistent/log"}, "/nonexistent/log: no such file"},
		"a token of nothing":    {[]string{"--control-token-file", plans}, "--control-token-file needs --control"},
		"an unknown flag":       {[]string{"--port", "80"}, "unknown flag: --port"},
		"an argument":           {[]string{"now"}, `serve takes no argument, got "now": a file with settings goes behind --config`},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			args := append([]string{"serve", "--listen", "127.0.0.1:0"}, c.args...)
			code := run(t.Context(), args, world{getenv: noEnvironment, stdin: strings.NewReader(""), stdout: &out, stderr: &errs})
			require.Equal(t, exitUsage, code)
			require.Contains(t, errs.String(), c.want)
			require.Equal(t, 1, strings.Count(errs.String(), "\n"), errs.String())
			require.Empty(t, out.String())
		})
	}
}

func TestSampleInvoiceIsValid(t *testing.T) {
	_, err := invoice.Parse([]byte(sampleInvoice))
	require.NoError(t, err)
}

// TestServeWritesATarget: the other verbs can work with what it leaves, at once.
func TestServeWritesATarget(t *testing.T) {
	for name, args := range map[string][]string{
		"with control":    {"--control", "127.0.0.1:0"},
		"without control": nil,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "local.yaml")
			s := runServe(t, append([]string{"--write-target", path, "--users", "2"}, args...)...)
			for suffix, mode := range map[string]os.FileMode{"yaml": 0o644, "keys": 0o600, "token": 0o600} {
				info, err := os.Stat(strings.TrimSuffix(path, "yaml") + suffix)
				if suffix == "token" && args == nil {
					require.ErrorIs(t, err, os.ErrNotExist)
					continue
				}
				require.NoError(t, err)
				require.Equal(t, mode, info.Mode().Perm(), suffix)
			}
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Empty(t, apiKey.FindAll(text, -1), "keys are never inside it")

			f, err := target.ReadFile(path)
			require.NoError(t, err)
			require.Len(t, f.Allowances, 5)
			require.Equal(t, target.Allowance{RequestsPerMinute: 60, Burst: 20, Concurrency: 5}, f.Allowances["starter"])
			opened, err := target.Open(t.Context(), f, target.Options{})
			require.NoError(t, err)
			require.NoError(t, opened.Close())
			require.Equal(t, exitHolds, s.ended())
			require.Empty(t, s.stderr.String())
		})
	}
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"serve", "--listen", "127.0.0.1:0", "--write-target", "/nonexistent/target.yaml"},
		world{getenv: noEnvironment, stdin: strings.NewReader(""), stdout: &out, stderr: &errs})
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs.String(), "/nonexistent/")
}
