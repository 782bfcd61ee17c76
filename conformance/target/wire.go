package target

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Bounds of one conversation.
const (
	maxAnswer  = 2 << 20 // head and body
	maxInterim = 16      // 1xx answers before the final one
)

// Protocol is what requests are sent in.
type Protocol string

// The protocols, by their names in ALPN. HTTP/2 is spoken from the first byte
// where there is no TLS to agree on it.
const (
	HTTP1 Protocol = "http/1.1"
	HTTP2 Protocol = "h2"
)

func (p Protocol) String() string {
	if p == HTTP2 {
		return "HTTP/2"
	}
	return "HTTP/1.1"
}

// alone is the protocol and no other, for a transport of net/http.
func (p Protocol) alone() *http.Protocols {
	all := new(http.Protocols)
	all.SetHTTP1(p == HTTP1)
	all.SetHTTP2(p == HTTP2)
	all.SetUnencryptedHTTP2(p == HTTP2)
	return all
}

func (f File) checkProtocol() *problem {
	if f.Protocol != "" && f.Protocol != HTTP1 && f.Protocol != HTTP2 {
		return &problem{"protocol", fmt.Sprintf("%q", string(f.Protocol)), fmt.Sprintf("%q, %q", string(HTTP1), string(HTTP2))}
	}
	return nil
}

// message is a request that no protocol has spelled out yet.
type message struct {
	method, path string
	host         string
	lines        [][2]string // the header, names and values in their order
	body         []byte
	spelled      []byte // what goes out in place of all that, over HTTP/1.1 alone
}

// names reports whether a header is among the lines.
func (m message) names(header string) bool {
	return slices.ContainsFunc(m.lines, func(l [2]string) bool { return http.CanonicalHeaderKey(l[0]) == header })
}

// ofConnections are headers that speak of a connection, and which HTTP/2 does not
// have (RFC 9113, 8.2.2).
var ofConnections = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade"}

// compose makes a message of a request. Lines are credential lines, each with its
// name. With expect it asks for 100 Continue.
func compose(base *url.URL, r Request, credential [][2]string, agent string, expect bool, in Protocol) (message, error) {
	m := message{method: r.Method, path: r.Path, host: base.Host, body: r.Body}
	if !isToken(r.Method) || !isTarget(r.Path) {
		return m, fmt.Errorf("%q %q cannot be the begin of a request", r.Method, r.Path)
	}
	var bad error
	line := func(name, value string) {
		if !isToken(name) || !isText(value) {
			bad = fmt.Errorf("header %q cannot be sent", name) // never its value: it may be a key
		}
		if in == HTTP2 && slices.Contains(ofConnections, http.CanonicalHeaderKey(name)) {
			bad = fmt.Errorf("header %q cannot be sent over HTTP/2", name)
		}
		m.lines = append(m.lines, [2]string{name, value})
	}
	given := func(name string) bool { return len(r.Header.Values(name)) > 0 }
	if !given("User-Agent") {
		line("User-Agent", agent)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		for _, v := range r.Header[name] {
			line(name, v)
		}
	}
	for _, c := range credential {
		line(c[0], c[1])
	}
	if len(r.Body) > 0 && !given("Content-Type") {
		line("Content-Type", "application/json")
	}
	if !given("Content-Length") && !given("Transfer-Encoding") && (len(r.Body) > 0 || r.Method != get && r.Method != http.MethodHead) {
		line("Content-Length", strconv.Itoa(len(r.Body)))
	}
	if expect {
		line("Expect", "100-continue")
	}
	return m, bad
}

// conversation is one connection, used for one request. Connections are not
// kept: what is sent on a reused one may be lost without a trace, and a client
// that then repeats it is counted twice. One goroutine may write while another
// reads.
//
// What cannot be written shows, if it matters, when the answer is read: a server
// may answer and close before it has read everything.
type conversation interface {
	ask(m message, body int) // sends the head, and so many bytes of the body
	more(body int)           // sends the body up to there
	// read reads the final answer, and calls interim for each 1xx before it. The
	// answer holds what came even if not all did.
	read(now func() int64, interim func(status int)) (answer, error)
	// awaitClose waits for the end that is still to come after an answer. A client
	// that goes on before it may meet its own last request, answered but not yet let
	// go.
	awaitClose()

	SetDeadline(time.Time) error
	follow(ctx context.Context)
	drop()  // goes away without waiting for the answer; whoever reads gets to an end
	reset() // tears the connection down without a farewell
	Close() error
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
	headAt int64 // on the target's timeline: the head of the answer was there
	closes bool  // whole, and an end of what carried it is to come
}

// line is a connection to the target.
type line struct {
	net.Conn
	tcp      net.Conn // below TLS
	patience patience
	stop     func() bool // of the context that can cut it short
}

// follow cuts the conversation short when ctx ends, instead of the context
// before.
func (l *line) follow(ctx context.Context) {
	if l.stop != nil {
		l.stop()
	}
	l.stop = context.AfterFunc(ctx, func() { l.SetDeadline(time.Now()) })
}

func (l *line) Close() error {
	l.stop()
	return l.Conn.Close()
}

func (l *line) reset() {
	if tcp, ok := l.tcp.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	l.stop()
	l.tcp.Close()
}

// errNotSpoken is that somebody is there and speaks another protocol.
var errNotSpoken = errors.New("HTTP/2 is not spoken there")

// dial connects from an address, the zero one being any, over TLS as trust says,
// for a request in a protocol. It fails with [ErrAway] where nobody listens, or
// nobody who speaks that.
func dial(ctx context.Context, base *url.URL, trust *tls.Config, from netip.Addr, p patience, in Protocol) (conversation, error) {
	within, cancel := context.WithTimeout(ctx, p.dial())
	defer cancel()
	c, err := connect(within, base, trust, from, p, in)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %w", ErrAway, err)
	}
	c.follow(ctx)
	return c, nil
}

func connect(within context.Context, base *url.URL, trust *tls.Config, from netip.Addr, p patience, in Protocol) (conversation, error) {
	conn, err := (&net.Dialer{LocalAddr: localAddr(from)}).DialContext(within, "tcp", hostPort(base))
	if err != nil {
		return nil, err
	}
	if conn.LocalAddr().String() == conn.RemoteAddr().String() {
		conn.Close()
		return nil, errors.New("whoever dials a port of his own meets himself")
	}
	l := &line{Conn: conn, tcp: conn, patience: p}
	if base.Scheme == "https" {
		config := trust.Clone()
		if config == nil {
			config = &tls.Config{}
		}
		config.ServerName, config.NextProtos = cmp.Or(config.ServerName, base.Hostname()), []string{string(in)}
		secure := tls.Client(conn, config)
		l.Conn = secure
		err = secure.HandshakeContext(within)
		if in == HTTP2 && (noProtocol(err) || err == nil && secure.ConnectionState().NegotiatedProtocol != string(HTTP2)) {
			err = errNotSpoken
		}
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	l.SetDeadline(time.Now().Add(p.answer()))
	if in == HTTP1 {
		return newHTTP1(l), nil
	}
	c := newHTTP2(l, base.Scheme)
	if err := c.greet(within); err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

// noProtocol reports whether a handshake failed since no protocol was common.
func noProtocol(err error) bool {
	noApplicationProtocol := tls.AlertError(120) // RFC 7301, 3.2
	var remote *net.OpError
	return errors.As(err, &remote) && remote.Err.Error() == noApplicationProtocol.Error() // its type is crypto/tls's own
}
