package control

import (
	"context"
	"net/http"
	"sync"
	"time"

	wire "github.com/invoicespec/brimline/conformance/contract/control"
)

// maxHold is the longest that a gate holds anybody: a suite that dies with a
// gate closed must not keep requests for ever.
const maxHold = 2 * time.Minute

// gate is a place where requests wait while it is closed.
type gate struct {
	stopped <-chan struct{} // closed: nobody waits any more

	mu      sync.Mutex
	opened  chan struct{} // closed when the gate opens; nil: it is open
	waiting int
}

// shut closes the gate; those inside already are not concerned.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
}

// open lets go all who wait.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

func (g *gate) state() wire.Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	return wire.Gate{Closed: g.opened != nil, Waiting: g.waiting}
}

// pass waits until the gate is open, ctx is done, the server stops, or the
// longest hold is over.
func (g *gate) pass(ctx context.Context) {
	g.mu.Lock()
	opened := g.opened
	if opened == nil {
		g.mu.Unlock()
		return
	}
	g.waiting++
	g.mu.Unlock()

	longest := time.NewTimer(maxHold)
	defer longest.Stop()
	select {
	case <-opened:
	case <-ctx.Done():
	case <-g.stopped:
	case <-longest.C:
	}
	g.mu.Lock()
	g.waiting--
	g.mu.Unlock()
}

// gatedWriter writes the first byte of a body, flushes it and passes its gate
// before it writes the rest. At an open gate it is as if it were not there.
type gatedWriter struct {
	http.ResponseWriter
	gate *gate
	ctx  context.Context
}

func (w *gatedWriter) Write(b []byte) (int, error) {
	if len(b) == 0 || !w.gate.state().Closed {
		return w.ResponseWriter.Write(b)
	}
	n, err := w.ResponseWriter.Write(b[:1])
	if err != nil {
		return n, err
	}
	http.NewResponseController(w.ResponseWriter).Flush()
	w.gate.pass(w.ctx)
	rest, err := w.ResponseWriter.Write(b[1:])
	return n + rest, err
}

// Unwrap lets deadlines and flushes through.
func (w *gatedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
