package server

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestConnectionsAreBounded: never more than so many are open, and all have
// their turn.
func TestConnectionsAreBounded(t *testing.T) {
	const most, clients = 3, 40
	tcp, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	l := limit(tcp, most)
	var open, peak atomic.Int64
	var full sync.WaitGroup // the first ones wait for each other
	full.Add(most)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := open.Add(1)
			for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
			}
			wg.Go(func() {
				if i < most {
					full.Done()
					full.Wait()
				}
				io.ReadFull(c, make([]byte, 1))
				c.Write([]byte("x"))
				open.Add(-1)
				c.Close()
				c.Close() // a second time gives nothing back
			})
		}
	})
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			c, err := net.Dial("tcp", tcp.Addr().String())
			if err == nil {
				c.Write([]byte("x"))
				io.ReadAll(c)
				c.Close()
			}
		})
	}
	all.Wait()
	require.LessOrEqual(t, peak.Load(), int64(most))
	require.Equal(t, int64(most), peak.Load(), "it came to the bound")

	require.NoError(t, l.Close())
	wg.Wait()
}

// TestFullListenerCloses: who waits for a place is told.
func TestFullListenerCloses(t *testing.T) {
	tcp, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	l := limit(tcp, 1)
	client, err := net.Dial("tcp", tcp.Addr().String())
	require.NoError(t, err)
	defer client.Close()
	c, err := l.Accept()
	require.NoError(t, err)
	defer c.Close()
	require.Implements(t, (*interface{ CloseWrite() error })(nil), c, "net/http looks for it")
	told := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		told <- err
	}()
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-told, net.ErrClosed)
}
