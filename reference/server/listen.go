package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/invoicespec/brimline/reference/httpapi"
)

// ErrRemote says that an address is one that other machines can reach.
var ErrRemote = errors.New("not a loopback address")

// afterCut is how long Close waits for handlers whose connections it has cut.
const afterCut = 5 * time.Second

// listening is one HTTP server on one listener.
type listening struct {
	http     *http.Server
	listener net.Listener
	secure   bool
}

// Bounds of one HTTP/2 connection. Beyond loopback a client is expected to have
// a hundred requests in flight at most; more of them open more connections.
const (
	maxStreams    = 100
	maxFrame      = 16 << 10
	streamBuffer  = 64 << 10 // of a body that nobody has read yet
	clientsBuffer = 1 << 20  // of all such bodies of a connection
)

// newHTTPServer is an HTTP server with every bound set.
func newHTTPServer(ctx context.Context, h http.Handler, b httpapi.Bounds, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: b.Head,
		WriteTimeout:      b.Write,
		IdleTimeout:       b.Idle,
		MaxHeaderBytes:    b.Header,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          maxStreams,
			MaxReadFrameSize:              maxFrame,
			MaxReceiveBufferPerStream:     streamBuffer,
			MaxReceiveBufferPerConnection: clientsBuffer,
			SendPingTimeout:               b.Idle, // a peer that is silent is asked whether it is there
			PingTimeout:                   b.Head,
			WriteByteTimeout:              b.Idle,
		},
		ErrorLog:    slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
}

// listen opens address, which has to be on loopback unless remote, for so many
// connections at once. Those beyond wait until another has ended.
func listen(address string, remote bool, open int, h *http.Server) (*listening, error) {
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", address, err)
	}
	if !remote && !addr.IP.IsLoopback() {
		return nil, fmt.Errorf("address %q: %w", address, ErrRemote)
	}
	l, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &listening{http: h, listener: limit(l, open), secure: h.TLSConfig != nil}, nil
}

func (l *listening) url() string {
	scheme := "http://"
	if l.secure {
		scheme = "https://"
	}
	return scheme + l.listener.Addr().String()
}

func (l *listening) serve(failed chan<- error) {
	go func() {
		serve := l.http.Serve
		if l.secure {
			serve = func(on net.Listener) error { return l.http.ServeTLS(on, "", "") }
		}
		if err := serve(l.listener); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serve %s: %w", l.listener.Addr(), err)
		}
	}()
}

// Close stops the server. Readiness fails for as long as the transport's drain
// delay says, while everything is still served. Then nothing new is accepted,
// what a gate holds is let go, and requests in flight may end until ctx is done
// or the drain time is over.
// Those that then still run are cut off, which Close reports. Every entry that
// was due is in the log when it returns.
func (s *Server) Close(ctx context.Context) error {
	s.closeOnce.Do(func() { s.closeErr = s.close(ctx) })
	return s.closeErr
}

func (s *Server) close(ctx context.Context) error {
	s.draining.Store(true)
	if s.serving {
		select {
		case <-time.After(s.delay):
		case <-ctx.Done():
		}
	}
	ctx, cancel := context.WithTimeout(ctx, s.drain)
	defer cancel()
	if s.control != nil {
		s.control.Stop()
	}
	var errs []error
	for _, l := range []*listening{s.api, s.ctl, s.page} {
		if l == nil {
			continue
		}
		if err := l.http.Shutdown(ctx); err != nil {
			errs = append(errs, fmt.Errorf("requests in flight on %s were cut off: %w", l.listener.Addr(), err), l.http.Close())
		}
		l.listener.Close() // a server that never served does not own it
	}
	if s.abandon != nil {
		s.abandon()
	}
	if !s.quiet(afterCut) {
		errs = append(errs, errors.New("some work did not end after its request was cut off"))
	}
	// What the requests have left in the log gets as long again to be delivered.
	delivery, end := context.WithTimeout(context.WithoutCancel(ctx), s.drain)
	defer end()
	return errors.Join(append(errs, s.backing.close(delivery))...)
}

// quiet waits until no handler runs any more.
func (s *Server) quiet(limit time.Duration) bool {
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if s.handlers.Load() == 0 {
			return true
		}
	}
	return false
}
