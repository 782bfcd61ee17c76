package lean_test

import (
	"context"
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
