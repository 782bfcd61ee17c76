package lean

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"time"
)

// where is what connections are kept apart by.
type where struct {
	address string // of the server, as the URL has it
	from    netip.Addr
}

// take finds a kept connection or opens one.
func (t *Transport) take(ctx context.Context, w where) (c *conn, reused bool, err error) {
	for {
		c := t.kept(w)
		if c == nil {
			break
		}
		if c.arm(ctx) && c.quiet() {
			return c, true, nil
		}
		t.drop(c)
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
	}
	if err := t.room(); err != nil {
		return nil, false, err
	}
	n, err := t.dial(ctx, w)
	if err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.open--
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, false, err
	}
	t.mu.Lock()
	t.opened++
	t.mu.Unlock()
	if c = newConn(n, w); !c.arm(ctx) {
		t.drop(c)
		return nil, false, ctx.Err()
	}
	return c, false, nil
}

// kept takes the connection that was used last off the pool.
func (t *Transport) kept(w where) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := len(t.idle) - 1; i >= 0; i-- {
		if c := t.idle[i]; c.where == w {
			last := copy(t.idle[i:], t.idle[i+1:]) + i
			t.idle[last], t.idle = nil, t.idle[:last]
			return c
		}
	}
	return nil
}

// room makes room for one more connection: if it has to, in place of the one that
// has been idle for longest.
func (t *Transport) room() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	most := t.Connections
	if most <= 0 {
		most = DefaultConnections
	}
	if t.open < most {
		t.open++
		return nil
	}
	if len(t.idle) == 0 {
		return ErrConnections
	}
	t.shift().close()
	return nil
}

// shift takes the connection that has been idle for longest off the pool. The
// caller has the lock.
func (t *Transport) shift() *conn {
	c := t.idle[0]
	last := copy(t.idle, t.idle[1:])
	t.idle[last], t.idle = nil, t.idle[:last]
	return c
}

func (t *Transport) dial(ctx context.Context, w where) (net.Conn, error) {
	if d, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, d)
		defer cancel()
	}
	address := w.address
	if !strings.Contains(address[strings.LastIndexByte(address, ']')+1:], ":") {
		address += ":80"
	}
	if t.Dial != nil {
		return t.Dial(ctx, w.from, address)
	}
	d := net.Dialer{KeepAlive: 15 * time.Second}
	if w.from.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(w.from, 0))
	}
	return d.DialContext(ctx, "tcp", address)
}

// drop closes a connection that was taken.
func (t *Transport) drop(c *conn) {
	c.close()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open--
}

// keep gives back a connection that can be used again.
func (t *Transport) keep(c *conn) {
	now := time.Now()
	c.since = now
	t.mu.Lock()
	var old *conn
	if len(t.idle) > 0 && now.Sub(t.idle[0].since) > MaxIdle {
		old = t.shift()
		t.open--
	}
	t.idle = append(t.idle, c)
	t.mu.Unlock()
	if old != nil {
		old.close()
	}
}
