package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "github.com/invoicespec/brimline/conformance/contract/control"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/telemetry"
	"github.com/invoicespec/brimline/reference/wiring"
	"github.com/invoicespec/brimline/reports/record"
)

// recruiter remembers every key that is made while a suite runs.
type recruiter struct {
	wiring.Operator
	mu   sync.Mutex
	keys []string
}

func (r *recruiter) remember(keys ...account.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range keys {
		r.keys = append(r.keys, k.Reveal())
	}
}

func (r *recruiter) CreateUser(ctx context.Context, plan string, n int) (string, []account.Key, error) {
	id, keys, err := r.Operator.CreateUser(ctx, plan, n)
	r.remember(keys...)
	return id, keys, err
}

func (r *recruiter) AddKey(ctx context.Context, user string) (account.Key, error) {
	k, err := r.Operator.AddKey(ctx, user)
	if err == nil {
		r.remember(k)
	}
	return k, err
}

// requireNoneIn asks that no text shows a secret, nor one that is all but its
// last letter: the suite also sends keys that are nearly good.
func requireNoneIn(t *testing.T, texts map[string]string, secrets []string) {
	t.Helper()
	for what, text := range texts {
		require.NotEmpty(t, text, "%s: nothing to look into", what)
		for _, s := range secrets {
			require.False(t, strings.Contains(text, s[:len(s)-1]), "%s shows a secret", what)
		}
	}
}

// requireKept asks that no clause was found broken.
func requireKept(t *testing.T, c record.Conformance) {
	t.Helper()
	for _, cl := range c.Clauses {
		require.NotEqual(t, record.Fail, cl.Verdict, "%s: %+v", cl.ID, cl.Scenarios)
	}
}

func textOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// reportsOf is every report there is of a run, by its name.
func reportsOf(t *testing.T, c record.Conformance) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for name, f := range map[string]checkFlags{
		"the report": {out: t.TempDir()}, "the quiet report": {quiet: true}, "the verbose report": {verbose: true}, "the report as JSON": {asJSON: true},
	} {
		var out bytes.Buffer
		var judged *verdict
		if err := f.report(c, world{stdout: &out}); errors.As(err, &judged) {
			require.NoError(t, judged.err)
		} else {
			require.NoError(t, err)
		}
		texts[name] = out.String()
		if f.out == "" {
			continue
		}
		files, err := os.ReadDir(f.out)
		require.NoError(t, err)
		require.Len(t, files, len(resultFiles()))
		requireSchema(t, filepath.Join(f.out, "conformance.json"))
		for _, file := range files {
			texts[file.Name()] = textOf(t, filepath.Join(f.out, file.Name()))
		}
	}
	return texts
}

func pageOf(t *testing.T, url string) string {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := client.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(page)
}

// TestNoSecretIsLeftBehind runs the whole suite against the reference and looks
// for every key that was used, and for the control token, in all that is left of
// it: what the server logged, the API log, the page of metrics, the report.
func TestNoSecretIsLeftBehind(t *testing.T) {
	t.Parallel()
	var logged transcript
	dir := t.TempDir()
	made := &recruiter{}
	cfg := server.Config{
		Listen: "127.0.0.1:0", Control: "127.0.0.1:0", Metrics: "127.0.0.1:0", Clock: wire.ClockFrozen, Users: 2,
		APILog: filepath.Join(dir, "api.jsonl"), Logger: slog.New(slog.NewJSONHandler(&logged, nil)),
		Alter: func(p *wiring.Parts) {
			p.Bounds.Engine = embeddedEngineTime
			made.Operator, p.Operator = p.Operator, made
		},
	}
	s, err := server.Open(context.WithoutCancel(t.Context()), cfg)
	require.NoError(t, err)
	file := targetFile(s, cfg)
	file.Can.Metrics = &target.MetricsAddress{URL: s.MetricsURL() + telemetry.Path}
	tgt, err := target.Open(t.Context(), file, target.Options{ControlToken: target.NewSecret(s.ControlToken()), Keys: keysOf(s)})
	require.NoError(t, err)
	c, err := conformance.Run(t.Context(), tgt, conformance.Options{})
	require.NoError(t, err)
	requireKept(t, c)
	texts := reportsOf(t, c)
	metrics := pageOf(t, s.MetricsURL()+telemetry.Path)
	require.NoError(t, tgt.Close())
	require.NoError(t, s.Close(context.WithoutCancel(t.Context())))

	secrets := append(made.keys, s.ControlToken())
	for _, k := range keysOf(s) {
		secrets = append(secrets, k.Secret.Reveal())
	}
	require.Greater(t, len(made.keys), 100, "the suite makes users of its own")
	requireNoneIn(t, map[string]string{
		"the server's log": logged.String(), "the API log": textOf(t, filepath.Join(dir, "api.jsonl")), "the page of metrics": metrics,
	}, secrets)
	requireNoneIn(t, texts, secrets)
	requireRequestIDs(t, logged.String())
}

// TestNoSecretIsLeftBehindByAFailingRun judges a server that says back what it
// was sent: every answer, and so every finding, holds the caller's key.
func TestNoSecretIsLeftBehindByAFailingRun(t *testing.T) {
	t.Parallel()
	made := &recruiter{}
	cfg := server.Config{
		Listen: "127.0.0.1:0", Control: "127.0.0.1:0", Clock: wire.ClockFrozen, Users: 1,
		Alter: func(p *wiring.Parts) { made.Operator, p.Operator = p.Operator, made },
	}
	s, err := server.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) })
	file := targetFile(s, cfg)
	parrot := httptest.NewServer(parrotOf(t, file.BaseURLs[0]))
	t.Cleanup(parrot.Close)
	file.BaseURLs = []string{parrot.URL}
	tgt, err := target.Open(t.Context(), file, target.Options{ControlToken: target.NewSecret(s.ControlToken()), Keys: keysOf(s)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tgt.Close()) })
	c, err := conformance.Run(t.Context(), tgt, conformance.Options{Clauses: []string{"AUTH-1", "HDR-5", "HDR-8", "ERR-1", "POOL-1", "RATE-4"}})
	require.NoError(t, err)
	require.Positive(t, c.Counts.Fail)
	texts := reportsOf(t, c)
	for _, name := range []string{"the report", "the quiet report", "index.html", "junit.xml", "summary.md", "conformance.json"} {
		require.True(t, strings.Contains(texts[name], "curl "), name)
	}
	require.True(t, strings.Contains(texts["conformance.json"], `YOU_SAID\",\"message\":\"Bearer isk_free_…`), "what was said back is there, without the key")

	require.NotEmpty(t, made.keys)
	requireNoneIn(t, texts, append(made.keys, s.ControlToken()))
	c = c.WithKnown([]record.KnownFailing{{Clause: "HDR-5"}}).Against(c)
	requireNoneIn(t, reportsOf(t, c), append(made.keys, s.ControlToken()))
}

// parrotOf stands in front of a server, says the credential back in every
// error, and adds a second to every Retry-After.
func parrotOf(t *testing.T, base string) http.Handler {
	t.Helper()
	to, err := url.Parse(base)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ModifyResponse = func(resp *http.Response) error {
		said := resp.Request.Header.Get("Authorization")
		if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
			resp.Header.Set("Retry-After", strconv.Itoa(n+1))
		}
		if resp.StatusCode < 400 {
			return nil
		}
		body := fmt.Sprintf(`{"errorCode":"YOU_SAID","message":%q}`, said)
		resp.Body.Close()
		resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	}
	return proxy
}

// requireRequestIDs asks that what is logged about a request in scope names it.
func requireRequestIDs(t *testing.T, logged string) {
	t.Helper()
	named := 0
	for line := range strings.Lines(logged) {
		var x struct {
			Msg string
			ID  string `json:"request_id"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &x), line)
		if strings.HasPrefix(x.Msg, "http: ") || strings.Contains(x.Msg, "billing page") {
			continue // the connection's, or outside the scope
		}
		require.Regexp(t, `^req_[A-Z0-9]+$`, x.ID, line)
		named++
	}
	require.Positive(t, named, "failures of the engine and of configuration were logged")
}

// TestNoSecretIsLeftBehindByAProcess is the same for a process that is judged
// over plain HTTP, by the files that it leaves.
func TestNoSecretIsLeftBehindByAProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plans := filepath.Join(dir, "plans.yaml")
	require.NoError(t, os.WriteFile(plans, []byte(`plans:
  small: { requests-per-minute: 120, burst: 6, concurrency: 2, operations: 100000 }
  large: { requests-per-minute: 300, burst: 12, concurrency: 3, operations: 100000 }
`), 0o600))
	site, apiLog := filepath.Join(dir, "t.yaml"), filepath.Join(dir, "api.jsonl")
	var stdout, stderr transcript
	server := exec.Command(asProgram(t), "serve", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--users", "12",
		"--plans", plans, "--api-log", apiLog, "--write-target", site)
	server.Stdout, server.Stderr = &stdout, &stderr
	require.NoError(t, server.Start())
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	t.Cleanup(func() { server.Process.Kill() })
	require.Eventually(t, func() bool { return strings.Contains(stdout.String(), "curl") || len(ended) > 0 }, 30*time.Second, 5*time.Millisecond)
	require.Empty(t, ended, stderr.String())

	file, err := target.ReadFile(site)
	require.NoError(t, err)
	file.Can.Process = nil // the program of this process is a test
	file.Can.Addresses = []string{"127.64.0.0/10"}
	tgt, err := target.Open(t.Context(), file, target.Options{})
	require.NoError(t, err)
	c, err := conformance.Run(t.Context(), tgt, conformance.Options{})
	require.NoError(t, err)
	require.NoError(t, tgt.Close())
	requireKept(t, c)
	require.Greater(t, c.Counts.Pass, 20)
	texts := reportsOf(t, c)
	metrics := pageOf(t, file.Can.Metrics.URL)
	require.NoError(t, server.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-ended, "a stop that was asked for is no failure")

	keys, err := target.ReadKeys(filepath.Join(dir, "t.keys"))
	require.NoError(t, err)
	var secrets []string
	for _, k := range keys {
		secrets = append(secrets, k.Secret.Reveal())
	}
	// Nothing went wrong, so the server may have logged nothing at all.
	requireNoneIn(t, map[string]string{
		"the server's log": stderr.String() + ".", "the API log": textOf(t, apiLog), "the page of metrics": metrics, "the target file": textOf(t, site),
	}, secrets)
	requireNoneIn(t, texts, secrets)
}
