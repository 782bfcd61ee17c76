package server_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/clientip"
	"github.com/invoicespec/brimline/reference/server"
)

// wrong is a well-formed key that nobody has.
func wrong(t *testing.T) string {
	t.Helper()
	k, err := account.NewKey("pro")
	require.NoError(t, err)
	return k.Reveal()
}

// from sends a request from a source address, with header lines of its own.
func (f *fixture) from(address, key string, lines ...string) answer {
	f.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: patience}
	c, err := dialer.Dial("tcp", f.Addr().String())
	require.NoError(f, err)
	defer c.Close()
	_, err = io.WriteString(c, head(key, 2, lines...)+"{}")
	require.NoError(f, err)
	return readAnswer(f.T, c)
}

// TestGate is the whole way of an attempt that does not authenticate: counted,
// refused, answered and logged (ANON-1, ANON-2, ANON-4, ANON-5, LOG-2).
func TestGate(t *testing.T) {
	f := start(t, server.Config{Clock: wire.ClockFrozen})
	u := f.newUser("pro")
	for n := range 10 {
		key := wrong(t)
		if n%2 == 0 {
			key = "nonsense"
		}
		require.Equal(t, http.StatusUnauthorized, f.from("127.0.0.2", key).StatusCode, n)
	}
	a := f.from("127.0.0.2", wrong(t))
	require.Equal(t, http.StatusTooManyRequests, a.StatusCode)
	require.Equal(t, contract.CodeRateLimited, a.code(t))
	require.Equal(t, "2", a.Header.Get("Retry-After"))
	require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
	for name := range a.Header {
		require.NotContains(t, strings.ToLower(name), "ratelimit")
	}
	e := f.logged(a.Header.Get("X-Request-Id"))
	require.Equal(t, contract.LogRejected, e.Outcome)
	require.Equal(t, "127.0.0.0/24", e.Client)
	require.Empty(t, e.User)
	require.Nil(t, e.Decision)

	require.Equal(t, http.StatusUnauthorized, f.from("127.0.0.3", wrong(t)).StatusCode, "another address")
	require.Equal(t, http.StatusTooManyRequests, f.from("127.0.0.2", u.Keys[0]).StatusCode, "a key not yet known, where nothing is left")
	require.Equal(t, "99", f.from("127.0.0.3", u.Keys[0]).Header.Get("RateLimit-Remaining"), "nobody's tokens were spent meanwhile")
	good := f.from("127.0.0.2", u.Keys[0])
	require.Equal(t, "98", good.Header.Get("RateLimit-Remaining"), "a key lately seen good passes anywhere")
	require.Empty(t, f.logged(good.Header.Get("X-Request-Id")).Client, "the address of a user is nobody's business")
}

// TestGateBehindAProxy: the address is the one that the trusted proxy names, and
// what it calls the request is logged and nothing more (PROXY-1 to PROXY-3, ERR-5).
func TestGateBehindAProxy(t *testing.T) {
	f := start(t, server.Config{Clock: wire.ClockFrozen, Addresses: clientip.Config{
		Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.9.0/24")}, Logged: clientip.LogFull,
	}})
	statuses := func(peer string, lines func(n int) string) (all map[int]int) {
		all = map[int]int{}
		for n := range 12 {
			all[f.from(peer, wrong(t), lines(n)).StatusCode]++
		}
		return all
	}
	eleventh := map[int]int{http.StatusUnauthorized: 10, http.StatusTooManyRequests: 2}
	require.Equal(t, eleventh, statuses("127.0.0.2", func(n int) string { return fmt.Sprintf("X-Forwarded-For: 198.51.100.%d", n) }))
	require.Equal(t, eleventh, statuses("127.0.9.1", func(n int) string { return fmt.Sprintf("X-Forwarded-For: 198.51.100.%d, 203.0.113.7", n) }))
	require.Equal(t, map[int]int{http.StatusUnauthorized: 12},
		statuses("127.0.9.1", func(n int) string { return fmt.Sprintf("X-Forwarded-For: 203.0.113.%d", 10+n) }))

	const ids = "X-Request-Id: hop-1.a_B"
	logged := func(peer string, lines ...string) contract.LogEntry {
		a := f.from(peer, "nonsense", append(lines, "X-Forwarded-For: 192.0.2.1")...)
		require.Regexp(t, `^req_`, a.Header.Get("X-Request-Id"))
		return f.logged(a.Header.Get("X-Request-Id"))
	}
	e := logged("127.0.9.1", ids)
	require.Equal(t, "hop-1.a_B", e.Correlation)
	require.Equal(t, "192.0.2.1", e.Client)
	require.Empty(t, logged("127.0.0.4", ids).Correlation, "of nobody else")
	for name, lines := range map[string][]string{
		"too long":  {"X-Request-Id: " + strings.Repeat("a", 129)},
		"a space":   {"X-Request-Id: a b"},
		"no letter": {"X-Request-Id: ä"},
		"empty":     {"X-Request-Id: "},
		"two":       {ids, ids},
	} {
		require.Empty(t, logged("127.0.9.1", lines...).Correlation, name)
	}
	require.Len(t, logged("127.0.9.1", "X-Request-Id: "+strings.Repeat("a", 128)).Correlation, 128)
}

// TestGateTellsItsMeters: decisions before authentication are counted apart.
func TestGateTellsItsMeters(t *testing.T) {
	f := start(t, server.Config{Clock: wire.ClockFrozen, Metrics: "127.0.0.1:0"})
	for range 12 {
		f.from("127.0.0.2", "nonsense")
	}
	resp, err := f.client.Get(f.MetricsURL() + "/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	const series = `invoicespec_rate_limit_decisions_total{limiter="rate",outcome=%q,reason="anonymous",requests_per_minute=""} %d`
	require.Contains(t, string(page), fmt.Sprintf(series, "admitted", 10))
	require.Contains(t, string(page), fmt.Sprintf(series, "rejected", 2))
}
