package server

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/invoicespec/brimline/reference/wiring"
)

// stream is an HTTP/2 connection of virtual time with one request on it.
type stream struct {
	net.Conn
	*http2.Framer
	ended chan struct{} // the server ended the connection

	told, whole time.Time // when the answer's body was there, and when its end
}

// begin begins HTTP/2, sends the valid operation's head and as much of a body as
// is said. What the server writes is read and thrown away, unless deaf.
func (p *piped) begin(window uint32, body string, deaf bool) *stream {
	p.Helper()
	c := p.dial()
	s := &stream{Conn: c, Framer: http2.NewFramer(c, c), ended: make(chan struct{})}
	if !deaf {
		go func() {
			defer close(s.ended)
			s.answer()
		}()
	}
	_, err := io.WriteString(c, http2.ClientPreface)
	require.NoError(p, err)
	require.NoError(p, s.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}))
	require.NoError(p, s.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: p.fields(), EndHeaders: true}))
	if body != "" {
		require.NoError(p, s.WriteData(1, len(body) == len(pipedInvoice), []byte(body)))
	}
	return s
}

func (p *piped) fields() []byte {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, f := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":authority", "x"}, {":path", "/v1/invoice/calculate"}, {"authorization", "Bearer " + p.key},
	} {
		e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	return block.Bytes()
}

// answer reads until the connection ends and says what has to be said to pings.
func (s *stream) answer() {
	own := http2.NewFramer(s.Conn, nil) // a framer is for one goroutine
	for {
		frame, err := s.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.PingFrame:
			if !frame.IsAck() {
				own.WritePing(true, frame.Data)
			}
		case *http2.DataFrame:
			if len(frame.Data()) > 0 {
				s.told = time.Now()
			}
			if frame.StreamEnded() {
				s.whole = time.Now()
			}
		}
	}
}

func TestSlowClientsOverHTTP2(t *testing.T) {
	b := wiring.DefaultBounds()
	const wide, shut = 1 << 16, 0
	t.Run("a body that stalls", func(t *testing.T) {
		inVirtualTime(t, atOnce, func(p *piped) {
			p.begin(wide, "{", false)
			p.heldFor(b.Upload)
			require.Equal(t, http.StatusUnprocessableEntity, p.log.entries[0].Status)
		})
	})
	t.Run("a body that stalls and that nobody wants", func(t *testing.T) {
		inVirtualTime(t, atOnce, func(p *piped) {
			p.key = "isk_free_0123456789abcdef"
			began := time.Now()
			s := p.begin(wide, "{", false)
			time.Sleep(time.Minute)
			synctest.Wait()
			require.Equal(t, http.StatusUnauthorized, p.log.entries[0].Status)
			require.Equal(t, began, s.told, "it is told at once")
			require.Equal(t, began.Add(b.Linger), s.whole)
		})
	})
	t.Run("a body that trickles", func(t *testing.T) {
		inVirtualTime(t, atOnce, func(p *piped) {
			s := p.begin(wide, "{", false)
			for range 59 {
				time.Sleep(time.Second)
				require.NoError(t, s.WriteData(1, false, []byte(" ")))
			}
			require.True(t, p.held())
			time.Sleep(time.Second)
			require.False(t, p.held(), "each byte is no new lease")
		})
	})
	t.Run("an answer that nobody reads", func(t *testing.T) {
		inVirtualTime(t, atOnce, func(p *piped) {
			p.begin(shut, pipedInvoice, false)
			p.heldFor(b.Write)
		})
	})
	t.Run("a peer that takes no byte", func(t *testing.T) {
		inVirtualTime(t, atOnce, func(p *piped) {
			p.begin(wide, pipedInvoice, true)
			p.heldFor(b.Idle)
		})
	})
	t.Run("a head that stalls", func(t *testing.T) {
		inVirtualTime(t, atOnce, func(p *piped) {
			c := p.dial()
			s := &stream{Conn: c, Framer: http2.NewFramer(c, c), ended: make(chan struct{})}
			began := time.Now()
			go func() {
				defer close(s.ended)
				s.answer()
			}()
			_, err := io.WriteString(c, http2.ClientPreface)
			require.NoError(t, err)
			require.NoError(t, s.WriteSettings())
			require.NoError(t, s.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: p.fields()[:10]}))
			<-s.ended
			require.LessOrEqual(t, time.Since(began), b.Idle+b.Head, "it is an idle connection until a request is whole")
			require.Zero(t, p.log.count(), "no handler was entered")
		})
	})
	t.Run("a peer that is gone", func(t *testing.T) {
		long := b
		long.Write, long.Engine = 3*time.Hour, 2*time.Hour
		withBounds(t, long, workFor(time.Hour), func(p *piped) {
			s := p.begin(wide, pipedInvoice, true)
			go io.Copy(io.Discard, s.Conn) // its kernel still takes what comes
			p.heldFor(b.Idle + b.Head)     // silent for the one, no answer to a ping for the other
			require.Equal(t, 499, p.log.entries[0].Status)
		})
	})
	t.Run("a peer that is there", func(t *testing.T) {
		long := b
		long.Write, long.Engine = 3*time.Hour, 2*time.Hour
		withBounds(t, long, workFor(time.Hour), func(p *piped) {
			p.begin(wide, pipedInvoice, false)
			p.heldFor(time.Hour)
			require.Equal(t, http.StatusOK, p.log.entries[0].Status)
		})
	})
	t.Run("a reset, while the engine cleans up", func(t *testing.T) {
		tidy := cleanUpFor(2 * time.Minute)
		inVirtualTime(t, tidy, func(p *piped) {
			s := p.begin(wide, pipedInvoice, false)
			time.Sleep(time.Second)
			require.NoError(t, s.WriteRSTStream(1, http2.ErrCodeCancel))
			p.heldFor(2 * time.Minute)
		})
	})
}

// TestHandshakeThatStalls: who begins no TLS is cut off as one that sends no head.
func TestHandshakeThatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		h := newHTTPServer(t.Context(), http.NotFoundHandler(), wiring.DefaultBounds(), slog.New(slog.DiscardHandler))
		h.TLSConfig = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, io.EOF }}
		go h.ServeTLS(p, "", "")
		c := p.dial()
		began := time.Now()
		_, err := io.Copy(io.Discard, c)
		require.NoError(t, err)
		require.Equal(t, wiring.DefaultBounds().Head, time.Since(began))
		require.NoError(t, h.Close())
	})
}
