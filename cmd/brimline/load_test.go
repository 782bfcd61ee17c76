package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reference/fault"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/invoice"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/wiring"
	"github.com/invoicespec/brimline/reports/record"
)

// loadSite is a reference server with its target file, and a folder for the rest.
type loadSite struct {
	dir, target string
	server      *server.Server
}

func openLoadSite(t *testing.T, cfg server.Config, change func(*target.File)) loadSite {
	t.Helper()
	cfg.Listen = "127.0.0.1:0"
	s, err := server.Open(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) })
	site := loadSite{dir: t.TempDir(), server: s}
	site.target = filepath.Join(site.dir, "target.yaml")
	var keys []target.Key
	for _, u := range s.Users() {
		keys = append(keys, target.Key{User: u.ID, Plan: u.Plan, Secret: target.NewSecret(u.Keys[0].Reveal())})
	}
	f := targetFile(s, cfg)
	if change != nil {
		change(&f)
	}
	require.NoError(t, target.Write(site.target, f, keys, target.NewSecret(s.ControlToken())))
	return site
}

// load runs the verb on a scenario; DIR is "run" below the site's folder.
func (s loadSite) load(ctx context.Context, t *testing.T, scenario string, flags ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = s.loadTo(ctx, t, scenario, &out, &errs, flags...)
	return code, out.String(), errs.String()
}

// loadTo is [loadSite.load] with places for what is written.
func (s loadSite) loadTo(ctx context.Context, t *testing.T, scenario string, out, errs io.Writer, flags ...string) int {
	t.Helper()
	path := filepath.Join(s.dir, "load.yaml")
	require.NoError(t, os.WriteFile(path, []byte(scenario), 0o600))
	args := append([]string{"load", path, "--target", s.target, "--out", filepath.Join(s.dir, "run")}, flags...)
	return run(ctx, args, world{getenv: noEnvironment, stdin: strings.NewReader(""), stdout: out, stderr: errs})
}

func (s loadSite) record(t *testing.T) record.Run {
	t.Helper()
	r, err := record.ReadRun(filepath.Join(s.dir, "run"))
	require.NoError(t, err)
	return r
}

// requireMeasured asks for a run that ended as planned. On a busy machine it may
// say that the machine was too slow to judge anybody by: all else must hold then
// as well.
func requireMeasured(t *testing.T, code int, errs string) {
	t.Helper()
	if code == exitCannotTell {
		require.Contains(t, errs, "this machine was too slow")
		return
	}
	require.Equal(t, exitHolds, code, errs)
}

const shortLoad = `duration: 2s
seed: 7
populations:
  - { plan: free, users: 5, arrival: poisson, rate: 30x, on-429: obey-retry-after }
  - { plan: starter, users: 3, arrival: { bursts: 15, every: 900ms }, on-429: ignore }
`

func TestLoad(t *testing.T) {
	site := openLoadSite(t, server.Config{Control: "127.0.0.1:0"}, nil)
	code, out, errs := site.load(t.Context(), t, shortLoad)
	requireMeasured(t, code, errs)
	require.Regexp(t, `(?m)^2\.0 s against 127\.0\.0\.1:\d+, seed 7: \d+ sent of \d+ due`, out)
	require.Regexp(t, `(?m)^  free +5 +\d+ +\d+ +\d+ +\d+ +\d+ +0 +[0–] +\d`, out)
	require.Contains(t, out, "what limits this\n  - 429s are judged by")
	require.Contains(t, out, "run: "+filepath.Join(site.dir, "run", "run.json"))
	require.NotRegexp(t, `!! \S+: (refused|let) `, out, "the reference is right")

	r := site.record(t)
	require.False(t, r.Interrupted)
	require.EqualValues(t, 2000, r.PlannedMS)
	require.Equal(t, []string{"free", "starter"}, []string{r.Plans[0].Plan, r.Plans[1].Plan})
	require.Positive(t, r.Plans[0].RejectedRate)
	require.Positive(t, r.Plans[0].HeldOff)
	require.Zero(t, r.Plans[0].Unsent)
	require.Len(t, r.Users, 8)
	require.Equal(t, "starter-003", r.Users[7].User)
	require.Equal(t, record.RunPopulation{Plan: "free", Users: 5, Arrival: "poisson", Rate: "30x", PerMinute: 300, On429: "obey-retry-after"}, r.Scenario.Populations[0])
	require.Equal(t, "bursts of 15 every 900ms", r.Scenario.Populations[1].Arrival)
	require.Equal(t, record.RunAllowance{RequestsPerMinute: 10, Burst: 10, Concurrency: 2}, r.Target.Allowances["free"])
	require.Equal(t, "real", r.Target.Clock)
	require.Equal(t, "POST /v1/invoice/calculate", r.Target.Operation)

	text, err := os.ReadFile(filepath.Join(site.dir, "run", "run.json"))
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal(text, &v))
	schema, err := jsonschema.NewCompiler().Compile("../../docs/run.schema.json")
	require.NoError(t, err)
	require.NoError(t, schema.Validate(v))
	for name, said := range map[string]string{"stdout": out, "stderr": errs, "run.json": string(text)} {
		require.NotRegexp(t, apiKey, said, name)
	}

	code, _, errs = site.load(t.Context(), t, shortLoad)
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "holds a run already")
	after, err := os.ReadFile(filepath.Join(site.dir, "run", "run.json"))
	require.NoError(t, err)
	require.Equal(t, text, after)
}

func TestLoadNamesAWrongServer(t *testing.T) {
	f, err := fault.ByName("refill-never")
	require.NoError(t, err)
	site := openLoadSite(t, server.Config{Control: "127.0.0.1:0", Alter: f.Apply}, nil)
	code, out, errs := site.load(t.Context(), t, "duration: 3s\npopulations:\n  - { plan: starter, users: 2, arrival: constant, rate: 1200, on-429: ignore }\n")
	requireMeasured(t, code, errs)
	require.Regexp(t, `!! starter: refused though a token was there: \d+ of \d+ rate 429s`, out)
}

// stopping is an engine that calls stop when it has worked so often.
type stopping struct {
	httpapi.Engine
	calls atomic.Int64
	after int64
	stop  func()
}

func (s *stopping) Calculate(ctx context.Context, in invoice.Invoice) (invoice.Result, error) {
	if s.calls.Add(1) == s.after {
		s.stop()
	}
	return s.Engine.Calculate(ctx, in)
}

func TestLoadIsInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	site := openLoadSite(t, server.Config{Users: 5, Alter: func(p *wiring.Parts) {
		p.Engine = &stopping{Engine: p.Engine, stop: stop, after: 5}
	}}, nil)
	code, out, errs := site.load(ctx, t, strings.Replace(shortLoad, "2s", "10m", 1), "--allow-host", "elsewhere.example")
	requireMeasured(t, code, errs)
	require.Contains(t, out, "interrupted after ")
	r := site.record(t)
	require.True(t, r.Interrupted)
	require.Positive(t, r.Plans[0].Unsent)
	require.Positive(t, r.Plans[0].Sent)
	require.Contains(t, strings.Join(r.Limits, "\n"), "The buckets of 8 of 8 users were in a state not known")
}

func TestLoadIsRefused(t *testing.T) {
	site := openLoadSite(t, server.Config{Users: 2}, nil)
	line := func(text string) string { return "duration: 2s\npopulations:\n  - " + text + "\n" }
	nobodyListens := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		return "http://" + l.Addr().String()
	}()
	frozen := openLoadSite(t, server.Config{Users: 5, Clock: wire.ClockFrozen, Control: "127.0.0.1:0"}, nil)
	remote := openLoadSite(t, server.Config{Users: 5}, func(f *target.File) { f.BaseURLs = []string{"https://invoices.example"} })
	frugal := openLoadSite(t, server.Config{Users: 5}, func(f *target.File) { f.Limits.MaxOperations = 100 })
	away := openLoadSite(t, server.Config{Users: 5}, func(f *target.File) { f.BaseURLs = []string{nobodyListens} })
	for name, c := range map[string]struct {
		site     loadSite
		scenario string
		flags    []string
		code     int
		want     string
	}{
		"bad scenario":         {site, "duration: soon\n", nil, exitUsage, "load.yaml:1: duration: got the text \"soon\"; accepted: a duration such as 90s"},
		"unknown plan":         {site, line("{ plan: gold, users: 1, arrival: poisson, rate: 1x, on-429: ignore }"), nil, exitUsage, `load.yaml:3: populations[0].plan: the target has no allowance for plan "gold"`},
		"too few users":        {site, shortLoad, nil, exitUsage, "5 users on plan free are needed, the target lends 2; 3 users on plan starter are needed, the target lends 2"},
		"nothing comes due":    {site, line("{ plan: free, users: 1, arrival: { bursts: 1, every: 24h }, on-429: ignore }"), nil, exitUsage, "load.yaml: no request comes due in 2s"},
		"a frozen clock":       {frozen, shortLoad, nil, exitUsage, "clock is frozen: load needs one that runs"},
		"another machine":      {remote, shortLoad, nil, exitUsage, "invoices.example is not this machine; say --allow-host invoices.example if you may load it"},
		"another name":         {remote, shortLoad, []string{"--allow-host", "staging.invoices.example"}, exitUsage, "invoices.example is not this machine"},
		"more than it's worth": {frugal, shortLoad, nil, exitUsage, "operations may be charged, limits.max-operations of " + frugal.target + " is 100"},
		"nobody listens":       {away, shortLoad, nil, exitCannotTell, "the target is away"},
		"no such target":       {site, shortLoad, []string{"--target", "gone.yaml"}, exitUsage, "gone.yaml: no such file"},
		"no target":            {site, shortLoad, []string{"--target", ""}, exitUsage, "--target is empty: give it a value, or leave it out"},
		"no folder":            {site, shortLoad, []string{"--out", ""}, exitUsage, "--out is empty: give it a value, or leave it out"},
		"a host with a scheme": {site, shortLoad, []string{"--allow-host", "http://a/"}, exitUsage, `"http://a/" for "--allow-host" flag: accepted: the name or address of a host`},
		"a host with a port":   {site, shortLoad, []string{"--allow-host", "a:80"}, exitUsage, "without scheme, port and path"},
		"a host that is lost":  {site, shortLoad, []string{"--allow-host", ""}, exitUsage, "accepted: the name or address of a host"},
		"two scenarios":        {site, shortLoad, []string{"more.yaml"}, exitUsage, "load needs one scenario file"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := c.site.load(t.Context(), t, c.scenario, c.flags...)
			require.Equal(t, c.code, code, errs)
			require.Contains(t, errs, c.want)
			require.Equal(t, 1, strings.Count(errs, "\n"), "one line")
			require.Empty(t, out)
			require.NoFileExists(t, filepath.Join(c.site.dir, "run", "run.json"))
		})
	}
}

// TestLoadThatTellsNothing: it leaves its record, says so loudly and by its exit
// code, and the record says it too.
func TestLoadThatTellsNothing(t *testing.T) {
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	var calls atomic.Int64
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		why    string
	}{
		"a wrong path": {status(404, ""), `free: none of \d+ requests was admitted`},
		"a redirect":   {status(302, ""), `free: none of \d+ requests was admitted`},
		"only 429s":    {status(429, "{}"), `free: none of \d+ requests was admitted`},
		"a target that dies": {func(w http.ResponseWriter, _ *http.Request) {
			if calls.Add(1) > 3 {
				panic(http.ErrAbortHandler)
			}
		}, `free: [\d,]+ of [\d,]+ requests got no whole answer`},
	} {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
			mux.HandleFunc("POST /", c.answer)
			stub := httptest.NewServer(mux)
			defer stub.Close()
			site := openLoadSite(t, server.Config{Users: 2}, func(f *target.File) { f.BaseURLs = []string{stub.URL} })
			code, out, errs := site.load(t.Context(), t, "duration: 1s\npopulations:\n  - { plan: free, users: 2, arrival: constant, rate: 600, on-429: ignore }\n")
			require.Equal(t, exitCannotTell, code)
			require.Regexp(t, `(?m)^!! `+c.why+": the run says nothing of this plan$", out)
			require.Regexp(t, `(?m)^brimline: (this machine was too slow.*; )?`+c.why, errs) // a busy one may have been
			r := site.record(t)
			require.Equal(t, "free", r.Untold[0].Plan)
			require.Equal(t, r.Doubts(), r.Untold)
			require.Positive(t, r.Plans[0].Sent)
		})
	}
}

// TestLoadOfRejectionsWithoutACause: nothing reads as cleared that was not judged.
func TestLoadOfRejectionsWithoutACause(t *testing.T) {
	var calls atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /", func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) > 5 {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	stub := httptest.NewServer(mux)
	defer stub.Close()
	site := openLoadSite(t, server.Config{Users: 1}, func(f *target.File) { f.BaseURLs = []string{stub.URL} })
	code, out, errs := site.load(t.Context(), t, "duration: 1s\npopulations:\n  - { plan: free, users: 1, arrival: constant, rate: 1200, on-429: ignore }\n")
	requireMeasured(t, code, errs)
	require.Regexp(t, `(?m)^  free +1 +\d+ +\d+ +\d+ +\d+ +– +– +– `, out)
	require.Regexp(t, `(?m)^!! free: without an errorCode that names a known cause, so not judged: (\d+) of \d+ 429s$`, out)
	require.EqualValues(t, 1, site.record(t).Plans[0].UsersAffected)
}
