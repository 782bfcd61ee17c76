// Package slownet is a slow network for tests: a TCP proxy on loopback that
// keeps every byte, every farewell and every reset back for a while, each
// direction for its own time, with jitter, and in order.
//
// Most callers want [Start]; scripts/slownet is the same from a shell. To connect
// costs nothing: a listener's connections are made before anybody can delay them.
package slownet

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Delay is how long one direction takes: at least Least, and up to Jitter more.
type Delay struct{ Least, Jitter time.Duration }

func (d Delay) draw() time.Duration {
	if d.Jitter <= 0 {
		return d.Least
	}
	return d.Least + rand.N(d.Jitter)
}

// Proxy forwards connections until it is closed.
type Proxy struct {
	listener net.Listener
	to       string
	up, down Delay

	ended   chan struct{}
	running sync.WaitGroup
	mu      sync.Mutex
	open    map[*net.TCPConn]bool // nil: closed
}

// Start forwards what connects to a free port of host, which is on loopback, to
// the address to: what clients send takes up, what comes back takes down.
// Connections leave from the address that they came from.
func Start(host, to string, up, down Delay) (*Proxy, error) {
	return StartAt(net.JoinHostPort(host, "0"), to, up, down)
}

// StartAt is [Start] on a port that is chosen. Its error says when listen is not
// on loopback.
func StartAt(listen, to string, up, down Delay) (*Proxy, error) {
	addr, err := net.ResolveTCPAddr("tcp", listen)
	if err == nil && !addr.IP.IsLoopback() {
		err = errors.New("not on loopback: " + listen)
	}
	if err != nil {
		return nil, err
	}
	l, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, to: to, up: up, down: down, ended: make(chan struct{}), open: map[*net.TCPConn]bool{}}
	p.running.Go(p.accept)
	return p, nil
}

// Addr is the address that it listens on.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close ends all connections at once, and returns when nothing is left of them.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.mu.Lock()
	if p.open != nil {
		close(p.ended)
	}
	for c := range p.open {
		c.Close()
	}
	p.open = nil
	p.mu.Unlock()
	p.running.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.running.Go(func() { p.forward(c.(*net.TCPConn)) })
	}
}

// keep notes a connection to be closed with the proxy; false: it is closed.
func (p *Proxy) keep(c *net.TCPConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open != nil {
		p.open[c] = true
	}
	return p.open != nil
}

func (p *Proxy) drop(c *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
	c.Close()
}

func (p *Proxy) forward(client *net.TCPConn) {
	defer p.drop(client)
	if !p.keep(client) {
		return
	}
	from := client.RemoteAddr().(*net.TCPAddr)
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: from.IP, Zone: from.Zone}, Timeout: 10 * time.Second}).Dial("tcp", p.to)
	if err != nil {
		client.SetLinger(0) // nobody listens there: a reset is as near as it gets
		return
	}
	server := conn.(*net.TCPConn)
	defer p.drop(server)
	if !p.keep(server) {
		return
	}
	answered := make(chan struct{})
	p.running.Go(func() {
		defer close(answered)
		p.carry(client, server, p.down)
	})
	p.carry(server, client, p.up)
	<-answered
}

// piece is what was read at once, and how the stream went on.
type piece struct {
	data []byte
	due  time.Time
	end  error // nil: there is more
}

// pieces is how many are on their way before a sender has to wait.
const pieces = 512

// carry brings what src sends to dst, later, and its end as well.
func (p *Proxy) carry(dst, src *net.TCPConn, d Delay) {
	way := make(chan piece, pieces)
	p.running.Go(func() { p.read(src, d, way) })
	there := true
	for next := range way {
		if !p.await(next.due) {
			continue
		}
		if there && len(next.data) > 0 {
			if _, err := dst.Write(next.data); err != nil {
				there = false
				src.CloseRead() // nothing of it gets anywhere any more
			}
		}
		switch {
		case next.end == nil || !there:
		case errors.Is(next.end, io.EOF):
			dst.CloseWrite()
		default:
			dst.SetLinger(0)
			dst.Close()
		}
	}
}

// read takes what src sends and says when it is due at the other end.
func (p *Proxy) read(src *net.TCPConn, d Delay, way chan<- piece) {
	defer close(way)
	var last time.Time
	for {
		buf := make([]byte, 16<<10)
		n, err := src.Read(buf)
		due := time.Now().Add(d.draw())
		if due.Before(last) {
			due = last // nothing overtakes
		}
		last = due
		way <- piece{buf[:n], due, err}
		if err != nil {
			return
		}
	}
}

// await returns when it is time; false: the proxy has ended before.
func (p *Proxy) await(due time.Time) bool {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.ended:
		return false
	}
}
