package target

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/invoicespec/brimline/conformance/contract/control"
)

// flights is what a user has in flight, and the gates that hold some of it.
type flights struct {
	held   map[*Held]bool
	closed map[Place]bool
	round  map[Place]int // how often the gate was opened
	left   []conversation
}

// fly takes in requests of one user that are in flight now.
func (t *Target) fly(hs ...*Held) {
	for _, h := range hs {
		f := &h.user.flights
		if len(f.held) == 0 {
			f.held = map[*Held]bool{}
			t.flown.rounds.Add(1)
		}
		f.held[h] = true
		t.flown.requests.Add(1)
	}
}

// flown counts what was in flight, and how often it began with nothing.
type flown struct{ requests, rounds atomic.Int64 }

// Flown is how many requests were held in flight so far, and how many times
// nothing of a user was in flight before.
func (t *Target) Flown() (requests, rounds int64) {
	return t.flown.requests.Load(), t.flown.rounds.Load()
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

func ofGate(a action, u *User, p Place) call { return ofUser(a, u.ID).with("place", string(p)) }

// CloseGate makes u's requests wait at a gate. [Target.Hold] does so by itself.
func (t *Target) CloseGate(ctx context.Context, u *User, p Place) error {
	if err := t.feature(control.FeatureGates); err != nil || u.flights.closed[p] {
		return err
	}
	if u.flights.closed == nil {
		u.flights.closed, u.flights.round = map[Place]bool{}, map[Place]int{}
	}
	u.flights.closed[p] = true // even if the answer gets lost
	return t.behind.do(ctx, ofGate(closeGate, u, p), nil)
}

// OpenGate lets all of u's requests go that wait at a gate.
func (t *Target) OpenGate(ctx context.Context, u *User, p Place) error {
	if !u.flights.closed[p] {
		return nil
	}
	if err := t.behind.do(ctx, ofGate(openGate, u, p), nil); err != nil {
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
	err := t.behind.do(ctx, ofGate(readGate, u, p), &g)
	return g.Waiting, err
}

func (t *Target) dropAll(u *User) {
	for h := range u.flights.held {
		h.Drop()
	}
	for _, c := range u.flights.left {
		c.Close()
	}
	u.flights.left = nil
}

// HoldApart is [Target.Hold] at a place where no token is spent yet, for a
// request of which u's bucket must not hear if it is answered instead.
func (t *Target) HoldApart(ctx context.Context, u *User, r Request) (*Held, Exchange) {
	all, _ := t.launch(ctx, u, []Request{r}, PlaceAuthentication, t.protocol)
	h := all[0]
	if h.exchange.Err != nil || h.early != nil {
		return nil, h.exchange
	}
	t.fly(h)
	return h, h.exchange
}

// SendPastValidation sends requests of u at one moment, whose keys' validation is
// held until they have had time to come together, and says how many validations
// there were at once. Their answers are not judged.
func (t *Target) SendPastValidation(ctx context.Context, u *User, rs []Request) ([]Exchange, int, error) {
	before, err := t.ready(ctx, u, rs, PlaceAuthentication)
	if err != nil {
		return nil, 0, err
	}
	flights := make([]*flight, len(rs))
	each(len(rs), func(i int) { flights[i] = t.prepare(ctx, u, rs[i], false, t.protocol) })
	done := make(chan struct{})
	go func() {
		defer close(done)
		each(len(rs), func(i int) { flights[i].leave(len(rs[i].Body)); flights[i].arrive() })
	}()
	most := 0
	for _, d := range t.patience.looks() {
		n, werr := t.waiting(ctx, u, PlaceAuthentication)
		most, err = max(most, n-before), werr
		if err != nil || most > 1 || d > time.Second {
			break
		}
		if err = pause(ctx, d); err != nil {
			break
		}
	}
	err = errors.Join(err, t.OpenGate(context.WithoutCancel(ctx), u, PlaceAuthentication))
	<-done
	var all []Exchange
	for _, f := range flights {
		all = append(all, f.exchange)
		u.Bucket.Lose(f.exchange.Span)
	}
	return all, most, err
}

// LetGo opens the gate of u's validations and waits for the answers of all that
// is held there. They come in no known order, so none of them is judged.
func (t *Target) LetGo(ctx context.Context, u *User) ([]Exchange, error) {
	err := t.OpenGate(ctx, u, PlaceAuthentication)
	var all []Exchange
	for h := range u.flights.held {
		if err != nil || h.place != PlaceAuthentication {
			continue
		}
		h.conn.follow(ctx)
		a := <-h.result
		h.leaveUser()
		h.conn.Close()
		h.take(a.answer, a.err)
		h.exchange.Span.To = t.time.atMost()
		u.Bucket.Lose(h.exchange.Span)
		all = append(all, h.exchange)
	}
	return all, err
}
