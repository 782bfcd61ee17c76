package storetest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/policy"
)

func ledgerCases() []testCase {
	return []testCase{
		{"LOG-7 an operation is reserved, charged or given back", reserveChargeGiveBack},
		{"LOG-4 charging and giving back a second time changes nothing", idempotent},
		{"LOG-7 requests side by side never charge more than there is", inParallel},
		{"LOG-7 a reservation lapses by itself", lapse},
		{"LOG-7 a lapsed reservation is charged only if an operation is left", lateCharge},
		{"LOG-7 a lapse that others have seen is not undone by a clock set back", lapseStays},
		{"operations are there again with the next period, by itself", rollOver},
		{"a charge counts for the period that it was reserved in", chargedWhereReserved},
		{"a new plan brings its own operations", planBringsOperations},
		{"PLAN-3 operations change no allowance, and no override changes operations", operationsApart},
		{"operations that are taken away leave what is reserved", takenAway},
	}
}

// uses requires what a user has used of the period, and has left.
func (s *session) uses(user string, used, left int64) {
	b := s.billing(user)
	s.Equal(used, b.Used, "used")
	s.Equal(left, b.Left, "left")
}

func (s *session) charge(user, id string) {
	s.NoError(s.Reserve(s.ctx, user, id))
	s.NoError(s.Charge(s.ctx, id))
	s.NoError(s.GiveBack(s.ctx, id))
}

func reserveChargeGiveBack(s *session) {
	alice, _ := s.user("free")
	bob, _ := s.user("free")
	s.uses(alice, 0, 3)
	for _, id := range []string{"a", "b", "c"} {
		s.NoError(s.Reserve(s.ctx, alice, id))
	}
	s.ErrorIs(s.Reserve(s.ctx, alice, "d"), account.ErrExhausted, "three operations, three reservations")
	s.uses(alice, 0, 3)
	s.NoError(s.Reserve(s.ctx, bob, "e"), "another's are another's")
	s.Error(s.Reserve(s.ctx, bob, "e"), "one id, one reservation")
	s.NoError(s.GiveBack(s.ctx, "a"))
	s.NoError(s.Reserve(s.ctx, alice, "d"), "what was given back is there again")
	s.NoError(s.Charge(s.ctx, "b"))
	s.uses(alice, 1, 2)
	s.NoError(s.GiveBack(s.ctx, "b"))
	s.uses(alice, 1, 2)
	s.ErrorIs(s.Reserve(s.ctx, alice, "f"), account.ErrExhausted, "one charged, two reserved")
	s.NoError(s.GiveBack(s.ctx, "c"))
	s.NoError(s.GiveBack(s.ctx, "d"))
	s.NoError(s.Reserve(s.ctx, alice, "g"))
	s.NoError(s.Reserve(s.ctx, alice, "h"))
	s.ErrorIs(s.Reserve(s.ctx, alice, "i"), account.ErrExhausted, "what was charged stays charged")
	s.uses(bob, 0, 3)
}

func idempotent(s *session) {
	alice, _ := s.user("free")
	s.NoError(s.Reserve(s.ctx, alice, "a"))
	s.NoError(s.Charge(s.ctx, "a"))
	s.NoError(s.Charge(s.ctx, "a"), "charging twice charges once")
	s.uses(alice, 1, 2)
	s.NoError(s.GiveBack(s.ctx, "a"))
	s.NoError(s.GiveBack(s.ctx, "a"))
	s.uses(alice, 1, 2)
	s.NoError(s.Reserve(s.ctx, alice, "b"))
	s.NoError(s.GiveBack(s.ctx, "b"))
	s.NoError(s.GiveBack(s.ctx, "b"))
	s.NoError(s.GiveBack(s.ctx, "never reserved"))
	s.Error(s.Charge(s.ctx, "b"), "its reservation has ended")
	err := s.Charge(s.ctx, "never reserved")
	s.Error(err)
	s.NotErrorIs(err, account.ErrExhausted)
	s.NoError(s.Reserve(s.ctx, alice, "c"))
	s.NoError(s.Reserve(s.ctx, alice, "d"))
	s.ErrorIs(s.Reserve(s.ctx, alice, "e"), account.ErrExhausted)
}

func inParallel(s *session) {
	const there, asked = 20, 90
	alice, _ := s.user("pro")
	s.NoError(s.SetOperations(s.ctx, alice, there))
	var wg sync.WaitGroup
	results := make([]error, asked)
	for i := range results {
		wg.Go(func() {
			id := fmt.Sprint("r", i)
			err := s.Reserve(s.ctx, alice, id)
			if err == nil && i%3 != 0 { // a third of those that get one give it back
				err = errors.Join(s.Charge(s.ctx, id), s.Charge(s.ctx, id))
			}
			results[i] = errors.Join(err, s.GiveBack(s.ctx, id))
		})
	}
	wg.Wait()
	charged := int64(0)
	for i, err := range results {
		switch {
		case err != nil:
			s.ErrorIs(err, account.ErrExhausted)
		case i%3 != 0:
			charged++
		}
	}
	s.uses(alice, charged, there-charged)
	for n := charged; n < there; n++ {
		s.charge(alice, fmt.Sprint("rest", n))
	}
	s.ErrorIs(s.Reserve(s.ctx, alice, "one more"), account.ErrExhausted)
	s.uses(alice, there, 0)
}

func lapse(s *session) {
	alice, _ := s.user("free")
	s.NoError(s.SetOperations(s.ctx, alice, 1))
	s.NoError(s.Reserve(s.ctx, alice, "a"))
	s.moveTo(s.now().Add(account.ReservationLapse), just)
	s.ErrorIs(s.Reserve(s.ctx, alice, "b"), account.ErrExhausted)
	s.clock.Advance(just)
	s.NoError(s.Reserve(s.ctx, alice, "b"))
	s.ErrorIs(s.Reserve(s.ctx, alice, "c"), account.ErrExhausted)
	s.NoError(s.GiveBack(s.ctx, "a"))
	s.ErrorIs(s.Reserve(s.ctx, alice, "c"), account.ErrExhausted, "what has lapsed is not given back once more")
}

func lateCharge(s *session) {
	alice, _ := s.user("free")
	s.NoError(s.SetOperations(s.ctx, alice, 2))
	for _, id := range []string{"a", "b"} {
		s.NoError(s.Reserve(s.ctx, alice, id))
	}
	s.clock.Advance(2 * account.ReservationLapse)
	s.NoError(s.Reserve(s.ctx, alice, "c"))
	s.NoError(s.Charge(s.ctx, "a"), "one was left")
	s.ErrorIs(s.Charge(s.ctx, "b"), account.ErrExhausted, "the other is another's")
	s.NoError(s.GiveBack(s.ctx, "b"))
	s.NoError(s.Charge(s.ctx, "c"))
	s.uses(alice, 2, 0)
}

func lapseStays(s *session) {
	alice, _ := s.user("free")
	s.NoError(s.SetOperations(s.ctx, alice, 1))
	s.NoError(s.Reserve(s.ctx, alice, "a"))
	s.clock.Advance(account.ReservationLapse)
	s.NoError(s.Reserve(s.ctx, alice, "b"))
	s.clock.Advance(-account.ReservationLapse)
	s.ErrorIs(s.Charge(s.ctx, "a"), account.ErrExhausted)
	s.NoError(s.Charge(s.ctx, "b"))
	s.uses(alice, 1, 0)
}

func rollOver(s *session) {
	alice, _ := s.user("free")
	for i := range 3 {
		s.charge(alice, fmt.Sprint(i))
	}
	s.moveTo(s.billing(alice).Period.End, just)
	s.ErrorIs(s.Reserve(s.ctx, alice, "a"), account.ErrExhausted)
	s.uses(alice, 3, 0)
	s.clock.Advance(just)
	s.uses(alice, 0, 3)
	s.charge(alice, "a")
	s.NoError(s.SetOperations(s.ctx, alice, 9))
	s.uses(alice, 1, 9)
	s.moveTo(s.billing(alice).Period.End, 0)
	s.uses(alice, 0, 3)
}

func chargedWhereReserved(s *session) {
	alice, _ := s.user("free")
	end := s.billing(alice).Period.End
	s.moveTo(end, just)
	s.NoError(s.Reserve(s.ctx, alice, "a"))
	s.clock.Advance(just)
	for _, id := range []string{"b", "c", "d"} {
		s.NoError(s.Reserve(s.ctx, alice, id))
	}
	s.NoError(s.Charge(s.ctx, "a"))
	s.uses(alice, 0, 3)
	s.clock.Advance(-just)
	s.uses(alice, 1, 2)
}

func planBringsOperations(s *session) {
	alice, _ := s.user("free")
	for i := range 3 {
		s.charge(alice, fmt.Sprint(i))
	}
	boundary, err := s.SchedulePlan(s.ctx, alice, "pro")
	s.NoError(err)
	s.uses(alice, 3, 0)
	s.moveTo(boundary, 0)
	s.uses(alice, 0, 5)
	s.charge(alice, "a")
	s.NoError(s.SetPlan(s.ctx, alice, "free"))
	s.uses(alice, 0, 3)
	s.charge(alice, "b")
	s.NoError(s.SetPlan(s.ctx, alice, "pro"))
	s.uses(alice, 0, 5)
	_, err = s.EndPeriod(s.ctx, alice)
	s.NoError(err)
	s.uses(alice, 0, 5)
}

func operationsApart(s *session) {
	alice, k := s.user("free")
	s.charge(alice, "a")
	s.NoError(s.SetOverride(s.ctx, alice, override(policy.Burst, "7"), note("x")))
	s.NoError(s.StoreEntitlement(s.ctx, alice, policy.Concurrency, "x"))
	s.uses(alice, 1, 2)
	s.NoError(s.MendEntitlements(s.ctx, alice))
	s.uses(alice, 1, 2)
	for _, n := range []int64{0, 1, 1 << 40} {
		s.NoError(s.SetOperations(s.ctx, alice, n))
		s.uses(alice, 1, n)
		s.holds(k, "free", "10/7/2")
	}
	err := s.SetOperations(s.ctx, alice, -1)
	s.ErrorIs(err, account.ErrRefused)
	s.ErrorContains(err, "-1")
	s.uses(alice, 1, 1<<40)
}

func takenAway(s *session) {
	alice, _ := s.user("free")
	s.NoError(s.Reserve(s.ctx, alice, "a"))
	s.NoError(s.SetOperations(s.ctx, alice, 0))
	s.ErrorIs(s.Reserve(s.ctx, alice, "b"), account.ErrExhausted)
	s.NoError(s.Charge(s.ctx, "a"))
	s.uses(alice, 1, 0)
	s.NoError(s.SetOperations(s.ctx, alice, 2))
	s.uses(alice, 1, 2)
	s.charge(alice, "c")
	s.charge(alice, "d")
	s.ErrorIs(s.Reserve(s.ctx, alice, "e"), account.ErrExhausted)
}
