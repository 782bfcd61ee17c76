package target

import (
	"context"
	"errors"

	"github.com/invoicespec/brimline/conformance/contract/control"
)

// flights is what a user has in flight, and the gates that hold some of it.
type flights struct {
	held   map[*Held]bool
	closed map[Place]bool
	round  map[Place]int // how often the gate was opened
}

func (f *flights) add(h *Held) {
	if f.held == nil {
		f.held = map[*Held]bool{}
	}
	f.held[h] = true
}

// at is how many requests should wait at a gate.
func (f *flights) at(p Place) int {
	n := 0
	for h := range f.held {
		if h.place == p && h.round == f.round[p] {
			n++
		}
	}
	return n
}

func gatePath(u *User, p Place) string { return ofUser(u.ID, "gates", string(p)) }

// CloseGate makes u's requests wait at a gate. [Target.Hold] does so by itself.
func (t *Target) CloseGate(ctx context.Context, u *User, p Place) error {
	if err := t.feature(control.FeatureGates); err != nil || u.flights.closed[p] {
		return err
	}
	if u.flights.closed == nil {
		u.flights.closed, u.flights.round = map[Place]bool{}, map[Place]int{}
	}
	u.flights.closed[p] = true // even if the answer gets lost
	return t.control.call(ctx, put, gatePath(u, p), nil, nil)
}

// OpenGate lets all of u's requests go that wait at a gate.
func (t *Target) OpenGate(ctx context.Context, u *User, p Place) error {
	if !u.flights.closed[p] {
		return nil
	}
	if err := t.control.call(ctx, remove, gatePath(u, p), nil, nil); err != nil {
		return err
	}
	delete(u.flights.closed, p)
	u.flights.round[p]++
	return nil
}

func (t *Target) openGates(ctx context.Context, u *User) error {
	var errs []error
	for _, p := range []Place{PlaceAuthentication, PlaceEngine, PlaceResponse} {
		errs = append(errs, t.OpenGate(ctx, u, p))
	}
	return errors.Join(errs...)
}

func (t *Target) waiting(ctx context.Context, u *User, p Place) (int, error) {
	var g control.Gate
	err := t.control.call(ctx, get, gatePath(u, p), nil, &g)
	return g.Waiting, err
}

func (t *Target) dropAll(u *User) {
	for h := range u.flights.held {
		h.Drop()
	}
}
