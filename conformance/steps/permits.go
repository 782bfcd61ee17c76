package steps

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/invoicespec/brimline/conformance/target"
)

// patience is how long a scenario looks again for a permit that should be free:
// it is free once the response is written, which may be a moment after the
// client has read it. Each look costs a token.
func (s *Scenario) patience() []time.Duration {
	all := []time.Duration{time.Millisecond, 20 * time.Millisecond, 200 * time.Millisecond, time.Second}
	for i, d := range all {
		all[i] = s.Patience(d)
	}
	return all
}

// anywhere is the place to hold requests at where it does not matter which.
func (s *Scenario) anywhere() target.Place {
	for _, p := range []target.Place{target.PlaceUpload, target.PlaceWork} {
		if s.CanHold(p) {
			return p
		}
	}
	return target.PlaceEngine
}

// passing is a request that ends by itself also while others are held: it does
// not get to the engine where they wait there.
func (s *Scenario) passing() target.Request {
	r := s.Valid()
	if s.anywhere() == target.PlaceEngine {
		r.Path = s.Scope().Below(nowhere)
	}
	return r
}

// fill puts n more requests of u in flight, looking again for a while where one
// is rejected by the cap. The exchange is the rejection that stayed, if any. What
// stays in flight for a known time alone is sent together.
func (s *Scenario) fill(ctx context.Context, u *subject, n int64, at target.Place) (rejection *exchange, err error) {
	if err := s.holdable(u, n); err != nil {
		return nil, err
	}
	looks := s.patience()
	for in := int64(0); in < n; {
		most := int64(1)
		if at == target.PlaceWork && len(looks) == len(s.patience()) {
			most = n - in
		}
		held, e, err := s.holdSome(ctx, u, most, at)
		in += held
		switch {
		case err != nil:
			return nil, err
		case held == most:
		case capRejected(e) && len(looks) == 0 && e.Beside:
			return nil, fmt.Errorf("%w: with %d in flight one more was rejected by the cap, and one of those that were to see it may have had the place", ErrInconclusive, len(u.held))
		case capRejected(e) && len(looks) == 0:
			return &e, nil
		case rateRejected(e) && len(looks) == 0:
			return nil, fmt.Errorf("%w: user %s ran out of tokens with %d of %d requests in flight", ErrInconclusive, u.ID, in, n)
		case !capRejected(e) && !rateRejected(e) && at == target.PlaceWork:
			return nil, fmt.Errorf("%w: a request that takes its time was answered with %s before it was seen to be in flight", ErrInconclusive, statusAndCode(e))
		case !capRejected(e) && !rateRejected(e):
			return nil, fmt.Errorf("%w: a request that was to stay in flight was answered with %s", ErrSetup, statusAndCode(e))
		default:
			if err := pause(ctx, looks[0]); err != nil {
				return nil, err
			}
			if err := s.ensure(ctx, u, s.HoldPrice(1)); err != nil {
				return nil, err
			}
			looks = looks[1:]
		}
	}
	return nil, nil
}

// holdSome puts up to n requests in flight at one moment. The exchange is the last
// of the answers that came instead.
func (s *Scenario) holdSome(ctx context.Context, u *subject, n int64, at target.Place) (held int64, e exchange, err error) {
	if at != target.PlaceWork {
		e, in, err := s.hold(ctx, u, s.Valid(), at)
		if in {
			held = 1
		}
		return held, e, err
	}
	before := len(u.held)
	got, err := s.holdTogether(ctx, u, n, at)
	for _, x := range got {
		if e = x; !capRejected(e) {
			break
		}
	}
	return int64(len(u.held) - before), e, err
}

// holdTogether puts requests in flight at one moment, and returns the answers of
// those that got one instead.
func (s *Scenario) holdTogether(ctx context.Context, u *subject, n int64, at target.Place) (got []exchange, err error) {
	rs := make([]target.Request, n)
	for i := range rs {
		rs[i] = s.Staying(at)
	}
	held, answers, findings := s.HoldTogether(ctx, u.User, rs, at)
	u.held = append(u.held, held...)
	u.served = u.served || len(held) > 0
	s.note(exchange{who: u}, findings)
	for _, a := range answers {
		e, err := s.takeIn(exchange{Exchange: a, who: u}) // with less in flight a rejection is all the more wrong
		if err != nil {
			return got, err
		}
		got = append(got, e)
	}
	return got, nil
}

// hold puts one request in flight, or returns the answer it got instead.
func (s *Scenario) hold(ctx context.Context, u *subject, r target.Request, at target.Place) (exchange, bool, error) {
	h, answered := s.Hold(ctx, u.User, r, at)
	e := exchange{Exchange: answered, who: u}
	if h != nil {
		u.held, u.served = append(u.held, h), true
		s.note(e, h.Findings())
		return e, true, nil
	}
	e, err := s.take(e)
	return e, false, err
}

// release lets everything of u that is in flight go on and takes its answers in.
func (s *Scenario) release(ctx context.Context, u *subject) error {
	held := u.held
	u.held = nil
	for _, h := range held {
		if _, err := s.take(exchange{Exchange: h.Finish(ctx), who: u}); err != nil {
			return err
		}
	}
	return nil
}

// fillCap is the state of affairs of many scenarios: all of u's permits but some
// are taken. A permit that is not given is a breach of CONC-6.
func (s *Scenario) fillCap(ctx context.Context, u *subject, spare int64, at target.Place) error {
	n := u.Bucket.Allowance().Concurrency - spare
	rejection, err := s.fill(ctx, u, n, at)
	if err != nil || rejection == nil {
		return err
	}
	return s.belowTheCap("CONC-6", *rejection, u, n)
}

func (s *Scenario) belowTheCap(clause string, e exchange, u *subject, n int64) error {
	if err := tellsWhich(e); err != nil {
		return err
	}
	return s.brokenFor(clause, e, "requests in flight",
		fmt.Sprintf("%d of a cap of %d", n, u.Bucket.Allowance().Concurrency),
		fmt.Sprintf("a concurrency rejection with %d in flight, also when asked again for a while", len(u.held)))
}

// exactCap finds out whether u can have exactly the cap in flight, counting what
// is in flight already, and lets go of what it adds. A cap too small is a breach
// of one clause, a cap too large of the other.
func (s *Scenario) exactCap(ctx context.Context, u *subject, small, large string) error {
	a := u.Bucket.Allowance()
	before := int64(len(u.held))
	if err := s.holdable(u, a.Concurrency-before); err != nil {
		return err
	}
	if err := s.ensure(ctx, u, s.HoldPrice(a.Concurrency-before)+1+s.HoldPrice(1)*int64(len(s.patience()))); err != nil {
		return err
	}
	rejection, err := s.fill(ctx, u, a.Concurrency-before, s.anywhere())
	if err != nil {
		return err
	}
	if rejection != nil {
		return s.belowTheCap(small, *rejection, u, a.Concurrency)
	}
	if err := s.afford(ctx, u); err != nil {
		return err
	}
	e, err := s.send(ctx, u, s.passing())
	if err != nil {
		return err
	}
	if err := tellsWhich(e); err != nil {
		return err
	}
	if capRejected(e) {
		u.left = false // what was abandoned is back
		return s.release(ctx, u)
	}
	return s.aboveTheCap(ctx, large, e, a.Concurrency)
}

// aboveTheCap is for one that got in beside a full cap: if it did, and if the cap
// was full. What was held may have been given up by the server, whose answer is on its way.
// One that the bucket refused did not get in, be it by right or not.
func (s *Scenario) aboveTheCap(ctx context.Context, clause string, e exchange, limit int64) error {
	if err := s.byRight(e); err != nil {
		return err
	}
	if rateRejected(e) && !capRejected(e) {
		return cmp.Or(s.verdict(), fmt.Errorf("%w: a rejection for the rate says nothing of the cap: %s", ErrInconclusive, known(e.who)))
	}
	if err := s.stood(ctx, e); err != nil {
		return err
	}
	return s.brokenFor(clause, e, "status", "429 CONCURRENCY_LIMIT_EXCEEDED",
		fmt.Sprintf("%s with %d in flight", statusAndCode(e), limit))
}

// stood makes sure that what e's user holds was in flight all the time, once
// something came of it that says so much about the cap.
func (s *Scenario) stood(ctx context.Context, e exchange) error {
	if e.who == nil || len(e.who.held) == 0 {
		return nil
	}
	if err := pause(ctx, 2*took(e)+s.Patience(50*time.Millisecond)); err != nil {
		return noAnswer(err)
	}
	for _, h := range e.who.held {
		if err := h.Stood(ctx); err != nil {
			return fmt.Errorf("%w: %w", ErrInconclusive, err)
		}
	}
	return nil
}

// stillHeld fails once what is in flight may be over by itself: what an answer shows
// then is shown of another state of affairs.
func (s *Scenario) stillHeld() error {
	for _, u := range append(slices.Clone(s.they), s.other) {
		if u != nil && slices.ContainsFunc(u.held, (*target.Held).Lapsed) {
			return fmt.Errorf("%w: what is in flight takes %s, and may have been over before the answer was there", ErrInconclusive, s.WorkTakes())
		}
	}
	return nil
}

// aboveCap sends one request while the cap is full, and lets the rest go.
func (s *Scenario) aboveCap(ctx context.Context, u *subject) (exchange, error) {
	if err := s.fillCap(ctx, u, 0, s.anywhere()); err != nil {
		return exchange{}, err
	}
	if err := s.afford(ctx, u); err != nil {
		return exchange{}, err
	}
	e, err := s.send(ctx, u, s.Valid())
	if err != nil {
		return e, err
	}
	if !capRejected(e) {
		return e, s.aboveTheCap(ctx, "CONC-1", e, u.Bucket.Allowance().Concurrency)
	}
	return e, s.release(ctx, u)
}

// pause waits a little of real time for the other side to get somewhere. It
// moves no clock.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return noAnswer(ctx.Err())
	}
}
