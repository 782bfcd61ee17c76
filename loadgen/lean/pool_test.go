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
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/loadgen/lean"
)

func answers(text string) func(*net.TCPConn) {
	return each(func(c *net.TCPConn, _ *http.Request, _ int) bool {
		_, err := io.WriteString(c, text)
		return err == nil
	})
}

// TestKept: which answers leave a connection that the next request may use.
func TestKept(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		method string
		change func(*http.Request)
		kept   bool
	}{
		"a length":                 {answer: fine, kept: true},
		"no body":                  {answer: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", kept: true},
		"204":                      {answer: "HTTP/1.1 204 No Content\r\n\r\n", kept: true},
		"HEAD":                     {answer: "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", method: "HEAD", kept: true},
		"chunks":                   {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", kept: true},
		"1xx before it":            {answer: "HTTP/1.1 103 Early Hints\r\n\r\n" + fine, kept: true},
		"HTTP/1.0":                 {answer: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		"HTTP/1.0 that is kept":    {answer: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", kept: true},
		"closed by the server":     {answer: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"},
		"closed by us":             {answer: fine, change: func(r *http.Request) { r.Close = true }},
		"closed by a header":       {answer: fine, change: func(r *http.Request) { r.Header.Set("Connection", "close") }},
		"bytes nobody asked for":   {answer: fine + "x"},
		"a second answer":          {answer: fine + fine},
		"a body where none may be": {answer: "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok"},
	} {
		t.Run(name, func(t *testing.T) {
			s := listen(t, answers(c.answer))
			transport := &lean.Transport{}
			defer transport.CloseIdleConnections()
			for range 3 {
				r, err := http.NewRequestWithContext(t.Context(), c.method, s.url, nil)
				require.NoError(t, err)
				if c.change != nil {
					c.change(r)
				}
				resp, err := transport.RoundTrip(r)
				require.NoError(t, err)
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				require.LessOrEqual(t, len(body), 2, "of one answer")
			}
			want := int64(3)
			if c.kept {
				want = 1
			}
			require.Equal(t, want, transport.Opened())
			require.Equal(t, want, s.accepted.Load())
		})
	}
}

// TestSurplusIsNeverAnAnswer: bytes that come after an answer was read end the
// connection, whenever they come.
func TestSurplusIsNeverAnAnswer(t *testing.T) {
	more, there := make(chan struct{}), make(chan struct{})
	s := listen(t, each(func(c *net.TCPConn, r *http.Request, nth int) bool {
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(r.Header.Get("Name")), r.Header.Get("Name"))
		if r.Header.Get("Name") == "first" {
			<-more
			_, _ = io.WriteString(c, fine)
			close(there)
		}
		return true
	}))
	transport := &lean.Transport{}
	defer transport.CloseIdleConnections()
	say := func(name string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url, nil)
		require.NoError(t, err)
		r.Header.Set("Name", name)
		resp, err := transport.RoundTrip(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(body)
	}
	require.Equal(t, "first", say("first"))
	close(more)
	<-there
	require.Equal(t, "second", say("second"))
	require.EqualValues(t, 2, transport.Opened())
}

// TestStale: a connection that was closed meanwhile is not used; one that breaks
// under a request is an error of a kind of its own, and nothing is sent twice.
func TestStale(t *testing.T) {
	t.Run("seen before", func(t *testing.T) {
		closed := make(chan struct{})
		s := listen(t, func(c *net.TCPConn) {
			if _, err := c.Read(make([]byte, 1000)); err == nil {
				_, _ = io.WriteString(c, fine)
			}
			_ = c.Close()
			closed <- struct{}{}
		})
		transport := &lean.Transport{}
		defer transport.CloseIdleConnections()
		for range 3 {
			_, _, err := ask(t.Context(), t, transport, "GET", s.url, nil)
			require.NoError(t, err)
			<-closed
		}
		require.EqualValues(t, 3, transport.Opened())
	})
	t.Run("broken under a request", func(t *testing.T) {
		var requests atomic.Int64
		s := listen(t, each(func(c *net.TCPConn, _ *http.Request, nth int) bool {
			requests.Add(1)
			if nth == 1 {
				_, _ = io.WriteString(c, fine)
			}
			return nth == 1
		}))
		transport := &lean.Transport{}
		defer transport.CloseIdleConnections()
		_, _, err := ask(t.Context(), t, transport, "GET", s.url, nil)
		require.NoError(t, err)
		_, _, err = ask(t.Context(), t, transport, "GET", s.url, nil)
		require.ErrorIs(t, err, lean.ErrStale)
		require.EqualValues(t, 2, requests.Load())
		require.EqualValues(t, 1, s.accepted.Load())
	})
	t.Run("a new connection that is closed is not stale", func(t *testing.T) {
		s := listen(t, each(func(*net.TCPConn, *http.Request, int) bool { return false }))
		_, _, err := ask(t.Context(), t, &lean.Transport{}, "GET", s.url, nil)
		require.ErrorIs(t, err, io.EOF)
		require.NotErrorIs(t, err, lean.ErrStale)
	})
}

// TestLastUsedFirst: and what is not read to its end is closed.
func TestLastUsedFirst(t *testing.T) {
	s := listen(t, answers(fine))
	transport := &lean.Transport{}
	defer transport.CloseIdleConnections()
	var used []net.Conn
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		require.Equal(t, i.Reused, i.WasIdle)
		used = append(used, i.Conn)
	}})
	open := func() *http.Response {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
		require.NoError(t, err)
		resp, err := transport.RoundTrip(r)
		require.NoError(t, err)
		return resp
	}
	finish := func(r *http.Response) {
		_, err := io.Copy(io.Discard, r.Body)
		require.NoError(t, err)
	}
	a, b := open(), open()
	finish(a)
	finish(b)
	finish(open())
	require.Same(t, used[1], used[2], "b was given back last")
	a, b = open(), open()
	require.Same(t, used[0], used[4])
	require.NoError(t, a.Body.Close())
	_, err := a.Body.Read(make([]byte, 1))
	require.ErrorIs(t, err, http.ErrBodyReadAfterClose)
	finish(b)
	finish(open())
	require.EqualValues(t, 2, transport.Opened())
	finish(open())
	require.EqualValues(t, 2, transport.Opened(), "the one whose body was not read is closed, the other is left")
}

// TestConnectionsAreBounded: beyond the bound an idle connection gives way, or
// the request is refused.
func TestConnectionsAreBounded(t *testing.T) {
	one, other := listen(t, answers(fine)), listen(t, answers(fine))
	transport := &lean.Transport{Connections: 2}
	defer transport.CloseIdleConnections()
	open := func(url string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		return transport.RoundTrip(r)
	}
	a, err := open(one.url)
	require.NoError(t, err)
	b, err := open(one.url)
	require.NoError(t, err)
	_, err = open(other.url)
	require.ErrorIs(t, err, lean.ErrConnections)
	_, err = io.Copy(io.Discard, b.Body)
	require.NoError(t, err)
	c, err := open(other.url)
	require.NoError(t, err, "in place of b's")
	for _, r := range []*http.Response{a, c} {
		_, err = io.Copy(io.Discard, r.Body)
		require.NoError(t, err)
	}
	require.EqualValues(t, 3, transport.Opened())
	_, _, err = ask(t.Context(), t, transport, "GET", "http://127.0.0.1:1/", nil)
	require.Error(t, err)
	_, _, err = ask(t.Context(), t, transport, "GET", one.url, nil)
	require.NoError(t, err, "a connection that could not be opened takes no place")
}

// TestAddresses: a request comes from the address that its context names, and
// connections are kept apart by it.
func TestAddresses(t *testing.T) {
	var mu sync.Mutex
	from := map[string]int{}
	s := listen(t, each(func(c *net.TCPConn, r *http.Request, _ int) bool {
		mu.Lock()
		from[strings.Split(c.RemoteAddr().String(), ":")[0]]++
		mu.Unlock()
		_, err := io.WriteString(c, fine)
		return err == nil
	}))
	transport := &lean.Transport{}
	defer transport.CloseIdleConnections()
	for range 3 {
		for _, text := range []string{"127.0.0.1", "127.0.0.2", "127.0.77.1"} {
			a := netip.MustParseAddr(text)
			_, _, err := ask(context.WithValue(t.Context(), lean.From{}, a), t, transport, "GET", s.url, nil)
			require.NoError(t, err)
		}
	}
	require.Equal(t, map[string]int{"127.0.0.1": 3, "127.0.0.2": 3, "127.0.77.1": 3}, from)
	require.EqualValues(t, 3, transport.Opened())
}

// TestEnd: a request ends with its context, by time or by hand, wherever it is.
func TestEnd(t *testing.T) {
	for name, answer := range map[string]string{
		"before the answer":  "",
		"within the head":    "HTTP/1.1 200 OK\r\nCont",
		"within the body":    "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok",
		"within a chunk":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\nok",
		"before the last CR": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			said := make(chan struct{}, 1)
			s := listen(t, each(func(c *net.TCPConn, _ *http.Request, nth int) bool {
				_, _ = io.WriteString(c, answer)
				select {
				case said <- struct{}{}:
				default:
				}
				_, _ = io.Copy(io.Discard, c)
				return false
			}))
			transport := &lean.Transport{}
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-said; cancel() }()
			_, _, err := ask(ctx, t, transport, "GET", s.url, nil)
			require.ErrorIs(t, err, context.Canceled)

			ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, _, err = ask(ctx, t, transport, "GET", s.url, nil)
			require.Equal(t, "timeout", kind(err), err)
			_, _, err = ask(deadline{t.Context(), time.Now().Add(20 * time.Millisecond)}, t, transport, "GET", s.url, nil)
			require.Equal(t, "timeout", kind(err), "a context that only names its deadline: %v", err)
		})
	}
	t.Run("before it began", func(t *testing.T) {
		s := listen(t, answers(fine))
		transport := &lean.Transport{}
		defer transport.CloseIdleConnections()
		_, _, err := ask(t.Context(), t, transport, "GET", s.url, nil)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, err = ask(ctx, t, transport, "GET", s.url, nil)
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("a kept connection outlives a context that is over", func(t *testing.T) {
		s := listen(t, answers(fine))
		transport := &lean.Transport{}
		defer transport.CloseIdleConnections()
		for range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			_, _, err := ask(ctx, t, transport, "GET", s.url, nil)
			require.NoError(t, err)
			defer cancel()
		}
		require.EqualValues(t, 1, transport.Opened())
		ctx, cancel := context.WithCancel(t.Context())
		_, _, err := ask(ctx, t, transport, "GET", s.url, nil)
		require.NoError(t, err)
		cancel()
		_, _, err = ask(t.Context(), t, transport, "GET", s.url, nil)
		require.NoError(t, err, "the connection may have been cut, so it is not used")
		require.EqualValues(t, 2, transport.Opened())
	})
}

// deadline is a context that does nothing about its deadline.
type deadline struct {
	context.Context
	at time.Time
}

func (d deadline) Deadline() (time.Time, bool) { return d.at, true }

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
