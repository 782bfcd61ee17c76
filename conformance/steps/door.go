package steps

import (
	"context"
	"sync"
)

// door lets scenarios in side by side, or one of them alone: one that empties the
// pool of the address from which all are sent, where each key of the others that
// is new needs something of it for a moment.
type door struct {
	mu      sync.Mutex
	inside  int           // of those that came in side by side
	taken   bool          // somebody is in alone
	waiting int           // to be alone
	changed chan struct{} // closed, and made anew, when any of it has
}

// The ways to be in.
type stay int

const (
	out stay = iota
	among
	alone
)

func newDoor() *door { return &door{changed: make(chan struct{})} }

// enter lets a scenario in that is not in yet.
func (d *door) enter(ctx context.Context, s *Scenario) error {
	if s.stay != out {
		return nil
	}
	return d.await(ctx, s, func() bool {
		free := !d.taken && d.waiting == 0
		if free {
			d.inside++
			s.stay = among
		}
		return free
	})
}

// alone lets a scenario in once all others are out, and none until it is.
func (d *door) alone(ctx context.Context, s *Scenario) error {
	if s.stay != out {
		return nil
	}
	d.change(func() { d.waiting++ })
	err := d.await(ctx, s, func() bool {
		free := !d.taken && d.inside == 0
		if free {
			d.taken = true
			s.stay = alone
		}
		return free
	})
	d.change(func() { d.waiting-- })
	return err
}

// leave lets a scenario out. Where it was alone and none wants to be alone next,
// what the first uses of others' keys need of the address has come back by then.
func (d *door) leave(ctx context.Context, s *Scenario) (err error) {
	switch s.stay {
	case among:
		d.change(func() { d.inside-- })
	case alone:
		d.mu.Lock()
		more := d.waiting > 0
		d.mu.Unlock()
		if t := s.suite.target; !more {
			err = s.ReadyFor(ctx, t.OwnAddress(), t.Anonymous().Concurrency)
		}
		d.change(func() { d.taken = false })
	}
	s.stay = out
	return err
}

func (d *door) change(what func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	what()
	close(d.changed)
	d.changed = make(chan struct{})
}

// await asks again and again, each time something has changed.
func (d *door) await(ctx context.Context, s *Scenario, in func() bool) error {
	for {
		d.mu.Lock()
		ok, changed := in(), d.changed
		d.mu.Unlock()
		if ok {
			return nil
		}
		if err := s.queue(Wait{What: "the one address that all requests come from"}, func() error { return until(ctx, changed) }); err != nil {
			return err
		}
	}
}
