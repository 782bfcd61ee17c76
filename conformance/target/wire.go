package target

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of one conversation.
const (
	maxAnswer  = 2 << 20 // head and body
	maxInterim = 16      // 1xx answers before the final one
)

// message is a request as it goes on the wire.
type message struct {
	head   []byte
	body   []byte
	method string
}

// compose spells a request out. Lines are credential lines, each with its name.
//
// A request that is sent whole asks for the connection to be closed: a server
// does so when it is done with the request, permit and all. One whose body is
// held back does not ask, since a server that knows of the close answers early
// rejections sooner than it otherwise would.
func compose(base *url.URL, r Request, credential [][2]string, agent string, expect bool) (message, error) {
	if !isToken(r.Method) || !isTarget(r.Path) {
		return message{}, fmt.Errorf("%q %q cannot be the begin of a request", r.Method, r.Path)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.Method, r.Path, base.Host)
	var bad error
	line := func(name, value string) {
		if !isToken(name) || !isText(value) {
			bad = fmt.Errorf("header %q cannot be sent", name) // never its value: it may be a key
		}
		fmt.Fprintf(&b, "%s: %s\r\n", name, value)
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
	switch {
	case expect:
		line("Expect", "100-continue")
	case !given("Connection"):
		line("Connection", "close")
	}
	b.WriteString("\r\n")
	return message{head: b.Bytes(), body: r.Body, method: r.Method}, bad
}

// conversation is one connection, used for one request. Connections are not
// kept: what is sent on a reused one may be lost without a trace, and a client
// that then repeats it is counted twice.
type conversation struct {
	net.Conn
	tcp      net.Conn // below TLS
	br       *bufio.Reader
	patience patience
	stop     func() bool // of the context that can cut it short
}

// dial connects from an address, the zero one being any, over TLS as trust says.
// It fails with [ErrAway] where nobody listens.
func dial(ctx context.Context, base *url.URL, trust *tls.Config, from netip.Addr, p patience) (*conversation, error) {
	within, cancel := context.WithTimeout(ctx, p.dial())
	defer cancel()
	conn, err := (&net.Dialer{LocalAddr: localAddr(from)}).DialContext(within, "tcp", hostPort(base))
	c := &conversation{Conn: conn, tcp: conn, patience: p}
	if err == nil && base.Scheme == "https" {
		config := trust.Clone()
		if config == nil {
			config = &tls.Config{}
		}
		config.ServerName, config.NextProtos = cmp.Or(config.ServerName, base.Hostname()), []string{"http/1.1"}
		secure := tls.Client(conn, config)
		if err = secure.HandshakeContext(within); err != nil {
			conn.Close()
		}
		c.Conn = secure
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %w", ErrAway, err)
	}
	c.br = bufio.NewReader(io.LimitReader(c.Conn, maxAnswer))
	c.SetDeadline(time.Now().Add(p.answer()))
	c.follow(ctx)
	return c, nil
}

// follow cuts the conversation short when ctx ends, instead of the context
// before.
func (c *conversation) follow(ctx context.Context) {
	if c.stop != nil {
		c.stop()
	}
	c.stop = context.AfterFunc(ctx, func() { c.SetDeadline(time.Now()) })
}

func (c *conversation) Close() error {
	c.stop()
	return c.Conn.Close()
}

// reset tears the connection down without a farewell.
func (c *conversation) reset() {
	if tcp, ok := c.tcp.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.stop()
	c.tcp.Close()
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
	headAt int64 // on the target's timeline: the head of the answer was there
	closes bool  // whole, and the connection is said to be closed after it
}

// read reads the final answer to a request with a method, and calls interim for
// each 1xx before it. The answer holds what came even if not all did.
func (c *conversation) read(method string, now func() int64, interim func(status int)) (answer, error) {
	for range maxInterim {
		resp, err := http.ReadResponse(c.br, &http.Request{Method: method})
		if err != nil {
			return answer{}, err
		}
		if resp.StatusCode < http.StatusOK {
			interim(resp.StatusCode)
			continue
		}
		a := answer{status: resp.StatusCode, header: resp.Header, headAt: now()}
		a.body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
		if err == nil && len(a.body) > maxBody {
			a.body, err = a.body[:maxBody], fmt.Errorf("the answer's body is larger than %d bytes", maxBody)
		}
		a.closes = err == nil && resp.Close
		return a, err
	}
	return answer{}, errors.New("only interim answers came")
}

// awaitClose waits for the close that an answer announced. A client that goes on
// before it may meet its own last request, answered but not yet let go. A server
// that still expects a body does not close before it has given that up.
func (c *conversation) awaitClose() {
	c.SetReadDeadline(time.Now().Add(c.patience.farewell()))
	c.br.Peek(1)
}

// curl is a command that sends a request again. Keys are not in it.
func curl(base *url.URL, r Request, credential [][2]string, bodyFile string) string {
	var b strings.Builder
	b.WriteString("curl -i")
	switch {
	case r.Method == http.MethodHead:
		b.WriteString(" -I")
	case r.Method != get || len(r.Body) > 0:
		b.WriteString(" -X " + quoteWord(r.Method, quote))
	}
	if strings.HasPrefix(r.Path, "/") {
		if strings.Contains(r.Path, "/.") || strings.Contains(r.Path, "//") {
			b.WriteString(" --path-as-is")
		}
		b.WriteString(" " + quoteWord(base.Scheme+"://"+base.Host+r.Path, quote))
	} else {
		b.WriteString(" --request-target " + quote(r.Path) + " " + base.Scheme + "://" + base.Host)
	}
	for _, c := range credential {
		b.WriteString(" -H " + quote(c[0]+": "+c[1]))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		for _, v := range r.Header[name] {
			b.WriteString(" -H " + quote(name+": "+v))
		}
	}
	switch {
	case len(r.Body) == 0:
		return b.String()
	case len(r.Header.Values("Content-Type")) == 0:
		b.WriteString(" -H 'Content-Type: application/json'")
	}
	const most = 400
	switch {
	case bodyFile != "":
		b.WriteString(" --data-binary @" + quoteWord(bodyFile, quote))
	case len(r.Body) > most:
		b.WriteString(fmt.Sprintf(" --data-binary @body  # %d bytes", len(r.Body)))
	default:
		b.WriteString(" -d " + quote(string(r.Body)))
	}
	return b.String()
}

// quote makes one word of s for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// quoteWord leaves alone what a shell would.
func quoteWord(s string, quote func(string) string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/:.-_@%+,", r))
	}) {
		return s
	}
	return quote(s)
}
