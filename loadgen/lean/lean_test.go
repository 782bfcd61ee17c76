package lean_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/invoicespec/brimline/loadgen/lean"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// raw is a TCP server that hands out its connections.
type raw struct {
	url      string
	accepted atomic.Int64
}

// listen serves every connection by a function; the connection is closed after it.
func listen(t *testing.T, serve func(c *net.TCPConn)) *raw {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &raw{url: "http://" + l.Addr().String() + "/path?q=1"}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.accepted.Add(1)
			all.Go(func() {
				defer c.Close()
				serve(c.(*net.TCPConn))
			})
		}
	})
	return s
}

// each serves every request of a connection, once it was read, by a function;
// false: the connection is closed.
func each(serve func(c *net.TCPConn, r *http.Request, nth int) bool) func(*net.TCPConn) {
	return func(c *net.TCPConn) {
		in := bufio.NewReader(c)
		for nth := 1; ; nth++ {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, r.Body); err != nil || !serve(c, r, nth) {
				return
			}
		}
	}
}

// ask sends one request and reads its answer.
func ask(ctx context.Context, t *testing.T, transport http.RoundTripper, method, url string, body io.Reader) (*http.Response, string, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	require.NoError(t, err)
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp, string(text), err
}

func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// TestOddities: over either transport an answer is the same answer, or an error
// of the same kind.
func TestOddities(t *testing.T) {
	for _, o := range oddities() {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			s := listen(t, each(func(c *net.TCPConn, _ *http.Request, _ int) bool {
				_, _ = io.WriteString(c, o.answer)
				switch o.end {
				case resets:
					_ = c.SetLinger(0)
				case waits:
					_, _ = io.Copy(io.Discard, c)
				}
				return false
			}))
			standard := &http.Transport{DisableCompression: true, MaxResponseHeaderBytes: lean.MaxHead}
			defer standard.CloseIdleConnections()
			ours := &lean.Transport{}
			defer ours.CloseIdleConnections()
			exchange := func(by http.RoundTripper) (*http.Response, string, error) {
				method := o.method
				if method == "" {
					method = http.MethodGet
				}
				patience := 10 * time.Second
				if o.end == waits {
					patience = time.Second / 2
				}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				return ask(ctx, t, by, method, s.url, nil)
			}
			want, wantBody, wantErr := exchange(standard)
			got, body, err := exchange(ours)
			if o.differ != "" {
				require.ErrorIs(t, err, lean.ErrSwitched)
				return
			}
			require.Equal(t, kind(wantErr), kind(err), "%v, %v", wantErr, err)
			require.Equal(t, wantBody, body)
			require.Equal(t, want == nil, got == nil)
			if want == nil {
				return
			}
			for _, r := range []*http.Response{want, got} {
				r.Body, r.Request = nil, nil
			}
			require.Equal(t, want, got)
		})
	}
}
