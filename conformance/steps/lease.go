package steps

import (
	"context"
	"errors"
	"sync"

	"github.com/invoicespec/brimline/conformance/target"
)

// lending lets scenarios that run side by side wait for each other's users.
type lending struct {
	asking sync.Mutex // held while a user is asked for, so that out is what that saw

	mu   sync.Mutex
	out  int           // users that are lent
	back chan struct{} // closed when one comes back
}

func newLending() *lending { return &lending{back: make(chan struct{})} }

// ask asks for a user on behalf of a scenario that has so many already. If there
// is none, back is closed when somebody else's comes back; nil: nobody has any.
func (l *lending) ask(own int, lease func() (*target.User, error)) (u *target.User, back <-chan struct{}, err error) {
	l.asking.Lock()
	defer l.asking.Unlock()
	l.mu.Lock()
	if l.out > own {
		back = l.back // before asking: what comes back meanwhile counts
	}
	l.mu.Unlock()
	if u, err = lease(); err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.out++
	}
	return u, back, err
}

func (l *lending) gaveBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out--
	close(l.back)
	l.back = make(chan struct{})
}

func until(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lease lends a user on a plan. Where other scenarios have all there are, it
// waits until one comes back.
func (s *Scenario) lease(ctx context.Context, plan string, keys int) (*subject, error) {
	if err := s.suite.door.enter(ctx, s); err != nil {
		return nil, setup(err)
	}
	for {
		u, back, err := s.suite.users.ask(len(s.they), func() (*target.User, error) { return s.Lease(ctx, plan, keys) })
		if err == nil {
			return &subject{User: u}, nil
		}
		if !errors.Is(err, target.ErrNoUser) || back == nil {
			return nil, setup(err)
		}
		taken := Wait{What: "a user on plan " + plan + ": all are with other scenarios"}
		if s.queue(taken, func() error { return until(ctx, back) }) != nil {
			return nil, setup(err)
		}
	}
}
