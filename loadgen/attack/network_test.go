package attack_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/invoicespec/brimline/loadgen/arrival"
	"github.com/invoicespec/brimline/loadgen/attack"
	"github.com/invoicespec/brimline/loadgen/manners"
	"github.com/invoicespec/brimline/reports/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// over runs a moment of load over the network: forty requests, if the machine is
// not too slow for them.
func over(ctx context.Context, t *testing.T, change func(*attack.Site)) (record.Run, record.RunPlan) {
	t.Helper()
	o := site()
	change(&o)
	const d = 200 * time.Millisecond
	list := members(arrival.Constant(perSecond(t, 50)), 4, d)
	a, err := attack.New(attack.Config{Members: list, Duration: d, Seed: seed, Site: o})
	require.NoError(t, err)
	r, err := a.Run(ctx)
	require.NoError(t, err)
	r.Schema = record.RunSchema
	require.NoError(t, r.Check())
	return r, r.Plans[0]
}

// raw is a server that reads a request, counts it and then does as it is told.
type raw struct {
	url  string
	read atomic.Int64
}

func listen(t *testing.T, serve func(c net.Conn, r *http.Request, nth int64)) *raw {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &raw{url: "http://" + l.Addr().String()}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for nth := int64(1); ; nth++ {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					io.Copy(io.Discard, r.Body)
					s.read.Add(1)
					serve(c, r, nth)
				}
			}()
		}
	}()
	return s
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// TestNothingIsSentTwice: net/http would send a request again, without a word,
// that a kept connection took and then died on.
func TestNothingIsSentTwice(t *testing.T) {
	for name, change := range map[string]func(*attack.Request){
		"GET":                     func(r *attack.Request) { r.Method, r.Body = "GET", nil },
		"DELETE":                  func(r *attack.Request) { r.Method, r.Body = "DELETE", nil },
		"POST":                    func(*attack.Request) {},
		"POST, said to be safe":   func(r *attack.Request) { r.Header = http.Header{"Idempotency-Key": {"1"}} },
		"PUT without a body":      func(r *attack.Request) { r.Method, r.Body = "PUT", nil },
		"OPTIONS without a body":  func(r *attack.Request) { r.Method, r.Body = "OPTIONS", nil },
		"a method of their own":   func(r *attack.Request) { r.Method = "BREW" },
		"a redirect is an answer": func(r *attack.Request) { r.Expect = 307 },
	} {
		t.Run(name, func(t *testing.T) {
			s := listen(t, func(c net.Conn, r *http.Request, nth int64) {
				require.NotContains(t, r.RequestURI, "#")
				require.Empty(t, r.Header.Get("X-Vegeta-Seq"))
				switch {
				case strings.HasPrefix(name, "a redirect"):
					fmt.Fprintf(c, "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://%s/other\r\nContent-Length: 0\r\n\r\n", c.LocalAddr())
				case nth == 1:
					io.WriteString(c, ok)
				default:
					c.Close()
				}
			})
			r, p := over(t.Context(), t, func(o *attack.Site) { alter(o, change); o.BaseURLs = []string{s.url} })
			require.Positive(t, p.Sent)
			require.Equal(t, p.Sent, s.read.Load(), "requests that the server has read")
			require.Equal(t, r.Generator.Results, r.Generator.Attempts)
			require.Equal(t, p.Sent, p.Admitted+failed(p))
			if !strings.HasPrefix(name, "a redirect") {
				require.Positive(t, failed(p))
			}
		})
	}
}

func failed(p record.RunPlan) (n int64) {
	for _, c := range p.TransportErrors {
		n += c.N
	}
	return n
}

// TestErrorsAreGroupedByKind: whatever a server does, it comes out as one kind.
func TestErrorsAreGroupedByKind(t *testing.T) {
	answer := func(text string) func(net.Conn, *http.Request, int64) {
		return func(c net.Conn, _ *http.Request, _ int64) {
			io.WriteString(c, text)
			c.Close()
		}
	}
	for name, c := range map[string]struct {
		serve func(net.Conn, *http.Request, int64)
		kind  string
	}{
		"no answer":   {answer(""), "closed"},
		"half a head": {answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"), "closed"},
		"half a body": {answer("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok"), "closed"},
		"no HTTP":     {answer("220 smtp.example ESMTP\r\n"), "other"},
		"a huge body": {answer("HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("x", 1<<20+1)), "body too long"},
		"a reset":     {func(c net.Conn, _ *http.Request, _ int64) { c.(*net.TCPConn).SetLinger(0); c.Close() }, "reset"},
	} {
		t.Run(name, func(t *testing.T) {
			s := listen(t, c.serve)
			_, p := over(t.Context(), t, func(o *attack.Site) { o.BaseURLs = []string{s.url} })
			require.Equal(t, []record.Count{{Name: c.kind, N: p.Sent}}, p.TransportErrors)
			require.Equal(t, p.Sent, s.read.Load())
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		url := "http://" + l.Addr().String()
		l.Close()
		r, p := over(t.Context(), t, func(o *attack.Site) { o.BaseURLs = []string{url} })
		require.Equal(t, []record.Count{{Name: "connect", N: p.Sent}}, p.TransportErrors)
		require.Zero(t, r.Generator.Attempts)
		require.Zero(t, r.Generator.Connections)
	})
	t.Run("a certificate nobody knows", func(t *testing.T) {
		s := httptest.NewUnstartedServer(http.NotFoundHandler())
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.StartTLS()
		defer s.Close()
		_, p := over(t.Context(), t, func(o *attack.Site) { o.BaseURLs = []string{s.URL} })
		require.Equal(t, []record.Count{{Name: "tls", N: p.Sent}}, p.TransportErrors)
	})
	t.Run("no answer by the time of the stop", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		hang := make(chan struct{})
		defer close(hang)
		s := listen(t, func(_ net.Conn, _ *http.Request, nth int64) { stop(); <-hang })
		r, p := over(ctx, t, func(o *attack.Site) { o.BaseURLs = []string{s.url} })
		require.True(t, r.Interrupted)
		require.Equal(t, []record.Count{{Name: "cut off", N: p.Sent}}, p.TransportErrors)
		require.Positive(t, p.Unsent)
	})
}

// TestTheHeadCountsWithoutItsBody: a 429 whose body is cut still tells a user who
// obeys to wait, and nobody is accused by it.
func TestTheHeadCountsWithoutItsBody(t *testing.T) {
	s := listen(t, func(c net.Conn, _ *http.Request, _ int64) {
		io.WriteString(c, "HTTP/1.1 429 Too Many Requests\r\nRateLimit-Limit: 10\r\nRetry-After: 60\r\nContent-Length: 200\r\n\r\n{")
		c.Close()
	})
	o := site()
	o.BaseURLs = []string{s.url}
	const d = 200 * time.Millisecond
	list := members(arrival.Constant(perSecond(t, 50)), 4, d)
	for i := range list {
		list[i].On429 = manners.Obey()
	}
	a, err := attack.New(attack.Config{Members: list, Duration: d, Seed: seed, Site: o})
	require.NoError(t, err)
	r, err := a.Run(t.Context())
	require.NoError(t, err)
	p := r.Plans[0]
	require.Equal(t, p.Sent, s.read.Load())
	require.Equal(t, []record.Count{{Name: "closed", N: p.Sent}}, p.TransportErrors)
	require.Positive(t, p.HeldOff)
	require.Zero(t, p.RateJudged.Sum())
}

// TestConnectionsAreKept: as many as requests were ever in flight, and no more.
func TestConnectionsAreKept(t *testing.T) {
	s := listen(t, func(c net.Conn, _ *http.Request, _ int64) { io.WriteString(c, ok) })
	r, p := over(t.Context(), t, func(o *attack.Site) { o.BaseURLs = []string{s.url} })
	require.Equal(t, p.Sent, p.Admitted)
	require.LessOrEqual(t, r.Generator.Connections, r.Generator.Workers)
	require.Less(t, r.Generator.Connections, p.Sent)
	require.Positive(t, r.Generator.CPUSeconds)
}
