package lean

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"
)

// conn is one connection. Whoever has taken it has it alone.
type conn struct {
	net.Conn
	where where
	since time.Time // not used

	in    *bufio.Reader
	left  int64 // what may be read before it is too much
	fault error // why nothing can be read any more, but for the end
	heard bool  // a byte of the current answer came
	out   []byte
	names map[string]string // of headers that came in another spelling than Go's
	rest  chan error        // what came of a body that was not sent at once; nil: there is none
	broke error             // what came of it, once that is known

	done   <-chan struct{} // whose end cuts the connection
	disarm func() bool
	cut    func()

	raw   syscall.RawConn // nil: cannot be looked at
	look  func(fd uintptr) bool
	still bool // by the last look
}

// moment is how long a goroutine may need to say that it is done.
const moment = 50 * time.Millisecond

var errHeadTooLong = errors.New("the head of the answer is too long")

func newConn(n net.Conn, w where) *conn {
	c := &conn{Conn: n, where: w, names: map[string]string{}}
	c.in = bufio.NewReader(bounded{c})
	c.cut = func() { _ = c.SetDeadline(time.Unix(1, 0)) }
	if s, ok := n.(syscall.Conn); ok {
		c.raw, _ = s.SyscallConn()
		c.look = c.lookAt
	}
	return c
}

// bounded reads from a connection no more than may be read.
type bounded struct{ c *conn }

func (b bounded) Read(p []byte) (int, error) {
	c := b.c
	if c.left <= 0 {
		c.fault = errHeadTooLong
		return 0, c.fault
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	if err != nil && err != io.EOF {
		c.fault = err
	}
	return n, err
}

// arm makes the context's deadline and end those of the connection; false: it
// cannot be used. The end is watched once for all requests that share it: a new
// context with the same channel costs nothing.
func (c *conn) arm(ctx context.Context) bool {
	if done := ctx.Done(); done != c.done {
		if c.disarm != nil && !c.disarm() {
			return false // it was cut, or may be at any time
		}
		c.done, c.disarm = done, nil
		if done != nil {
			c.disarm = context.AfterFunc(ctx, c.cut)
		}
	}
	deadline, _ := ctx.Deadline()
	// In this order: an end that comes before is seen, one that comes after cuts.
	return c.SetDeadline(deadline) == nil && ctx.Err() == nil
}

func (c *conn) close() {
	if c.disarm != nil {
		c.disarm()
	}
	_ = c.Conn.Close()
}

// quiet reports that nothing came in since the connection was used: neither its
// end nor bytes that nobody asked for.
func (c *conn) quiet() bool {
	if c.in.Buffered() > 0 {
		return false
	}
	return c.raw == nil || c.raw.Read(c.look) == nil && c.still
}

// failed is what came of a body that was not sent at once, if that is known and
// the reason is the body itself.
func (c *conn) failed() error {
	if c.rest != nil {
		select {
		case c.broke = <-c.rest:
			c.rest = nil
		default:
		}
	}
	if errors.Is(c.broke, errBody) {
		return c.broke
	}
	return nil
}

// settled reports whether all of the request was sent. One that was answered once
// the server had read it has been sent by now, or is at any moment.
func (c *conn) settled() bool {
	if c.rest != nil {
		select {
		case c.broke = <-c.rest:
			c.rest = nil
		case <-time.After(moment):
		}
	}
	return c.rest == nil && c.broke == nil
}
