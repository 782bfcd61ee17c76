package target_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
)

// throttled is a server that lets each client try twice, and knows a client by
// what of reads out of the request.
func throttled(t *testing.T, client func(*http.Request) string) string {
	t.Helper()
	var mu sync.Mutex
	tries := map[string]int{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if tries[client(r)]++; tries[client(r)] > 2 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func serving(t *testing.T, contentType, text string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		io.WriteString(w, text)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func slowOf(expect int64) *target.Slow {
	return &target.Slow{Operation: target.Operation{Method: http.MethodPost, Path: "/slow", Body: "{}", Expect: expect}, Takes: 500 * time.Millisecond}
}

// after is a server that takes its time over one path.
func after(t *testing.T, d time.Duration) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			time.Sleep(d)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// What is declared is tried before it is believed: what is not so is kept with its
// reason, and what is so is there.
func TestDeclarations(t *testing.T) {
	byPeer := func(*http.Request) string { return "peer" }
	byHeader := func(r *http.Request) string { return r.Header.Get("X-Forwarded-For") }
	few := &target.Anonymous{RequestsPerMinute: 30, Burst: 2, Concurrency: 5}
	proxy := &target.Proxy{From: "127.0.9.1", Trusted: []string{"127.0.9.0/24"}}
	for name, c := range map[string]struct {
		f    func(*target.File)
		need contract.Need
		want string // empty: it is so
	}{
		"addresses":            {func(f *target.File) { f.Can.Addresses = []string{"127.64.0.0/10"} }, contract.NeedAddresses, ""},
		"addresses of others":  {func(f *target.File) { f.Can.Addresses = []string{"127.64.0.0/10", "203.0.113.0/24"} }, contract.NeedAddresses, "can.addresses: this machine cannot send from 203.0.113.0"},
		"a proxy":              {func(f *target.File) { f.Can.Proxy, f.BaseURLs[0] = proxy, throttled(t, byHeader) }, contract.NeedProxy, ""},
		"a proxy not believed": {func(f *target.File) { f.Can.Proxy, f.BaseURLs[0] = proxy, throttled(t, byPeer) }, contract.NeedProxy, "can.proxy: clients that 127.0.9.1 names in X-Forwarded-For share one pool: it is not believed"},
		"a proxy that is not us": {func(f *target.File) {
			f.Can.Proxy = &target.Proxy{From: "203.0.113.1", Trusted: []string{"203.0.113.1"}}
		}, contract.NeedProxy, "can.proxy: this machine cannot send from 203.0.113.1"},
		"metrics": {func(f *target.File) {
			f.Can.Metrics = &target.MetricsAddress{URL: serving(t, "text/plain", "a_total 1\n") + "/m"}
		}, contract.NeedMetrics, ""},
		"metrics in JSON": {func(f *target.File) {
			f.Can.Metrics = &target.MetricsAddress{URL: serving(t, "text/plain", `{"a":1}`) + "/m"}
		}, contract.NeedMetrics, "is no page of metrics: text format parsing error in line 1"},
		"metrics nowhere":   {func(f *target.File) { f.Can.Metrics = &target.MetricsAddress{URL: answering(t, 404) + "/m"} }, contract.NeedMetrics, "/m answers 404"},
		"metrics of nobody": {func(f *target.File) { f.Can.Metrics = &target.MetricsAddress{URL: gone(t) + "/m"} }, contract.NeedMetrics, "can.metrics: metrics: "},
		"a program":         {func(f *target.File) { f.Can.Process = &target.Process{Command: []string{"sh", "{port}"}} }, contract.NeedProcess, ""},
		"no such program":   {func(f *target.File) { f.Can.Process = &target.Process{Command: []string{"./no-server", "{port}"}} }, contract.NeedProcess, "can.process.command: ./no-server: "},
		"HTTP/2":            {func(f *target.File) { f.Can.HTTP2 = true }, contract.NeedHTTP2, "does not speak it"},
		"a stalled upload":  {func(f *target.File) { f.Can.StalledUpload, f.BaseURLs[0] = true, answering(t, 401) }, contract.NeedHold, ""},
		"a slow operation":  {func(f *target.File) { f.Operations.Slow, f.BaseURLs[0] = slowOf(200), after(t, 600*time.Millisecond) }, contract.NeedHold, ""},
		"a quick one": {func(f *target.File) {
			f.Operations.Slow, f.BaseURLs[0] = slowOf(200), after(t, 0)
			f.Operations.Slow.Takes = 20 * time.Second // no machine is that busy
		}, contract.NeedHold, ", and takes says 20s"},
		"one not let in": {func(f *target.File) { f.Operations.Slow, f.BaseURLs[0] = slowOf(202), after(t, 600*time.Millisecond) }, contract.NeedHold, "operations.slow: answered with 200, not with 202"},
		"one refused":    {func(f *target.File) { f.Operations.Slow, f.BaseURLs[0] = slowOf(200), answering(t, 429) }, contract.NeedHold, "operations.slow: answered with 429"},
		"nothing else":   {func(f *target.File) { f.Operations.Slow, f.BaseURLs[0] = slowOf(200), after(t, 600*time.Millisecond) }, contract.NeedUpload, "-"},
		"nothing":        {func(*target.File) {}, contract.NeedAudit, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			f := fileFor(answering(t, 404))
			f.Anonymous = few
			c.f(&f)
			tg := open(t, f)
			require.Equal(t, c.want == "", tg.Has(c.need), tg.Untrue(c.need))
			switch c.want {
			case "", "-":
				require.Empty(t, tg.Untrue(c.need), "nobody has declared anything else")
			default:
				require.Contains(t, tg.Untrue(c.need), c.want)
			}
		})
	}
}

// Whoever has set up a server himself wants to hear of it what is wrong with it.
func TestVouchedDeclarationsAreNotDoubted(t *testing.T) {
	f := fileFor(throttled(t, func(*http.Request) string { return "peer" }))
	f.Anonymous = &target.Anonymous{RequestsPerMinute: 30, Burst: 2, Concurrency: 5}
	f.Can.Proxy = &target.Proxy{From: "127.0.9.1", Trusted: []string{"127.0.9.0/24"}}
	tg, err := target.Open(t.Context(), f, target.Options{
		Keys: []target.Key{{User: "u", Plan: "free", Secret: target.NewSecret(theKey)}}, Vouched: []contract.Need{contract.NeedProxy},
	})
	require.NoError(t, err)
	require.True(t, tg.Has(contract.NeedProxy))
	require.NoError(t, tg.Close())
}

// A page that sends whoever has signed in to the sign-in lets nobody in.
func TestAPageThatDoesNotLetIn(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/page" {
			http.Redirect(w, r, "/in", http.StatusSeeOther)
			return
		}
		fmt.Fprint(w, "<form>")
	}))
	t.Cleanup(s.Close)
	f := fileFor(s.URL)
	f.Can.Page = &target.Page{Path: "/page", SignIn: "/in", Field: "key", Negotiated: "own"}
	tg := open(t, f)
	_, err := tg.Page(t.Context(), lease(t, tg, "free", 1))
	require.ErrorIs(t, err, target.ErrUntrue)
	require.ErrorContains(t, err, "can.page: whoever has signed in at /in is asked to do so again")
}

// A program that starts no server whatever it is told is found out by the first
// start that fails, and started once more for that, not each time.
func TestAProgramThatIsNoServer(t *testing.T) {
	starts := t.TempDir() + "/starts"
	f := fileFor(answering(t, 404))
	f.Can.Process = &target.Process{
		Command: []string{script(t, "echo started >> "+starts+"; echo cannot open the database >&2; exit 2\n"), "{port}"}, ReadyWithin: time.Minute,
	}
	tg := open(t, f)
	require.True(t, tg.Has(contract.NeedProcess), "it is there")
	for range 3 {
		_, err := tg.TryStart(t.Context(), target.Settings{contract.SettingReplicas: "2"})
		require.ErrorIs(t, err, target.ErrUntrue)
		require.ErrorContains(t, err, "can.process: with nothing set, it exited with code 2 and said: cannot open the database")
	}
	text, err := os.ReadFile(starts)
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(text), "started"))
}
