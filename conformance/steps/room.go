package steps

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrRoom says that no plan of the target has the room that a scenario needs, such
// as tokens beside what it holds in flight: it could not be run.
var ErrRoom = errors.New("no plan has room for it")

func needsBurst(n int64) error {
	return fmt.Errorf("%w: needs a plan with burst ≥ %d", ErrRoom, n)
}

// tight reports whether u's plan has less tokens than the scenario may need.
func (u *subject) tight() bool { return u.budget > u.Bucket.Allowance().Burst }

// holdable fails where n requests cannot be in flight at once for want of tokens,
// whatever the cap.
func (s *Scenario) holdable(u *subject, n int64) error {
	if need := s.HoldPrice(n); need > u.Bucket.Allowance().Burst {
		return needsBurst(need)
	}
	return nil
}

// mostBeside is how long what is in flight is kept waiting for a token.
const mostBeside = 5 * time.Second

// afford makes sure of a token for a request that is not about the bucket, on a
// plan that may have run out of them. What is in flight stays there for a few
// seconds, and not for longer.
func (s *Scenario) afford(ctx context.Context, u *subject) error {
	if !u.tight() || u.emptied {
		return nil
	}
	if len(u.held) > 0 && !s.Movable() && s.ReadyIn(u.User, 1) > s.Patience(mostBeside) {
		return needsBurst(u.Bucket.Allowance().Burst + 1)
	}
	return s.ensure(ctx, u, 1)
}

// byRight says why an answer shows nothing of a cap: it is a rejection for the
// rate, and the bucket may have been empty. nil: it is none of those.
func (s *Scenario) byRight(e exchange) error {
	switch {
	case e.who == nil || !rateRejected(e) || capRejected(e) || e.decidedWrongly():
		return nil
	case e.who.tight():
		return needsBurst(e.who.Bucket.Allowance().Burst + 1)
	}
	return fmt.Errorf("%w: user %s ran out of tokens: %s", ErrInconclusive, e.who.ID, known(e.who))
}
