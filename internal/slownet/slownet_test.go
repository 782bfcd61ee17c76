package slownet_test

import (
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/invoicespec/brimline/internal/slownet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// between is both ends of a connection through a slow network.
func between(t *testing.T, up, down slownet.Delay) (client, server *net.TCPConn, p *slownet.Proxy) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	p, err = slownet.Start("127.0.0.1", l.Addr().String(), up, down)
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 7)}}).Dial("tcp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	s, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	require.Equal(t, "127.0.0.7", s.RemoteAddr().(*net.TCPAddr).IP.String(), "the client's own address")
	return c.(*net.TCPConn), s.(*net.TCPConn), p
}

func TestEachDirectionTakesItsTime(t *testing.T) {
	up, down := slownet.Delay{Least: 80 * time.Millisecond}, slownet.Delay{Least: 30 * time.Millisecond, Jitter: 20 * time.Millisecond}
	client, server, _ := between(t, up, down)
	for name, way := range map[string]struct {
		from, to *net.TCPConn
		least    time.Duration
	}{"up": {client, server, up.Least}, "down": {server, client, down.Least}} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, err := io.WriteString(way.from, "hello")
			require.NoError(t, err)
			got := make([]byte, 5)
			_, err = io.ReadFull(way.to, got)
			require.NoError(t, err)
			require.Equal(t, "hello", string(got))
			require.GreaterOrEqual(t, time.Since(began), way.least)
		})
	}
}

func TestNothingIsLostNorOvertakes(t *testing.T) {
	client, server, _ := between(t, slownet.Delay{Jitter: 3 * time.Millisecond}, slownet.Delay{})
	sent := strings.Repeat("0123456789abcdef", 64<<10)
	go func() {
		for text := sent; text != ""; {
			n := min(len(text), 7001)
			io.WriteString(client, text[:n])
			text = text[n:]
		}
		client.CloseWrite()
	}()
	got, err := io.ReadAll(server)
	require.NoError(t, err)
	require.True(t, sent == string(got))
	_, err = io.WriteString(server, "still here") // the other direction is open
	require.NoError(t, err)
	require.NoError(t, server.Close())
	back, err := io.ReadAll(client)
	require.NoError(t, err)
	require.Equal(t, "still here", string(back))
}

func TestEndsArriveLateAndAsTheyWere(t *testing.T) {
	const late = 50 * time.Millisecond
	for name, tc := range map[string]struct {
		leave func(*net.TCPConn)
		want  error
	}{
		"farewell": {func(c *net.TCPConn) { c.Close() }, io.EOF},
		"reset":    {func(c *net.TCPConn) { c.SetLinger(0); c.Close() }, syscall.ECONNRESET},
	} {
		t.Run(name, func(t *testing.T) {
			client, server, _ := between(t, slownet.Delay{Least: late}, slownet.Delay{})
			began := time.Now()
			tc.leave(client)
			_, err := server.Read(make([]byte, 1))
			require.ErrorIs(t, err, tc.want)
			require.GreaterOrEqual(t, time.Since(began), late)
		})
	}
}

func TestNobodyListensThere(t *testing.T) {
	p, err := slownet.Start("127.0.0.1", "127.0.0.1:1", slownet.Delay{}, slownet.Delay{})
	require.NoError(t, err)
	defer p.Close()
	c, err := net.Dial("tcp", p.Addr())
	if err == nil { // or the reset was there first
		defer c.Close()
		_, err = c.Read(make([]byte, 1))
	}
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestCloseEndsWhatIsOnItsWay(t *testing.T) {
	client, _, p := between(t, slownet.Delay{Least: time.Hour}, slownet.Delay{Least: time.Hour})
	_, err := io.WriteString(client, "never arrives")
	require.NoError(t, err)
	require.NoError(t, p.Close())
	_, err = client.Read(make([]byte, 1))
	require.Error(t, err)
	_, err = net.Dial("tcp", p.Addr())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestNotBeyondLoopback(t *testing.T) {
	_, err := slownet.StartAt("0.0.0.0:0", "127.0.0.1:1", slownet.Delay{}, slownet.Delay{})
	require.ErrorContains(t, err, "not on loopback: 0.0.0.0:0")
}
