package target

import (
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// A port that was taken is nobody else's, of this process or of another, until it
// is given back.
func TestTakePort(t *testing.T) {
	port, held, err := takePort()
	require.NoError(t, err)
	require.True(t, isFree(port), "the server is to listen there")
	n, err := strconv.Atoi(port)
	require.NoError(t, err)
	again := func() error {
		c, err := net.ListenPacket("udp", loopback(strconv.Itoa(n+besideIt)))
		if err == nil {
			c.Close()
		}
		return err
	}
	require.Error(t, again())
	require.NoError(t, held.Close())
	require.NoError(t, again())

	l, err := net.Listen("tcp", loopback(port))
	require.NoError(t, err)
	defer l.Close()
	require.False(t, isFree(port))
}
