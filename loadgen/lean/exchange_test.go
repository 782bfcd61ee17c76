package lean_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/loadgen/lean"
)

// TestLargeBodies: one that is not small is sent while the answer is waited for.
func TestLargeBodies(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789"), 1<<20)
	t.Run("whole", func(t *testing.T) {
		s := listen(t, each(func(c *net.TCPConn, r *http.Request, _ int) bool {
			_, err := io.WriteString(c, fine)
			return err == nil && r.ContentLength == int64(len(large))
		}))
		transport := &lean.Transport{}
		defer transport.CloseIdleConnections()
		for range 3 {
			_, body, err := ask(t.Context(), t, transport, "POST", s.url, bytes.NewReader(large))
			require.NoError(t, err)
			require.Equal(t, "ok", body)
		}
	})
	for name, hold := range map[string]bool{"answered before it is read": true, "answered and closed before it is read": false} {
		t.Run(name, func(t *testing.T) {
			over := make(chan struct{})
			s := listen(t, func(c *net.TCPConn) {
				_, _ = c.Read(make([]byte, 100))
				_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
				if hold {
					<-over
				} else { // a server that wants its answer to be read does not reset
					_ = c.CloseWrite()
					_, _ = io.Copy(io.Discard, c)
				}
			})
			transport := &lean.Transport{}
			defer transport.CloseIdleConnections()
			resp, body, err := ask(t.Context(), t, transport, "POST", s.url, bytes.NewReader(large))
			close(over)
			require.NoError(t, err)
			require.Equal(t, 413, resp.StatusCode)
			require.Equal(t, "no", body)
		})
	}
	t.Run("not what it says", func(t *testing.T) {
		s := listen(t, answers(fine))
		for name, c := range map[string]struct {
			length int64
			body   string
		}{
			"short":           {10, "short"},
			"long":            {3, "longer"},
			"large and short": {1 << 20, strings.Repeat("x", 1<<19)},
			"large and long":  {1 << 19, strings.Repeat("x", 1<<20)},
		} {
			r, err := http.NewRequestWithContext(t.Context(), "POST", s.url, io.NopCloser(strings.NewReader(c.body)))
			require.NoError(t, err)
			r.ContentLength = c.length
			_, err = (&lean.Transport{}).RoundTrip(r)
			require.ErrorContains(t, err, "the request's body", name)
		}
	})
}

// TestSpelling: what leaves is what was asked for, in one write.
func TestSpelling(t *testing.T) {
	var wrote []string
	transport := &lean.Transport{Dial: func(context.Context, netip.Addr, string) (net.Conn, error) {
		return &listener{script: script{parts: [2][]byte{[]byte(fine)}}, wrote: &wrote}, nil
	}}
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://server:81/v1/%69nvoice?a=b", strings.NewReader("{}"))
	require.NoError(t, err)
	r.Header = http.Header{"X-b": {"1", "2"}, "a": {"3"}, "Content-Length": {"7"}, "Host": {"elsewhere"}}
	_, err = transport.RoundTrip(r)
	require.NoError(t, err)
	require.Equal(t, []string{"POST /v1/%69nvoice?a=b HTTP/1.1\r\nHost: server:81\r\nX-b: 1\r\nX-b: 2\r\na: 3\r\nContent-Length: 2\r\n\r\n{}"}, wrote)

	for name, change := range map[string]func(*http.Request){
		"a value that ends its line": func(r *http.Request) { r.Header.Set("X", "a\r\nB: c") },
		"a name that is none":        func(r *http.Request) { r.Header["X: y"] = []string{"z"} },
		"a host that is none":        func(r *http.Request) { r.Host = "a b" },
		"a method that is none":      func(r *http.Request) { r.Method = "GET /" },
		"CONNECT":                    func(r *http.Request) { r.Method = "CONNECT" },
		"TLS":                        func(r *http.Request) { r.URL.Scheme = "https" },
		"a path with a space":        func(r *http.Request) { r.URL.Opaque = "/a b" },
		"an unknown length":          func(r *http.Request) { r.ContentLength = -1 },
		"no host":                    func(r *http.Request) { r.URL.Host = "" },
		"chunks":                     func(r *http.Request) { r.TransferEncoding = []string{"chunked"} },
	} {
		r := r.Clone(t.Context())
		r.Body = io.NopCloser(strings.NewReader("{}"))
		r.Header = http.Header{}
		change(r)
		_, err := transport.RoundTrip(r)
		require.Error(t, err, name)
		require.Len(t, wrote, 1, name)
	}
}

// listener is a script that keeps what is written.
type listener struct {
	script
	wrote *[]string
}

func (l *listener) Write(p []byte) (int, error) {
	*l.wrote = append(*l.wrote, string(p))
	return len(p), nil
}

// TestTrace: as net/http's transport, in its order.
func TestTrace(t *testing.T) {
	s := listen(t, answers(fine))
	transport := &lean.Transport{}
	defer transport.CloseIdleConnections()
	var events []string
	note := func(e string) { events = append(events, e) }
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		GotConn:              func(i httptrace.GotConnInfo) { note(fmt.Sprint("connection, reused ", i.Reused)) },
		WroteRequest:         func(i httptrace.WroteRequestInfo) { require.NoError(t, i.Err); note("written") },
		GotFirstResponseByte: func() { note("first byte") },
	})
	for range 2 {
		_, _, err := ask(ctx, t, transport, "GET", s.url, nil)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"connection, reused false", "written", "first byte", "connection, reused true", "written", "first byte"}, events)
}

// TestManyAtOnce is for the race detector.
func TestManyAtOnce(t *testing.T) {
	s := listen(t, answers(fine))
	transport := &lean.Transport{Connections: 8}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 200 {
				if i == 0 && n == 150 {
					cancel()
				}
				_, body, err := ask(ctx, t, transport, "POST", s.url, strings.NewReader("{}"))
				if err == nil {
					require.Equal(t, "ok", body)
				} else if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, transport.Opened(), int64(8))
}

// again is a server without a network that answers every request alike.
type again struct {
	script
	answer []byte
}

func (a *again) Write(p []byte) (int, error) {
	a.parts[0] = a.answer
	return len(p), nil
}

// usual is an answer as a limiter gives it.
const usual = "HTTP/1.1 200 OK\r\nRateLimit-Limit: 10\r\nRateLimit-Remaining: 3\r\nRateLimit-Reset: 60\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\nok"

func exchange(t testing.TB) func() {
	transport := &lean.Transport{Dial: func(context.Context, netip.Addr, string) (net.Conn, error) {
		return &again{answer: []byte(usual)}, nil
	}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server/", nil)
	require.NoError(t, err)
	r.Header = http.Header{"Authorization": {"Bearer x"}, "User-Agent": {"test"}}
	buffer := make([]byte, 100)
	return func() {
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = resp.Body.Read(buffer)
		}
	}
}

// TestAllocations: an answer is its response, its head as one text, the list of
// its values and the map of its names.
func TestAllocations(t *testing.T) {
	require.LessOrEqual(t, testing.AllocsPerRun(100, exchange(t)), 6.0)
}

func BenchmarkExchange(b *testing.B) {
	once := exchange(b)
	b.ReportAllocs()
	for b.Loop() {
		once()
	}
}
