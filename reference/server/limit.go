package server

import (
	"net"
	"sync"
)

// limited is a listener with so many connections open at most. Others wait in
// the kernel's queue until one has ended.
//
// Its connections still are TCP connections: net/http closes the writing side
// of one before it gives up what the client still sends, or the client would
// see a reset instead of its answer. (golang.org/x/net/netutil hides that side.)
type limited struct {
	*net.TCPListener
	slots chan struct{}
	done  chan struct{}
	once  sync.Once
}

func limit(l *net.TCPListener, open int) *limited {
	return &limited{TCPListener: l, slots: make(chan struct{}, open), done: make(chan struct{})}
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	c, err := l.AcceptTCP()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{TCPConn: c, release: sync.OnceFunc(func() { <-l.slots })}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.TCPListener.Close()
}

type limitedConn struct {
	*net.TCPConn
	release func()
}

func (c *limitedConn) Close() error {
	defer c.release()
	return c.TCPConn.Close()
}
