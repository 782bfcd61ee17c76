// Package lean is a round tripper for HTTP/1.1 over plain TCP that does little
// and does it at once: connections are kept, the one used last is taken first,
// head and small body leave in one write, and no goroutine belongs to a
// connection. It costs a load generator a part of what net/http's transport does.
//
// Most callers fill a [Transport] and give it to whoever takes an
// http.RoundTripper.
//
// Heads of the usual form are read here, in one pass; all others, and every body
// but one of a stated length, by net/http's own ReadResponse on the same bytes.
// So an answer means the same as over net/http, with these differences:
//
//   - Nothing is ever sent twice. A kept connection that turns out to be closed
//     is an error, [ErrStale]; such are rare, since a connection is looked at
//     before it is used again.
//   - 101 Switching Protocols is refused: [ErrSwitched].
//   - No proxy, cookie, redirect, compression or Expect: 100-continue; neither TLS
//     nor HTTP/2; no request body of unknown length.
//
// The deadline of a request's context is that of the connection; the context
// itself need not enforce it.
package lean

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Bounds of a transport.
const (
	DefaultConnections = 100              // the most that are open at once, unless a transport says otherwise
	MaxHead            = 64 << 10         // bytes of an answer's head, those of 1xx answers before it included
	MaxIdle            = 30 * time.Second // a connection that was not used for so long is not used again
)

// Errors of a kind of their own.
var (
	// ErrStale says that a kept connection broke before a byte of the answer came.
	// The request may have been read, so it is not sent again.
	ErrStale = errors.New("the kept connection was closed")
	// ErrSwitched says that the server wants to leave HTTP.
	ErrSwitched = errors.New("the answer is 101 Switching Protocols, which is not spoken")
	// ErrConnections says that as many connections as may be open are in use.
	ErrConnections = errors.New("every connection is in use")
)

// From is a key of a request's context: the value is a netip.Addr of this
// machine, from which the request is to come. Connections are kept apart by it.
type From struct{}

// Transport carries out http.RoundTripper. It reports GotConn, WroteRequest and
// GotFirstResponseByte to the client trace of a request's context. Whoever reads a
// body to its end, or closes it, gives its connection back; nothing of a body is
// read before it is asked for. The zero value is ready; it is safe for concurrent
// use, and not to be copied.
type Transport struct {
	// Connections is how many may be open at once; 0: [DefaultConnections].
	Connections int
	// Dial opens one, from an address of this machine unless that is the zero
	// value. Nil: over TCP.
	Dial func(ctx context.Context, from netip.Addr, address string) (net.Conn, error)

	mu     sync.Mutex
	idle   []*conn // the one used last is at the end
	open   int
	opened int64
}

// RoundTrip sends a request and reads the head of its answer.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	w := where{address: r.URL.Host}
	w.from, _ = ctx.Value(From{}).(netip.Addr)
	if err := check(r); err != nil {
		closeBody(r)
		return nil, err
	}
	c, reused, err := t.take(ctx, w)
	if err != nil {
		closeBody(r)
		return nil, err
	}
	trace := httptrace.ContextClientTrace(ctx)
	if trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{Conn: c.Conn, Reused: reused, WasIdle: reused})
	}
	unsent := c.send(r)
	if trace != nil && trace.WroteRequest != nil {
		trace.WroteRequest(httptrace.WroteRequestInfo{Err: unsent})
	}
	if errors.Is(unsent, errBody) {
		t.drop(c)
		return nil, unsent
	}
	// A server may answer without having read everything, so an answer is looked
	// for even if the request could not be written.
	a, body, err := c.answer(r, trace)
	if err != nil {
		t.drop(c)
		if unsent != nil {
			err = unsent
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case c.failed() != nil:
			return nil, c.failed()
		case reused && !c.heard && !isTimeout(err):
			return nil, fmt.Errorf("%w: %w", ErrStale, err)
		}
		return nil, err
	}
	body.t, body.c, body.r = t, c, r
	body.keep = unsent == nil && !a.Close && !r.Close && !closes(r.Header)
	if a.Body == http.NoBody {
		body.end(nil)
	} else {
		a.Body = body
	}
	return a, nil
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}

// Opened is how many connections have been opened so far.
func (t *Transport) Opened() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.opened
}

// CloseIdleConnections closes those that are kept. Those in use are kept when
// they are given back.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	idle := t.idle
	t.idle = nil
	t.open -= len(idle)
	t.mu.Unlock()
	for _, c := range idle {
		c.close()
	}
}

// check refuses, by name, what is not sent.
func check(r *http.Request) error {
	switch {
	case r.URL == nil || r.URL.Host == "":
		return errors.New("the request has no host")
	case r.URL.Scheme != "http":
		return fmt.Errorf("the scheme %q is not spoken; accepted: http", r.URL.Scheme)
	case r.Method != "" && !httpguts.ValidHeaderFieldName(r.Method):
		return fmt.Errorf("%q is no method", r.Method)
	case r.ContentLength < 0:
		return errors.New("a body of unknown length is not sent")
	case strings.EqualFold(r.Method, http.MethodConnect):
		return errors.New("CONNECT is not sent")
	case len(r.TransferEncoding) > 0 || len(r.Trailer) > 0:
		return errors.New("neither a transfer encoding nor a trailer is sent")
	case strings.Contains(host(r), "%") || !httpguts.ValidHostHeader(host(r)):
		return fmt.Errorf("%q is no host that can be sent", host(r))
	}
	if strings.ContainsFunc(r.URL.RequestURI(), func(b rune) bool { return b <= ' ' || b == 0x7f }) {
		return fmt.Errorf("%q cannot be sent", r.URL.RequestURI())
	}
	for name, values := range r.Header {
		if !httpguts.ValidHeaderFieldName(name) {
			return fmt.Errorf("%q is no name of a header", name)
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return fmt.Errorf("the value of header %s cannot be sent", name) // it may be a secret
			}
		}
	}
	return nil
}

func host(r *http.Request) string {
	if r.Host != "" {
		return r.Host
	}
	return r.URL.Host
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}
