package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/server"
)

// TestRejectionDoesNotWaitForTheBody: a client that has sent a part of its body,
// or none, has its answer; the rest is never asked for.
func TestRejectionDoesNotWaitForTheBody(t *testing.T) {
	f := start(t, server.Config{})
	u := f.newUser("free")
	f.empty(u)
	for name, c := range map[string]struct {
		text, code string
	}{
		"a part of the body":        {head(u.Keys[0], 1000) + strings.Repeat("x", 100), contract.CodeRateLimited},
		"none of the body":          {head(u.Keys[0], 1000), contract.CodeRateLimited},
		"a huge body":               {head(u.Keys[0], 1<<30) + "x", contract.CodeRateLimited},
		"expecting to be asked":     {head(u.Keys[0], 1000, "Expect: 100-continue"), contract.CodeRateLimited},
		"chunks":                    {strings.Replace(head(u.Keys[0], 0), "Content-Length: 0", "Transfer-Encoding: chunked", 1) + "5\r\nhello\r\n", contract.CodeRateLimited},
		"unauthenticated":           {head("isk_free_0123456789abcdef", 1000) + "x", contract.CodeUnauthenticated},
		"unauthenticated, expected": {head("", 1000, "Expect: 100-continue"), contract.CodeUnauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			a := f.raw(c.text)
			require.Equal(t, c.code, a.code(t))
			require.True(t, a.Close, "the connection is not for further requests")
		})
	}
}

// TestRejectionKeepsAConnectionWithoutABody: nothing is pending there.
func TestRejectionKeepsAConnectionWithoutABody(t *testing.T) {
	f := start(t, server.Config{})
	u := f.newUser("free")
	f.empty(u)
	c := f.dial()
	r := bufio.NewReader(c)
	for range 3 {
		_, err := io.WriteString(c, head(u.Keys[0], 0))
		require.NoError(t, err)
		resp, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		require.False(t, resp.Close)
		require.Equal(t, http.StatusTooManyRequests, finish(t, resp).StatusCode)
	}
}

// TestRejectionReachesAClientThatUploads: one that sends the whole body before it
// reads finds the answer, not a reset.
func TestRejectionReachesAClientThatUploads(t *testing.T) {
	f := start(t, server.Config{})
	cert, key := writePair(t, t.TempDir(), 1)
	secure := start(t, server.Config{Transport: server.Transport{Certificate: cert, Key: key}})
	for name, dial := range map[string]func(t *testing.T) (net.Conn, wire.User){
		"in the clear": func(t *testing.T) (net.Conn, wire.User) { return f.in(t).dial(), f.empty(f.newUser("free")) },
		"TLS": func(t *testing.T) (net.Conn, wire.User) {
			return secure.in(t).dialTLS("http/1.1"), secure.empty(secure.newUser("free"))
		},
	} {
		for _, size := range []int{1 << 20, 8 << 20} {
			t.Run(fmt.Sprint(name, ", ", size>>20, " MiB"), func(t *testing.T) {
				for range 5 {
					c, u := dial(t)
					_, err := io.WriteString(c, head(u.Keys[0], size))
					require.NoError(t, err)
					for range size / 4096 {
						_, err := io.WriteString(c, strings.Repeat("x", 4096))
						require.NoError(t, err, "the server still takes the body")
					}
					require.Equal(t, contract.CodeRateLimited, readAnswer(t, c).code(t))
					c.Close()
				}
			})
		}
	}
}

// TestOversizeBodyIsRefused: one that is announced too long, and one that turns
// out to be.
func TestOversizeBodyIsRefused(t *testing.T) {
	f := start(t, server.Config{})
	u := f.newUser("pro")
	chunked := strings.Replace(head(u.Keys[0], 0), "Content-Length: 0", "Transfer-Encoding: chunked", 1)
	for name, text := range map[string]string{
		"announced": head(u.Keys[0], 2<<20) + strings.Repeat(" ", 2<<20),
		"chunked":   chunked + "200000\r\n" + strings.Repeat(" ", 2<<20) + "\r\n0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			a := f.raw(text)
			require.Equal(t, contract.CodeValidationFailed, a.code(t))
			require.Contains(t, a.body, "larger than 1048576 bytes")
			f.idle()
		})
	}
}

// TestBeforeAnyHandler: what the HTTP parser refuses is out of scope: no id, no
// entry, no token (LOG-8).
func TestBeforeAnyHandler(t *testing.T) {
	f := start(t, server.Config{})
	u := f.newUser("free")
	for name, c := range map[string]struct {
		text   string
		status int
	}{
		"no host":        {"POST /v1/invoice/calculate HTTP/1.1\r\nAuthorization: Bearer " + u.Keys[0] + "\r\n\r\n", 400},
		"a bad version":  {"POST /v1/invoice/calculate HTTP/9.9\r\nHost: x\r\n\r\n", 505},
		"a bad escape":   {"POST /v1/invoice/%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
		"two lengths":    {head(u.Keys[0], 2, "Content-Length: 3") + "{}", 400},
		"a long head":    {head(u.Keys[0], 2, "X-Long: "+strings.Repeat("x", 64<<10)) + "{}", 431},
		"expects magic":  {head(u.Keys[0], 2, "Expect: magic") + "{}", 417},
		"unknown coding": {head(u.Keys[0], 2, "Transfer-Encoding: rot13") + "{}", 501},
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			a := f.raw(c.text)
			require.Equal(t, c.status, a.StatusCode)
			require.Empty(t, a.Header.Get("X-Request-Id"))
		})
	}
	require.Empty(t, f.audit(u).Entries)
	require.Equal(t, "9", f.calculate(u.Keys[0]).Header.Get("RateLimit-Remaining"))
}
