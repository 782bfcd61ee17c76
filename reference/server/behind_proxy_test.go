package server_test

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/clientip"
	"github.com/invoicespec/brimline/reference/server"
)

// These tests run the server behind real proxies, with the configurations that
// the guide recommends: they are taken from its own text.

// way is how clients reach the server: by one proxy, by two, or by none.
type way struct {
	*fixture
	addr string
	tls  *tls.Config // nil: no TLS
	last *int        // client address that was given out
}

// behind starts a server that trusts the proxy in front of it, on a clock that
// stands still, so that no pool fills up while a test works.
func behind(t *testing.T, s site, host string) way {
	t.Helper()
	trusted, err := clientip.ParseTrusted([]string{cmp.Or(s.trusted, "127.0.0.1")})
	require.NoError(t, err)
	f := start(t, server.Config{
		Clock:     wire.ClockFrozen,
		Transport: server.Transport{H2C: s.h2c},
		Addresses: clientip.Config{Trusted: trusted, Header: s.header, Logged: clientip.LogFull},
	})
	return way{fixture: f, addr: s.build(t, host, f.Addr().String()), tls: insecure(), last: new(int)}
}

// insecure takes the certificate that the test has made.
func insecure() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

// direct is the same server without a proxy.
func (w way) direct() way {
	w.addr, w.tls = w.Addr().String(), nil
	return w
}

// client is an address on loopback that no client had yet.
func (w way) client() string {
	*w.last++
	return fmt.Sprintf("127.0.%d.%d", 1+*w.last/200, 1+*w.last%200)
}

// dialFrom opens a connection from a client's address.
func (w way) dialFrom(client string) net.Conn {
	w.Helper()
	d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(client)}, Timeout: patience}
	var c net.Conn
	var err error
	if w.tls == nil {
		c, err = d.Dial("tcp", w.addr)
	} else {
		c, err = tls.DialWithDialer(d, "tcp", w.addr, w.tls)
	}
	require.NoError(w, err)
	require.NoError(w, c.SetDeadline(time.Now().Add(patience)))
	return c
}

// attempt sends a request with a wrong key and these header lines.
func (w way) attempt(client string, lines ...string) answer {
	w.Helper()
	c := w.dialFrom(client)
	defer c.Close()
	lines = append(lines, "Connection: close")
	_, err := io.WriteString(c, head("isk_free_0123456789abcdef", 0, strings.Join(lines, "\r\n")+"\r\n"))
	require.NoError(w, err)
	return readAnswer(w.T, c)
}

// spend makes n attempts that are answered 401.
func (w way) spend(client string, n int, lines func(int) []string) {
	w.Helper()
	for i := range n {
		a := w.attempt(client, lines(i)...)
		require.Equal(w, http.StatusUnauthorized, a.StatusCode, "attempt %d of %d: %s", i+1, n, a.body)
		require.Equal(w, client, w.logged(a.Header.Get("X-Request-Id")).Client)
	}
}

// empty requires that the next attempt is refused for what the address did.
func (w way) empty(client string, lines ...string) {
	w.Helper()
	a := w.attempt(client, lines...)
	require.Equal(w, http.StatusTooManyRequests, a.StatusCode)
	require.Equal(w, contract.CodeRateLimited, a.code(w.T))
	require.NotEmpty(w, a.Header.Get("Retry-After"))
	require.Empty(w, a.Header.Get("RateLimit-Limit"))
}

func plain(int) []string { return nil }

// naming is every header that might name a client, naming addr.
func naming(addr string) []string {
	node := addr
	if strings.Contains(addr, ":") {
		node = `"[` + addr + `]"`
	}
	lines := []string{"X-Forwarded-For: " + addr, "X-Forwarded-For: " + addr + ", " + addr, "Forwarded: for=" + node, "X-Real-IP: " + addr}
	for _, h := range []string{"True-Client-IP", "CF-Connecting-IP", "X-Client-IP", "X-Originating-IP", "X_Forwarded_For", "X-Cluster-Client-IP"} {
		lines = append(lines, h+": "+addr)
	}
	return lines
}

const burst = 10 // of one address

func TestBehindProxies(t *testing.T) {
	for name, site := range sites(t) {
		t.Run(name, func(t *testing.T) {
			s := behind(t, site, "127.0.0.1")
			t.Run("addresses have separate pools", func(t *testing.T) {
				w := s.inTest(t)
				first, second := w.client(), w.client()
				w.spend(first, burst, plain)
				w.empty(first)
				w.spend(second, burst, plain)
				w.empty(second)
			})
			t.Run("rotating headers gains nothing", func(t *testing.T) {
				w := s.inTest(t)
				c := w.client()
				rotating := func(i int) []string { return naming(fmt.Sprintf("203.0.113.%d", i)) }
				w.spend(c, burst, rotating)
				w.empty(c, rotating(burst)...)
			})
			t.Run("naming a victim takes nothing from it", func(t *testing.T) {
				w := s.inTest(t)
				attacker, victim := w.client(), w.client()
				w.spend(attacker, burst, func(int) []string { return naming(victim) })
				w.empty(attacker, naming(victim)...)
				w.spend(victim, burst, plain)
				w.empty(victim)
			})
			t.Run("naming a proxy, or hiding behind Connection", func(t *testing.T) {
				w := s.inTest(t)
				c := w.client()
				w.spend(c, burst, func(i int) []string {
					return append(naming("127.0.0.1"), "Connection: X-Forwarded-For, Forwarded, X-Real-IP")
				})
				w.empty(c)
			})
			t.Run("a direct client is its own peer", func(t *testing.T) {
				w := s.inTest(t).direct()
				c := w.client()
				w.spend(c, burst, func(i int) []string { return naming(fmt.Sprintf("203.0.113.%d", i)) })
				w.empty(c, naming("203.0.113.77")...)
			})
			t.Run("whatever headers there are", func(t *testing.T) { s.inTest(t).survives(cmp.Or(site.header, clientip.XForwardedFor)) })
		})
		t.Run(name+", IPv6", func(t *testing.T) {
			w := behind(t, site, "::1")
			w.spend("::1", burst, func(i int) []string { return naming(fmt.Sprintf("2001:db8:%x::1", i)) })
			w.empty("::1")
		})
	}
}

// survives sends headers that are long, many or nonsense. Those of 64 KiB and
// more are refused before the server sees them; all others are attempts of the
// client's own.
func (w way) survives(header string) {
	w.Helper()
	many := func(entry string, n int) string { return header + ": " + strings.Repeat(entry+",", n) }
	c := w.client()
	for _, text := range []string{many("x", 32<<10), many("1.2.3.4", 10_000)} {
		conn := w.dialFrom(c)
		io.WriteString(conn, head("", 0, text+"\r\n")) // which breaks off when it is refused
		io.Copy(io.Discard, conn)
		conn.Close()
	}
	var lines []string
	for i := range 90 {
		lines = append(lines, fmt.Sprintf("%s: 203.0.113.%d", header, i))
	}
	evil := [burst][]string{
		lines,
		{many("1.2.3.4", 700)}, {many("127.0.0.1", 500)}, {many("", 5000)},
		{header + `: for="`, header + `: "`, header + `: for="\`},
		{header + ": unknown, _hidden, 1.2.3, 999.1.1.1, [::1, ]:, %, -"},
		{header + ": \xff\xfe, \xc3\x28"},
		{header + ":"},
	}
	w.spend(c, burst, func(i int) []string { return evil[i] })
	w.empty(c, lines...)
}

// inTest is the way in a subtest.
func (w way) inTest(t *testing.T) way {
	w.fixture = w.fixture.in(t)
	return w
}
