package conformance

import (
	"context"
	"slices"
	"sync"
)

// turns lets scenarios begin in an order, so many at a time. godog has all of
// them wait here at once.
type turns struct {
	mu      sync.Mutex
	waiting []string // those to begin yet, the next one first
	free    int
	changed chan struct{} // closed, and made anew, when any of it has
}

func newTurns(order []string, workers int) *turns {
	return &turns{waiting: order, free: workers, changed: make(chan struct{})}
}

// begin returns when it is this one's turn; whoever got it says so with end.
func (t *turns) begin(ctx context.Context, at string) error {
	for {
		t.mu.Lock()
		if t.free > 0 && len(t.waiting) > 0 && t.waiting[0] == at {
			t.free--
			t.next()
			t.mu.Unlock()
			return nil
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			t.mu.Lock()
			defer t.mu.Unlock()
			if i := slices.Index(t.waiting, at); i >= 0 {
				t.waiting = slices.Delete(t.waiting, i, i+1)
			}
			return ctx.Err()
		}
	}
}

// next makes way for the one behind the first. The lock is held.
func (t *turns) next() {
	t.waiting = t.waiting[1:]
	t.tell()
}

func (t *turns) tell() {
	close(t.changed)
	t.changed = make(chan struct{})
}

func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free++
	t.tell()
}
