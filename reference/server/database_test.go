package server_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/internal/pgtest"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/operator"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/store/postgres"
)

// database is the configuration of a server on a database of the test's own.
func database(t *testing.T, url string) server.Config {
	return server.Config{
		OperatorToken: "operator-0123456789",
		Database: &server.Database{
			URL: url, KeySecret: []byte(strings.Repeat("k", account.MinSecret)), Migrate: true, Spool: t.TempDir(),
		},
	}
}

// entries waits until so many entries of a user are in the database.
func entries(t *testing.T, url, user string, n int) []contract.LogEntry {
	t.Helper()
	cfg := database(t, url).Database
	digester, err := account.DigesterFrom(cfg.KeySecret)
	require.NoError(t, err)
	s, err := postgres.Open(t.Context(), postgres.Config{URL: url, Digester: digester, Clock: clock.NewReal(), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer s.Close()
	var got []contract.LogEntry
	for end := time.Now().Add(patience); time.Now().Before(end) && len(got) < n; time.Sleep(10 * time.Millisecond) {
		got, err = s.Log().UserEntries(t.Context(), user, 1000)
		require.NoError(t, err)
	}
	require.Len(t, got, n)
	return got
}

// TestDatabaseSurvivesARestart: plans, overrides, operations, keys and log
// entries are there for the next process, and the buckets are full (RESTART-1,
// RESTART-2).
func TestDatabaseSurvivesARestart(t *testing.T) {
	url := pgtest.Database(t)
	cfg := database(t, url)
	cfg.Listen, cfg.Control = "127.0.0.1:0", "127.0.0.1:0"
	first, err := server.Open(context.Background(), cfg)
	require.NoError(t, err)
	f := &fixture{T: t, Server: first, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	u := f.newUser("free")
	status, body := f.internal(cfg.OperatorToken, http.MethodPut, "/users/"+u.ID+"/overrides/burst", `{"value":40,"author":"ann","reason":"a launch"}`)
	require.Equal(t, http.StatusNoContent, status, body)
	for want := 39; want >= 36; want-- {
		a := f.calculate(u.Keys[0])
		require.Equal(t, http.StatusOK, a.StatusCode, a.body)
		require.Equal(t, []string{"40", strconv.Itoa(want)}, []string{a.Header.Get("RateLimit-Limit"), a.Header.Get("RateLimit-Remaining")})
	}
	require.NoError(t, first.Close(context.Background()))

	f = start(t, cfg)
	a := f.calculate(u.Keys[0])
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	require.Equal(t, []string{"40", "39"}, []string{a.Header.Get("RateLimit-Limit"), a.Header.Get("RateLimit-Remaining")}, "the bucket is full")
	status, body = f.internal(cfg.OperatorToken, http.MethodGet, "/users/"+u.ID, "")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, `"operationsUsed":5`)
	ids := map[string]bool{}
	for _, e := range entries(t, url, u.ID, 5) {
		ids[e.RequestID] = true
		require.Equal(t, http.StatusOK, e.Status)
	}
	require.Len(t, ids, 5)

	f.control(http.MethodPost, "/restart", nil, nil)
	a = f.calculate(u.Keys[0])
	require.Equal(t, "39", a.Header.Get("RateLimit-Remaining"), "the control protocol's restart fills the bucket as well")
}

// TestWhileTheDatabaseIsAway: a policy that is known spends its token and meets
// the ledger's 503, any other key the configuration's; nothing waits, no entry is
// lost, and all is well again by itself (LOG-5, CFG-1).
func TestWhileTheDatabaseIsAway(t *testing.T) {
	pg := pgtest.Start(t)
	url := pg.Database(t)
	cfg := database(t, url)
	f := start(t, cfg)
	known, other := f.newUser("plus"), f.newUser("plus")
	require.Equal(t, http.StatusOK, f.calculate(known.Keys[0]).StatusCode)

	for name, outage := range map[string]struct{ begin, end func(testing.TB) }{
		"stopped": {pg.Stop, pg.Start},
		"hanging": {pg.Pause, pg.Resume},
	} {
		// What the database tells of changes may come late and empty the cache once
		// more, so that the first outage may find nothing in it.
		met := func() bool {
			f.eventually("the policy is known", func() bool { return f.calculate(known.Keys[0]).StatusCode == http.StatusOK })
			outage.begin(t)
			defer outage.end(t)
			a := f.calculate(other.Keys[0])
			require.Equal(t, http.StatusServiceUnavailable, a.StatusCode, name)
			require.Equal(t, contract.CodeConfigUnavailable, a.code(t), name)
			require.Empty(t, a.Header.Get("RateLimit-Remaining"), name)
			a = f.calculate(known.Keys[0])
			require.Equal(t, http.StatusServiceUnavailable, a.StatusCode, name)
			if a.code(t) == contract.CodeConfigUnavailable {
				return false
			}
			require.Equal(t, contract.CodeCapacityUnavailable, a.code(t), name)
			require.NotEmpty(t, a.Header.Get("RateLimit-Remaining"), "it spent its token")
			return true
		}
		used := false
		for range 3 {
			used = used || met()
		}
		require.True(t, used, "%s: a policy that is known is used", name)
	}
	f.eventually("service is back", func() bool { return f.calculate(known.Keys[0]).StatusCode == http.StatusOK })
	f.idle()
}

// TestOperatorsAndUsersAreToldApart: OVR-6.
func TestOperatorsAndUsersAreToldApart(t *testing.T) {
	f := start(t, server.Config{OperatorToken: "operator-0123456789"})
	u := f.newUser("free")
	for _, token := range []string{"", u.Keys[0], "operator-012345678"} {
		status, _ := f.internal(token, http.MethodPut, "/users/"+u.ID+"/overrides/burst", `{"value":40,"author":"a","reason":"b"}`)
		require.Equal(t, http.StatusUnauthorized, status)
	}
	require.Equal(t, "10", f.calculate(u.Keys[0]).Header.Get("RateLimit-Limit"))
	require.Equal(t, http.StatusUnauthorized, f.calculate("operator-0123456789").StatusCode, "and an operator's token is no key")
}

func TestMetricsHaveAListenerOfTheirOwn(t *testing.T) {
	f := start(t, server.Config{Metrics: "127.0.0.1:0"})
	f.calculate(f.newUser("free").Keys[0])
	resp, err := f.client.Get(f.MetricsURL() + "/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Contains(t, string(page), "invoicespec_rate_limit_startup_total 1\n")
	require.Regexp(t, `(?m)^invoicespec_rate_limit_decisions_total\{.*outcome="admitted".*requests_per_minute="10".*\} 1$`, string(page))
	require.Equal(t, http.StatusNotFound, f.send(http.MethodGet, "/metrics", "", "").StatusCode, "not where users ask")
}

// TestGuardsKeepTheServerFromListening: GUARD-1, GUARD-2.
func TestGuardsKeepTheServerFromListening(t *testing.T) {
	for name, c := range map[string]struct {
		storage  string
		replicas int64
		want     string
	}{
		"two processes":  {"local", 2, "replicas is 2 and storage is local"},
		"by default":     {"", 3, "replicas is 3 and storage is local"},
		"no adapter":     {"redis", 1, `storage is "redis"`},
		"less than none": {"local", -1, "replicas is -1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := server.Open(t.Context(), server.Config{Listen: "127.0.0.1:0", Storage: c.storage, Replicas: c.replicas})
			require.ErrorContains(t, err, c.want)
		})
	}
	start(t, server.Config{Storage: "local", Replicas: 1})
}

// TestBillingPageIsServed: the page itself has tests of its own.
func TestBillingPageIsServed(t *testing.T) {
	f := start(t, server.Config{})
	a := f.send(http.MethodGet, "/dashboard/sign-in", "", "")
	require.Equal(t, http.StatusOK, a.StatusCode)
	require.Contains(t, a.Header.Get("Content-Security-Policy"), "default-src 'none'")
}

// internal asks an operator's route.
func (f *fixture) internal(token, method, path, body string) (int, string) {
	f.Helper()
	a := f.send(method, operator.Prefix+"/billing"+path, token, body)
	return a.StatusCode, a.body
}
