package steps

import (
	"context"
	"fmt"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
)

// changes are the sentences about plans and overrides that change under way.
func (s *Scenario) changes() []sentence {
	return []sentence{
		{when, `^they are moved to the next (larger|smaller) plan$`, "by burst; in force with the next request", needs{contract.NeedPolicy, contract.NeedPlans}, s.move},
		{when, `^they are moved to the next larger plan and back twice, with a request after each move$`, "four moves and four requests", needs{contract.NeedPolicy, contract.NeedPlans}, s.moveBackAndForth},
		{when, `^their rate alone is doubled$`, "by an override", needs{contract.NeedPolicy}, s.doubleRate},
		{when, `^their cap is lowered by one$`, "by an override", needs{contract.NeedPolicy}, func(ctx context.Context) error { return s.changeCap(ctx, -1) }},
		{when, `^their cap is raised by two$`, "by an override", needs{contract.NeedPolicy}, func(ctx context.Context) error { return s.changeCap(ctx, 2) }},
		{then, `^what is in flight goes on$`, "above the lowered cap nothing new gets in, and what is let go ends as it should", needs{contract.NeedUpload}, s.flightGoesOn},
		{then, `^there is no place before two of them have ended$`, "the lowered cap holds for what was in flight before", needs{contract.NeedUpload}, s.noPlaceBeforeTwoEnded},
		{then, `^there are exactly two places more$`, "the raised cap is there, and no more", needs{contract.NeedHold}, s.capIsExact},
	}
}

// move puts the user on a neighbouring plan. What the bucket does from here on
// is what the scenario is about.
func (s *Scenario) move(ctx context.Context, direction string) error {
	all, err := s.plans()
	if err != nil {
		return err
	}
	u := s.user()
	p, err := all.neighbour(u.Bucket.Allowance().Burst, direction)
	if err != nil {
		return err
	}
	s.mark = len(s.found)
	return asSetup(s.SetPlan(ctx, u.User, p.name))
}

func (s *Scenario) moveBackAndForth(ctx context.Context) error {
	mark := len(s.found)
	defer func() { s.mark = mark }()
	return s.sends(func() (got []exchange, err error) {
		for _, direction := range []string{"larger", "smaller", "larger", "smaller"} {
			if err := s.move(ctx, direction); err != nil {
				return got, err
			}
			e, err := s.send(ctx, s.user(), s.Valid())
			if err != nil {
				return got, err
			}
			got = append(got, e)
		}
		return got, nil
	})
}

func (s *Scenario) doubleRate(ctx context.Context) error {
	s.mark = len(s.found)
	rate := 2 * s.user().Bucket.Allowance().RequestsPerMinute
	return asSetup(s.SetOverride(ctx, s.user().User, target.RequestsPerMinute, target.Override{Value: rate}))
}

func (s *Scenario) changeCap(ctx context.Context, by int64) error {
	limit := s.user().Bucket.Allowance().Concurrency + by
	if limit < 1 {
		return fmt.Errorf("%w: needs a plan with a cap above %d", ErrRoom, limit-by)
	}
	return asSetup(s.SetOverride(ctx, s.user().User, target.Concurrency, target.Override{Value: limit}))
}

// flightGoesOn lets one request go and looks whether it ends as if nothing had
// happened.
func (s *Scenario) flightGoesOn(ctx context.Context) error {
	if err := s.full(ctx); err != nil {
		return err
	}
	e, err := s.endOne(ctx)
	if err != nil {
		return err
	}
	if e.Status != s.ExpectValid() {
		return s.broken(e, "status", fmt.Sprint(s.ExpectValid()), statusAndCode(e))
	}
	return s.verdict()
}

// noPlaceBeforeTwoEnded goes on where one request has ended: the rest are as
// many as the lower cap.
func (s *Scenario) noPlaceBeforeTwoEnded(ctx context.Context) error {
	if err := s.full(ctx); err != nil {
		return err
	}
	if _, err := s.endOne(ctx); err != nil {
		return err
	}
	return s.capIsExact(ctx)
}

// endOne lets one of the requests in flight end.
func (s *Scenario) endOne(ctx context.Context) (exchange, error) {
	u := s.user()
	h := u.held[0]
	if !h.Alone() {
		return exchange{}, fmt.Errorf("%w: %w: to let one of several requests in flight go, not all", ErrSetup, target.ErrUnsupported)
	}
	u.held = u.held[1:]
	return s.take(exchange{Exchange: h.Finish(ctx), who: u})
}

// full looks for a while whether a place is free that should not be: a permit
// that wrongly counts as free may do so a moment after its request has ended.
func (s *Scenario) full(ctx context.Context) error {
	for _, d := range s.patience()[:3] {
		if err := s.afford(ctx, s.user()); err != nil {
			return err
		}
		e, err := s.send(ctx, s.user(), s.passing())
		if err != nil {
			return err
		}
		if !capRejected(e) {
			return s.aboveTheCap(ctx, s.clause.ID, e, int64(len(s.user().held)))
		}
		if err := pause(ctx, d); err != nil {
			return err
		}
	}
	return nil
}
