package steps

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
)

// empty is drain for a scenario that cannot go on with a bucket that never
// empties. One that never let anybody in was not emptied either.
func (s *Scenario) empty(ctx context.Context, u *subject) ([]exchange, error) {
	got, err := s.drain(ctx, u, s.Valid())
	if err == nil && !slices.ContainsFunc(got, paid) && !got[len(got)-1].decidedWrongly() {
		if err := s.ensure(ctx, u, 1); err != nil {
			return got, err
		}
		got, err = s.drain(ctx, u, s.Valid())
	}
	if err != nil {
		return got, err
	}
	switch last := got[len(got)-1]; {
	case !rateRejected(last) || last.decidedWrongly():
		return got, fmt.Errorf("%w: the bucket did not empty: the last answer was %s", ErrBroken, statusAndCode(last))
	case !slices.ContainsFunc(got, paid):
		return got, fmt.Errorf("%w: the bucket lets nobody in", ErrInconclusive)
	}
	return got, nil
}

// hopeless is how many answers in a row may each take as long as a token before
// a bucket is given up on that does not empty.
const hopeless = 10

// farTooFast reports whether two tokens or more come back while one is spent, so
// that one request after the other can never empty the bucket.
func (s *Scenario) farTooFast(u *subject, before, e exchange) bool {
	return !s.Movable() && min(took(before), took(e)) >= 2*s.tokenTime(u)
}

// atEmpty sends r to a bucket that was just emptied.
func (s *Scenario) atEmpty(ctx context.Context, u *subject, r target.Request) (exchange, error) {
	return s.emptyAgain(ctx, u, func() (exchange, error) { return s.send(ctx, u, r) })
}

// emptyAgain asks a bucket that was just emptied. Where a token came back in
// between, which takes a slow network, a busy machine or a fast plan, it empties
// it again, and asks again.
func (s *Scenario) emptyAgain(ctx context.Context, u *subject, ask func() (exchange, error)) (exchange, error) {
	for tries := 0; ; tries++ {
		e, err := ask()
		switch {
		case err != nil || rateRejected(e) || untouched(e) || e.decidedWrongly():
			return e, err
		case tries == 5 || took(e) >= s.tokenTime(u) && tries == 2:
			return e, s.tooFast(u, e)
		}
		got, err := s.drain(ctx, u, s.Valid())
		if err != nil {
			return e, err
		}
		if err := s.lower(ctx, u, got[len(got)-1]); err != nil {
			return e, err
		}
	}
}

// lower takes one more token where the next one will be back by the time that
// another request gets there.
func (s *Scenario) lower(ctx context.Context, u *subject, last exchange) (err error) {
	for range 3 {
		if _, hi := u.Bucket.LevelAt(last.Span.To + last.Span.To - last.Span.From); hi < oracle.Token {
			return nil
		}
		if last, err = s.send(ctx, u, s.Valid()); err != nil {
			return err
		}
	}
	return nil
}

// tooFast says that tokens come back faster than the bucket can be asked.
func (s *Scenario) tooFast(u *subject, e exchange) error {
	return fmt.Errorf("%w: %s: one comes back every %s, and an answer took %s", ErrInconclusive, known(u),
		s.tokenTime(u).Round(time.Millisecond), took(e).Round(time.Millisecond))
}

// known says how exactly the level of u's bucket is known.
func known(u *subject) string {
	return fmt.Sprintf("the bucket's level is known only to within %.1f tokens", float64(u.Bucket.Width())/float64(oracle.Token))
}

// took is how long the answer may have taken, by the target's time.
func took(e exchange) time.Duration { return microseconds(e.Span.To - e.Span.From) }

// whileEmpty is emptyAgain for a user who is to ask with an empty bucket, if that
// is what the Givens said and no time was to go by since.
func (s *Scenario) whileEmpty(ctx context.Context, u *subject, ask func() (exchange, error)) (exchange, error) {
	if !u.emptied {
		return ask()
	}
	return s.emptyAgain(ctx, u, ask)
}

// sendAtEmpty sends a request to a bucket whose last tokens are in flight. A
// token that came back meanwhile is a reason to ask again.
func (s *Scenario) sendAtEmpty(ctx context.Context) error {
	return s.sends(func() ([]exchange, error) {
		var e exchange
		var err error
		for range 6 {
			e, err = s.send(ctx, s.user(), s.Valid())
			if err != nil || rateRejected(e) || e.decidedWrongly() {
				return []exchange{e}, err
			}
		}
		return nil, s.tooFast(s.user(), e)
	})
}

// sendHalf sends half a body and expects a final answer all the same.
func (s *Scenario) sendHalf(ctx context.Context) error {
	return s.sends(func() ([]exchange, error) {
		u := s.user()
		e, err := s.whileEmpty(ctx, u, func() (exchange, error) {
			e, held, err := s.hold(ctx, u, s.Valid(), target.PlaceUpload)
			if !held {
				return e, err
			}
			h := u.held[len(u.held)-1]
			u.held = u.held[:len(u.held)-1]
			if len(h.Findings()) > 0 {
				return e, s.broken(e, "status", "429, without waiting for the body", "100 Continue")
			}
			return s.take(exchange{Exchange: h.Finish(ctx), who: u}) // a token was back
		})
		return []exchange{e}, err
	})
}

// hammer sends requests to an empty bucket until n in a row are rejected. Where a
// token came back in between, what the rejections before it said is of a token
// that is spent: then it begins anew.
func (s *Scenario) hammer(ctx context.Context, n int64) error {
	return s.sends(func() (got []exchange, err error) {
		var e exchange
		for range 3 {
			got = nil
			for int64(len(got)) < n {
				if e, err = s.send(ctx, s.user(), s.Valid()); err != nil {
					return got, err
				}
				if !rateRejected(e) && !e.decidedWrongly() {
					break
				}
				got = append(got, e)
			}
			if int64(len(got)) == n {
				return got, nil
			}
			if _, err := s.drain(ctx, s.user(), s.Valid()); err != nil {
				return got, err
			}
		}
		return got, s.tooFast(s.user(), e)
	})
}
