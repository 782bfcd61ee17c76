package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	wire "github.com/invoicespec/brimline/conformance/contract/control"
)

// edges are the two proxies of the guide in their plainest form.
func edges() map[string]builder {
	return map[string]builder{"nginx": nginxEdge(), "haproxy": haproxyEdge()}
}

// over is a client that speaks one version of HTTP with the proxy, and keeps its
// connection.
func (w way) over(version int) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(version == 1)
	protocols.SetHTTP2(version == 2)
	transport := &http.Transport{
		TLSClientConfig: w.tls.Clone(),
		Protocols:       protocols,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, w.addr)
		},
	}
	w.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

func (w way) ask(c *http.Client, method, path, key, body string) answer {
	w.Helper()
	req, err := http.NewRequest(method, "https://api.example"+path, strings.NewReader(body))
	require.NoError(w, err)
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := c.Do(req)
	require.NoError(w, err)
	return finish(w.T, resp)
}

// begin asks for a valid operation, from another goroutine than the test's, and
// says why it had no success.
func (w way) begin(ctx context.Context, c *http.Client, key string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://api.example/v1/invoice/calculate", strings.NewReader(goodInvoice))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return errors.Join(err, resp.Body.Close())
}

// TestAnswersPassProxies: what the server says arrives, each header once, over
// connections that carry many requests, and with whatever the client speaks.
func TestAnswersPassProxies(t *testing.T) {
	for name, site := range sites(t) {
		t.Run(name, func(t *testing.T) {
			w := behind(t, site, "127.0.0.1")
			for _, version := range []int{1, 2} {
				c := w.over(version)
				u := w.newUser("free")
				expect := func(a answer, status int, code, remaining string) {
					t.Helper()
					require.Equal(t, status, a.StatusCode, a.body)
					require.Equal(t, version, a.ProtoMajor)
					require.Len(t, a.Header.Values("X-Request-Id"), 1)
					if code != "" {
						require.Equal(t, code, a.code(t))
						require.Equal(t, "application/json", a.Header.Get("Content-Type"))
					}
					for _, h := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} {
						require.Len(t, a.Header.Values(h), 1)
					}
					require.Equal(t, remaining, a.Header.Get("RateLimit-Remaining"))
					if status == http.StatusTooManyRequests {
						require.Equal(t, []string{"no-store"}, a.Header.Values("Cache-Control"))
						require.Len(t, a.Header.Values("Retry-After"), 1)
					}
				}
				w.gate(http.MethodPut, u, wire.PlaceEngine)
				held := make(chan error, 2)
				for range 2 {
					go func() { held <- w.begin(t.Context(), c, u.Keys[0]) }()
				}
				w.waiting(u, wire.PlaceEngine, 2)
				expect(w.ask(c, http.MethodPost, "/v1/invoice/calculate", u.Keys[1], goodInvoice), 429, contract.CodeConcurrencyLimited, "7")
				w.gate(http.MethodDelete, u, wire.PlaceEngine)
				for range 2 {
					require.NoError(t, <-held)
				}
				w.idle()
				expect(w.ask(c, http.MethodPost, "/v1/invoice/calculate", u.Keys[1], goodInvoice), 200, "", "6")
				expect(w.ask(c, http.MethodPost, "/v1/invoice/calculate", u.Keys[0], "{}"), 422, contract.CodeValidationFailed, "5")
				expect(w.ask(c, http.MethodPost, "/v1/invoice/nowhere", u.Keys[0], ""), 404, contract.CodeNotFound, "4")
				expect(w.ask(c, http.MethodGet, "/v1/invoice/calculate", u.Keys[0], ""), 405, contract.CodeMethodNotAllowed, "3")
				expect(w.ask(c, http.MethodPost, "/v1/invoice/calculate", u.Keys[0], strings.Repeat(" ", 3<<19)), 422, contract.CodeValidationFailed, "2")
				for _, left := range []string{"1", "0"} {
					expect(w.ask(c, http.MethodPost, "/v1/invoice/calculate", u.Keys[0], goodInvoice), 200, "", left)
				}
				expect(w.ask(c, http.MethodPost, "/v1/invoice/calculate", u.Keys[0], goodInvoice), 429, contract.CodeRateLimited, "0")

				for range 2 * burst { // SCOPE-2
					a := w.ask(c, http.MethodGet, "/ready", "isk_free_0123456789abcdef", "")
					require.Equal(t, http.StatusOK, a.StatusCode)
					require.Empty(t, a.Header.Get("RateLimit-Limit"))
				}
			}
		})
	}
}

// TestRequestIDsOfProxies: the edge's own id is logged, never the client's
// (ERR-5); the server's stands in the answer.
func TestRequestIDsOfProxies(t *testing.T) {
	for name, site := range sites(t) {
		t.Run(name, func(t *testing.T) {
			w := behind(t, site, "127.0.0.1")
			seen := map[string]bool{}
			for range 2 {
				id := w.attempt(w.client(), "X-Request-Id: chosen-by-the-client").Header.Get("X-Request-Id")
				correlation := w.logged(id).Correlation
				require.Regexp(t, "^([0-9a-f]{32}|[0-9a-f-]{36})$", correlation)
				require.NotEqual(t, id, correlation)
				require.False(t, seen[correlation])
				seen[correlation] = true
			}
			id := w.direct().attempt(w.client(), "X-Request-Id: chosen-by-the-client").Header.Get("X-Request-Id")
			require.Empty(t, w.logged(id).Correlation)
		})
	}
}

// TestUploadsThroughProxies: HAProxy passes a body on as it comes, so that a
// rejection reaches a client that is still sending. nginx keeps it until it is
// whole: the server hears nothing of an upload that stalls.
func TestUploadsThroughProxies(t *testing.T) {
	for name, build := range edges() {
		t.Run(name, func(t *testing.T) {
			w := behind(t, site{build: build}, "127.0.0.1")
			u := w.newUser("free")
			w.fixture.empty(u)
			before := len(w.audit(u).Entries)
			c := w.dialFrom(w.client())
			defer c.Close()
			_, err := io.WriteString(c, head(u.Keys[0], 1000)+strings.Repeat("x", 100))
			require.NoError(t, err)
			if name == "nginx" {
				// It has only one worker: what it does for us, it does after that.
				require.Equal(t, http.StatusOK, w.ask(w.over(1), http.MethodGet, "/ready", "", "").StatusCode)
				require.Len(t, w.audit(u).Entries, before)
				_, err = io.WriteString(c, strings.Repeat("x", 900))
				require.NoError(t, err)
			}
			require.Equal(t, contract.CodeRateLimited, readAnswer(t, c).code(t))
			require.Len(t, w.audit(u).Entries, before+1)
		})
	}
}

// TestDisconnectsThroughProxies: a client that leaves frees its place.
func TestDisconnectsThroughProxies(t *testing.T) {
	for name, site := range sites(t) {
		for _, version := range []int{1, 2} {
			t.Run(fmt.Sprint(name, ", HTTP/", version), func(t *testing.T) {
				w := behind(t, site, "127.0.0.1")
				u := w.newUser("free")
				w.gate(http.MethodPut, u, wire.PlaceEngine)
				ctx, leave := context.WithCancel(t.Context())
				c, left := w.over(version), make(chan error)
				go func() { left <- w.begin(ctx, c, u.Keys[0]) }()
				w.waiting(u, wire.PlaceEngine, 1)
				leave()
				require.Error(t, <-left, "canceled, or HAProxy's 400 to a client that goes")
				w.idle()
				w.gate(http.MethodDelete, u, wire.PlaceEngine)
			})
		}
	}
}

// TestProxyGivesUpFirst: its answer is not the contract's, the token is spent,
// and the place is free.
func TestProxyGivesUpFirst(t *testing.T) {
	for name, build := range map[string]builder{
		"nginx":   nginxEdge("proxy_http_version 1.1;", "proxy_http_version 1.1; proxy_read_timeout 1s;"),
		"haproxy": haproxyEdge("timeout server       75s", "timeout server 1s"),
	} {
		t.Run(name, func(t *testing.T) {
			w := behind(t, site{build: build}, "127.0.0.1")
			u := w.newUser("free")
			w.gate(http.MethodPut, u, wire.PlaceEngine)
			a := w.ask(w.over(1), http.MethodPost, "/v1/invoice/calculate", u.Keys[0], goodInvoice)
			require.Equal(t, http.StatusGatewayTimeout, a.StatusCode)
			require.Empty(t, a.Header.Get("X-Request-Id"))
			w.idle()
			w.gate(http.MethodDelete, u, wire.PlaceEngine)
			require.Equal(t, "8", w.calculate(u.Keys[0]).Header.Get("RateLimit-Remaining"))
		})
	}
}

// TestProxiesSendOnce: a request whose connection breaks may have been decided,
// so it is not sent a second time.
func TestProxiesSendOnce(t *testing.T) {
	unchecked := []string{" check\n", "\n"}
	two := []string{"    server 127.0.0.1:8080;", "    server 127.0.0.1:8080; server 127.0.0.1:8080;"}
	for name, c := range map[string]struct {
		build     builder
		post, get int64
	}{
		"nginx":              {nginxEdge(), 1, 1},
		"nginx, two servers": {nginxEdge(two...), 1, 2},
		"nginx, two servers, told to": {nginxEdge(append(two,
			"proxy_http_version 1.1;", "proxy_http_version 1.1; proxy_next_upstream error timeout non_idempotent;")...), 2, 2},
		"haproxy":          {haproxyEdge(unchecked...), 1, 1},
		"haproxy, told to": {haproxyEdge(append(unchecked, "mode http\n", "mode http\n    retries 2\n    retry-on all-retryable-errors\n")...), 3, 3},
	} {
		for method, want := range map[string]int64{http.MethodPost: c.post, http.MethodGet: c.get} {
			t.Run(name+", "+method, func(t *testing.T) {
				var sent atomic.Int64
				upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
					sent.Add(1)
					panic(http.ErrAbortHandler)
				}))
				defer upstream.Close()
				w := way{fixture: &fixture{T: t}, tls: insecure(), addr: c.build(t, "127.0.0.1", upstream.Listener.Addr().String())}
				a := w.ask(w.over(1), method, "/v1/invoice/calculate", "", "")
				require.Equal(t, http.StatusBadGateway, a.StatusCode)
				require.Equal(t, want, sent.Load())
			})
		}
	}
}

// TestPathsThroughProxies: the server sees the path as the client wrote it, so
// that it alone decides what is in scope.
func TestPathsThroughProxies(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RequestURI) }))
	defer upstream.Close()
	spellings := []string{
		"/v1/invoice/calculate", "//v1/invoice/calculate", "/v1//invoice/calculate", "/v1/./invoice/calculate", "/v1/x/../invoice/calculate",
		"/v1/x/%2e%2e/invoice/calculate", "/v1%2Finvoice/calculate", "/%76%31/invoice/calculate", "/v1/invoice/calculate/", "/v1/invoice/calculate;x?a=b",
	}
	for name, c := range map[string]struct {
		build builder
		want  []string
	}{
		"nginx":   {nginxEdge(), spellings},
		"haproxy": {haproxyEdge(" check\n", "\n"), spellings},
		"nginx with a path after the name": {nginxEdge("proxy_pass http://brimline;", "proxy_pass http://brimline/;"), []string{
			"/v1/invoice/calculate", "/v1/invoice/calculate", "/v1/invoice/calculate", "/v1/invoice/calculate", "/v1/invoice/calculate",
			"/v1/invoice/calculate", "/v1/invoice/calculate", "/v1/invoice/calculate", "/v1/invoice/calculate/", "/v1/invoice/calculate;x?a=b",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := way{fixture: &fixture{T: t}, tls: insecure(), addr: c.build(t, "127.0.0.1", upstream.Listener.Addr().String())}
			var got []string
			for _, s := range spellings {
				conn := w.dialFrom("127.0.0.2")
				_, err := io.WriteString(conn, "GET "+s+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
				require.NoError(t, err)
				a := readAnswerTo(t, conn, http.MethodGet)
				require.NoError(t, conn.Close())
				got = append(got, a.body)
			}
			require.Equal(t, c.want, got)
		})
	}
}
