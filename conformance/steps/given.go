package steps

import (
	"context"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
)

func (s *Scenario) givens() []sentence {
	return []sentence{
		{given, `^a rested user on (the .+ plan|every other plan)$`, "a full bucket; by name (the basic plan) or smallest, second smallest, slowest, fastest or quickest", nil, s.aRestedUserOn},
		{given, `^a rested user on a plan with room$`, "a full bucket with tokens for two full caps and seven more", nil, func(ctx context.Context) error { return s.ready(s.aUserWithRoom(ctx)) }},
		{given, `^a user on (the .+ plan|every other plan)$`, "tokens for a cap and seven more; by name (the basic plan) or smallest, second smallest, slowest, fastest or quickest", nil, s.aUserOn},
		{given, `^a user with tokens to spare$`, "a full bucket with tokens for a full cap and seven more", nil, func(ctx context.Context) error { return s.ready(s.aUserToSpare(ctx, 1)) }},
		{given, `^a user with two keys and tokens to spare$`, "a full bucket with tokens for a full cap and seven more", needs{contract.NeedKeys}, func(ctx context.Context) error { return s.ready(s.aUserToSpare(ctx, 2)) }},
		{given, `^an emptied user on (the .+ plan|every other plan)$`, "a bucket that was just emptied; by name (the basic plan) or smallest, second smallest, slowest, fastest or quickest", nil, func(ctx context.Context, plan string) error { return s.ready(s.anEmptiedUser(ctx, plan, 1)) }},
		{given, `^an emptied user with two keys$`, "a bucket that was just emptied, on the smallest plan", needs{contract.NeedKeys}, func(ctx context.Context) error { return s.ready(s.anEmptiedUser(ctx, "the smallest plan", 2)) }},
		{given, `^a user with the whole cap in flight$`, "as many requests as the cap, each seen to be in flight", needs{contract.NeedHold}, func(ctx context.Context) error { return s.inFlight(ctx, 1, 0, s.anywhere()) }},
		{given, `^a user with two keys and the whole cap in flight$`, "as many requests as the cap, each seen to be in flight", needs{contract.NeedHold, contract.NeedKeys}, func(ctx context.Context) error { return s.inFlight(ctx, 2, 0, s.anywhere()) }},
		{given, `^a user with all permits but one in flight$`, "one request less than the cap, each seen to be in flight", needs{contract.NeedHold}, func(ctx context.Context) error { return s.inFlight(ctx, 1, 1, s.anywhere()) }},
		{given, `^a user with the whole cap in responses that are being written$`, "each has sent its first byte and waits", needs{contract.NeedGates}, func(ctx context.Context) error { return s.inFlight(ctx, 1, 0, target.PlaceResponse) }},
		{given, `^a user with the whole cap in flight and an empty bucket$`, "on the smallest plan; the last tokens are those of the requests in flight", needs{contract.NeedHold}, s.inFlightAndEmpty},
		{given, `^a user with the whole cap in flight on a plan with room$`, "tokens are left for another full cap", needs{contract.NeedHold}, s.inFlightWithRoom},
		{given, `^a user whose cap is exact$`, "who was seen to have exactly the cap in flight, and let go of it", needs{contract.NeedHold}, s.aUserWhoseCapIsExact},
		{given, `^another user on the same plan$`, "the other user of the sentences that follow", nil, s.another},
		{given, `^another user on the same plan with the whole cap in flight$`, "the other user, as many requests as the cap in flight", needs{contract.NeedHold}, s.anotherInFlight},
	}
}

// aRestedUserOn leases users whose bucket is certainly full: what follows is
// judged against the burst itself.
func (s *Scenario) aRestedUserOn(ctx context.Context, plan string) error {
	if err := s.leaseAll(ctx, plan, 1); err != nil {
		return err
	}
	return s.ready(s.each(func(u *subject) error { return s.rest(ctx, u, u.Bucket.Allowance().Burst) }))
}

func (s *Scenario) aUserOn(ctx context.Context, plan string) error {
	if err := s.leaseAll(ctx, plan, 1); err != nil {
		return err
	}
	return s.ready(s.each(func(u *subject) error {
		u.budget = u.Bucket.Allowance().Concurrency + few
		return s.rest(ctx, u, u.budget)
	}))
}

// rest is ensure for a user from whom nothing was asked in this scenario.
func (s *Scenario) rest(ctx context.Context, u *subject, n int64) error {
	if err := s.readier(ctx, u, n); err != nil {
		return err
	}
	err := s.ensure(ctx, u, n)
	u.rested = true
	return err
}

// readier looks for another user of the plan where u would have to be waited for:
// what others have spent, and when, shows only once one has asked.
func (s *Scenario) readier(ctx context.Context, u *subject, n int64) error {
	for range 3 {
		asked, err := s.learn(ctx, u, n)
		if err != nil || !asked || s.ReadyIn(u.User, n) < tellable+s.tokenTime(u) {
			return err
		}
		other, err := s.Lease(ctx, u.Plan, u.Keys())
		if err != nil {
			return nil // nobody else: u it is
		}
		u.User, other = other, u.User
		if err := s.Return(ctx, other); err != nil {
			return asSetup(err)
		}
	}
	return nil
}

// few is how many tokens most scenarios need besides those for a full cap.
const few = 7

// aUserToSpare leases a user with enough tokens for a full cap and a little more.
func (s *Scenario) aUserToSpare(ctx context.Context, keys int) error {
	return s.aUserFor(ctx, keys, func(p plan) int64 { return s.HoldPrice(p.Concurrency) + few })
}

// aUserWithRoom is aUserToSpare for two full caps, and to see whether each look for
// a permit got in.
func (s *Scenario) aUserWithRoom(ctx context.Context) error {
	looks := int64(len(s.patience())) * (s.HoldPrice(1) - 1)
	return s.aUserFor(ctx, 1, func(p plan) int64 { return 2*s.HoldPrice(p.Concurrency) + few + looks })
}

// aUserFor leases a rested user on a plan with so many tokens: of a bucket that
// is full the level is known exactly, and a single token too many shows.
func (s *Scenario) aUserFor(ctx context.Context, keys int, need func(plan) int64) error {
	all, err := s.plans()
	if err != nil {
		return err
	}
	p := all.roomy(need)
	u, err := s.lease(ctx, p.name, keys)
	if err != nil {
		return err
	}
	u.budget = need(p)
	s.they = []*subject{u}
	return s.rest(ctx, u, p.Burst)
}

func (s *Scenario) anEmptiedUser(ctx context.Context, plan string, keys int) error {
	if err := s.leaseAll(ctx, plan, keys); err != nil {
		return err
	}
	return s.sends(func() (got []exchange, err error) {
		err = s.each(func(u *subject) error {
			more, err := s.empty(ctx, u)
			got, u.emptied = append(got, more...), true
			return err
		})
		return got, err
	})
}

// inFlight is a user with all permits but some taken. It has sent a request
// before, so that what is wrong with its headers anyway is known.
func (s *Scenario) inFlight(ctx context.Context, keys int, spare int64, at target.Place) error {
	if err := s.aUserToSpare(ctx, keys); err != nil {
		return err
	}
	u := s.user()
	if _, err := s.send(ctx, u, s.Valid()); err != nil {
		return err
	}
	if u.tight() {
		if err := s.ensure(ctx, u, u.Bucket.Allowance().Burst); err != nil {
			return err
		}
	}
	return s.ready(s.fillCap(ctx, u, spare, at))
}

// inFlightAndEmpty spends all tokens but those that the requests in flight take.
func (s *Scenario) inFlightAndEmpty(ctx context.Context) error {
	if err := s.aRestedUserOn(ctx, "the smallest plan"); err != nil {
		return err
	}
	u := s.user()
	a := u.Bucket.Allowance()
	for range a.Burst - s.HoldPrice(a.Concurrency) {
		if _, err := s.send(ctx, u, s.Valid()); err != nil {
			return err
		}
	}
	return s.ready(s.fillCap(ctx, u, 0, s.anywhere()))
}

func (s *Scenario) inFlightWithRoom(ctx context.Context) error {
	if err := s.aUserWithRoom(ctx); err != nil {
		return err
	}
	return s.ready(s.fillCap(ctx, s.user(), 0, s.anywhere()))
}

// aUserWhoseCapIsExact is a user of whom a full cap was seen before anything
// else happens, so that a cap that is off from the start is not blamed on what
// follows.
func (s *Scenario) aUserWhoseCapIsExact(ctx context.Context) error {
	if err := s.aUserWithRoom(ctx); err != nil {
		return err
	}
	return s.ready(s.exactCap(ctx, s.user(), "CONC-6", "CONC-1"))
}

// another leases a second user. What the first one holds is looked at before: what
// is off by then is not the other's doing.
func (s *Scenario) another(ctx context.Context) error {
	if s.user().rested {
		if _, err := s.send(ctx, s.user(), s.Valid()); err != nil {
			return err
		}
	}
	u, err := s.lease(ctx, s.user().Plan, 1)
	if err != nil {
		return err
	}
	s.other = u
	return s.ready(nil)
}

func (s *Scenario) anotherInFlight(ctx context.Context) error {
	if err := s.another(ctx); err != nil {
		return err
	}
	if err := s.rest(ctx, s.other, s.HoldPrice(s.other.Bucket.Allowance().Concurrency)+1); err != nil {
		return err
	}
	return s.ready(s.fillCap(ctx, s.other, 0, s.anywhere()))
}
