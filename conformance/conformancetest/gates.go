package conformancetest

import (
	"context"
	"sync"

	"github.com/invoicespec/brimline/conformance/contract/control"
)

// Gates hold requests of a service at the places of the contract, for as long as
// a scenario wants. The zero value holds nobody.
type Gates struct {
	mu     sync.Mutex
	closed map[spot]*gate
}

// spot is a place on a user's way.
type spot struct {
	user  string
	place control.Place
}

type gate struct {
	opened  chan struct{}
	waiting int
}

// Pass returns at once unless a scenario holds this user's requests there; else
// when they are let go, or when ctx ends. A service calls it with the engine's
// place where it has found a request valid and before it does its work, with the
// response's once the first byte of a success is written and flushed, and with
// that of authentication before it looks a key up. Each is optional; requests
// that are answered with an error must not wait there.
func (g *Gates) Pass(ctx context.Context, user string, at control.Place) {
	if g == nil {
		return
	}
	g.mu.Lock()
	here := g.closed[spot{user, at}]
	if here == nil {
		g.mu.Unlock()
		return
	}
	here.waiting++
	g.mu.Unlock()
	select {
	case <-here.opened:
	case <-ctx.Done():
	}
	g.mu.Lock()
	here.waiting--
	g.mu.Unlock()
}

func (g *Gates) shut(at spot) control.Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.closed = map[spot]*gate{}
	}
	if g.closed[at] == nil {
		g.closed[at] = &gate{opened: make(chan struct{})}
	}
	return control.Gate{Closed: true, Waiting: g.closed[at].waiting}
}

func (g *Gates) open(at spot) control.Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if here := g.closed[at]; here != nil {
		close(here.opened)
		delete(g.closed, at)
	}
	return control.Gate{}
}

func (g *Gates) state(at spot) control.Gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if here := g.closed[at]; here != nil {
		return control.Gate{Closed: true, Waiting: here.waiting}
	}
	return control.Gate{}
}

func (g *Gates) openAll() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for at, here := range g.closed {
		close(here.opened)
		delete(g.closed, at)
	}
}
