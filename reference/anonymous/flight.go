package anonymous

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/invoicespec/brimline/reference/account"
)

// flight is the one lookup for all who present a new key at the same time. It
// belongs to none of them: it runs on while anybody waits, whoever began it.
type flight struct {
	waiting int // guarded by Gate.mu
	cancel  context.CancelFunc

	done   chan struct{} // closed when what follows is set
	record account.Record
	err    error
}

var errNoAnswer = errors.New("the lookup of a key ended without an answer")

// start begins a flight for a place that was reserved. It requires that g.mu is
// held.
func (g *Gate) start(ctx context.Context, pool, place string, key account.Digest, lookup Lookup) *flight {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{cancel: cancel, done: make(chan struct{}), err: errNoAnswer}
	g.flights[key] = f
	go func() {
		defer g.land(pool, place, key, f)
		defer func() {
			if p := recover(); p != nil {
				f.err = fmt.Errorf("the lookup of a key panicked: %v\n%s", p, debug.Stack())
			}
		}()
		f.record, f.err = lookup(ctx)
	}()
	return f
}

// land ends a flight: what was reserved for it is settled before anybody hears
// of the answer.
func (g *Gate) land(pool, place string, key account.Digest, f *flight) {
	g.mu.Lock()
	abandoned := f.waiting == 0
	if g.flights[key] == f {
		delete(g.flights, key)
		if f.err == nil {
			g.known.add(key, g.clock.Instant())
		}
	}
	g.mu.Unlock()

	// Nobody may look up keys for nothing by going away before the answer. A store
	// that fails, on the other hand, says nothing about the key.
	if errors.Is(f.err, account.ErrUnknownKey) || f.err != nil && abandoned {
		g.pools.spend(pool, place)
	} else {
		g.pools.giveBack(pool, place)
	}
	f.cancel()
	close(f.done)
}

// leave is for those who stop waiting. Once all have, the lookup is cancelled,
// and whoever comes next begins anew.
func (g *Gate) leave(key account.Digest, f *flight) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.waiting--; f.waiting > 0 {
		return
	}
	f.cancel()
	if g.flights[key] == f {
		delete(g.flights, key)
	}
}
