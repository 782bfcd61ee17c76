package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Ports of servers that are started are below those that systems give to clients,
// one of which might take one before the server does. Beside each, a socket for
// datagrams that nobody sends tells other suites on this machine that the port is
// taken: a server that is still starting holds nothing itself.
const (
	firstPort = 12_000
	manyPorts = 20_000
	besideIt  = manyPorts // from a port to the number of that socket
)

// takePorts gives the process ports of its own, others than it had.
func (p *serverProcess) takePorts() error {
	before := p.held
	defer func() { closeAll(before) }()
	p.held = nil
	for _, name := range ports() {
		port, held, err := takePort()
		if err != nil {
			return err
		}
		p.named[name], p.held = port, append(p.held, held)
	}
	return nil
}

// takePort takes a port that nobody listens on.
func takePort() (port string, held io.Closer, err error) {
	for range 100 {
		n := firstPort + rand.IntN(manyPorts)
		held, err := net.ListenPacket("udp", loopback(strconv.Itoa(n+besideIt)))
		if err != nil {
			continue
		}
		if port := strconv.Itoa(n); isFree(port) {
			return port, held, nil
		}
		held.Close()
	}
	return "", nil, errors.New("there is no free port on loopback")
}

func loopback(port string) string { return net.JoinHostPort("127.0.0.1", port) }

// isFree reports whether nobody takes connections on a port. It does not listen
// there itself: what a process listens on while another is forked off is open in
// that one too until it has become a program of its own, a moment in which a
// server that never listened would seem to.
func isFree(port string) bool {
	c, err := net.DialTimeout("tcp", loopback(port), time.Second)
	if err == nil {
		c.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

func closeAll(all []io.Closer) {
	for _, c := range all {
		c.Close()
	}
}

// begin is the first start of a process. One that ended and finds one of its
// ports taken by somebody else tells nothing of itself: it is tried with others.
func (p *serverProcess) begin(ctx context.Context) (Start, error) {
	const tries = 5
	for n := 1; ; n++ {
		s, err := p.start(ctx)
		if err != nil || !s.Exited {
			return s, err
		}
		if p.kill(); !p.crowdedOut(s) { // and its children do not listen either
			return s, nil
		}
		if n == tries {
			return s, fmt.Errorf("%w: its ports were taken %d times: %s", ErrDidNotStart, tries, s)
		}
		if err := p.takePorts(); err != nil {
			return s, err
		}
	}
}

// crowdedOut reports whether somebody else has a port of a process that ended.
func (p *serverProcess) crowdedOut(s Start) bool {
	return strings.Contains(strings.ToLower(s.Output), "address already in use") ||
		slices.ContainsFunc(ports(), func(name string) bool { return !isFree(p.named[name]) })
}
