package limitertest

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/policy"
)

// A case returns the first sentence that does not hold. Every answer it gets
// through a session is judged on all its figures besides.
var cases = []struct {
	name string
	run  func(*session) error
}{
	{"RATE-1 a full bucket admits its burst", burstAdmitted},
	{"RATE-8 rejections cost nothing", rejectionsCostNothing},
	{"RATE-10 HDR-6 a token when it is due", tokenWhenDue},
	{"RATE-3 HDR-7 full when it is due, and no fuller", fullWhenDue},
	{"RATE-6 CONC-3 the token, then the permit", tokenThenPermit},
	{"PERMIT-8 released once, by its holder", releasedOnce},
	{"PERMIT-7 released when the context is gone", releasedWithoutContext},
	{"POOL-3 subjects are apart", subjectsApart},
	{"CHG-1 a change keeps the used share", changeKeepsShare},
	{"CHG-3 changes mint nothing", changesMintNothing},
	{"CHG-4 a lower cap lets running requests finish", lowerCap},
	{"CFG-2 no allowance is not unlimited", zeroAllowance},
	{"an id in flight is refused", doubledID},
	{"RATE-9 all at once", allAtOnce},
	{"CONC-6 coming and going at once", comingAndGoing},
}

// slow gives no token back within the minute that no case takes.
func slow(burst, concurrency int64) policy.Allowance { return allowed(1, burst, concurrency) }

func burstAdmitted(s *session) error {
	for i, a := range []policy.Allowance{slow(1, 1), slow(10, 2), slow(100, 20), allowed(300, 50, 10)} {
		subject := fmt.Sprint("user-", i)
		_, admitted, err := s.drain(subject, a)
		if err != nil {
			return err
		}
		if admitted < a.Burst() {
			return fmt.Errorf("%d admitted of a burst of %d", admitted, a.Burst())
		}
	}
	return nil
}

func rejectionsCostNothing(s *session) error {
	a := slow(3, 3)
	first, _, err := s.drain("user", a)
	if err != nil {
		return err
	}
	for range 50 {
		again, err := s.expect(admission.RateRejected, "user", a)
		if err != nil {
			return err
		}
		if due, was := int64(again.At)+again.ToToken, int64(first.At)+first.ToToken; due != was {
			return fmt.Errorf("a rejection moved the next token from %d µs to %d", was, due)
		}
	}
	return nil
}

// Asked a microsecond before a token is due a frozen clock must say no; where
// time has run on meanwhile the judge knows, since the decision says when it was.
func tokenWhenDue(s *session) error {
	for i, a := range []policy.Allowance{allowed(7_000, 3, 1), allowed(13_000, 1, 1)} {
		subject := fmt.Sprint("user-", i)
		rejection, _, err := s.drain(subject, a)
		if err != nil {
			return err
		}
		for range 3 {
			s.pass(rejection, rejection.ToToken-1)
			early, err := s.admit(subject, a)
			if err != nil {
				return err
			}
			if early.Outcome == admission.Admitted {
				if err := s.release(early); err != nil {
					return err
				}
			}
			s.pass(early, early.ToToken)
			due, err := s.expect(admission.Admitted, subject, a)
			if err != nil {
				return fmt.Errorf("after waiting as told: %w", err)
			}
			if err := s.release(due); err != nil {
				return err
			}
			if rejection, _, err = s.drain(subject, a); err != nil {
				return err
			}
		}
	}
	return nil
}

func fullWhenDue(s *session) error {
	a := allowed(6_000, 3, 1)
	last, _, err := s.drain("user", a)
	if err != nil {
		return err
	}
	for _, idle := range []int64{1, 3} { // times what it takes
		s.pass(last, idle*last.ToFull)
		for n := range a.Burst() {
			got, err := s.expect(admission.Admitted, "user", a)
			if err != nil {
				return fmt.Errorf("request %d after waiting until full: %w", n+1, err)
			}
			if err := s.release(got); err != nil {
				return err
			}
		}
		if last, _, err = s.drain("user", a); err != nil {
			return err
		}
	}
	return nil
}

func tokenThenPermit(s *session) error {
	a := slow(6, 2)
	for _, want := range []admission.Outcome{
		admission.Admitted, admission.Admitted, // the cap is full
		admission.ConcurrencyRejected, admission.ConcurrencyRejected, admission.ConcurrencyRejected, admission.ConcurrencyRejected, // and the bucket empty
		admission.RateRejected, admission.RateRejected,
	} {
		if _, err := s.expect(want, "user", a); err != nil {
			return err
		}
	}
	return nil
}

func releasedOnce(s *session) error {
	a := slow(1_000, 3)
	var holders []answer
	for range 3 {
		got, err := s.expect(admission.Admitted, "user", a)
		if err != nil {
			return err
		}
		holders = append(holders, got)
	}
	refused, err := s.expect(admission.ConcurrencyRejected, "user", a)
	if err != nil {
		return err
	}
	other, err := s.expect(admission.Admitted, "other", a)
	if err != nil {
		return err
	}
	for _, idle := range []struct{ what, subject, id string }{
		{"a request refused", "user", refused.id},
		{"a request unknown", "user", "nobody"},
		{"another subject's request", "user", other.id},
		{"a request by another subject", "other", holders[0].id},
	} {
		if err := s.giveBack(context.Background(), idle.subject, idle.id); err != nil {
			return fmt.Errorf("%s: %w", idle.what, err)
		}
		if _, err := s.expect(admission.ConcurrencyRejected, "user", a); err != nil {
			return fmt.Errorf("releasing %s: %w", idle.what, err)
		}
	}
	if err := s.release(holders[0]); err != nil {
		return err
	}
	for range 3 {
		if err := s.giveBack(context.Background(), "user", holders[0].id); err != nil {
			return fmt.Errorf("released again: %w", err)
		}
	}
	for _, want := range []admission.Outcome{admission.Admitted, admission.ConcurrencyRejected} {
		if _, err := s.expect(want, "user", a); err != nil {
			return fmt.Errorf("one permit, released four times: %w", err)
		}
	}
	return nil
}

func releasedWithoutContext(s *session) error {
	a := slow(10, 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 3 {
		got, err := s.expect(admission.Admitted, "user", a)
		if err != nil {
			return err
		}
		delete(s.book("user").held, got.id)
		if err := s.giveBack(ctx, "user", got.id); err != nil {
			return err
		}
	}
	return nil
}

// Names that a careless key would mix up.
func subjectsApart(s *session) error {
	a := slow(3, 2)
	for _, subject := range []string{"user", "user:1", "user:", "1", "", "User", strings.Repeat("u", 300), "usér"} {
		for _, want := range []admission.Outcome{admission.Admitted, admission.Admitted, admission.ConcurrencyRejected, admission.RateRejected} {
			if _, err := s.expect(want, subject, a); err != nil {
				return fmt.Errorf("subject %q: %w", subject, err)
			}
		}
	}
	return nil
}

func changeKeepsShare(s *session) error {
	free, pro, fast := slow(10, 10), slow(50, 10), allowed(300, 50, 10)
	for i, c := range []struct {
		from, to policy.Allowance
		used     int
		left     int64 // after one more request under the new allowance
	}{
		{free, pro, 5, 24},
		{free, pro, 0, 49}, // never seen
		{pro, free, 1, 8},
		{pro, free, 43, 0},
		{free, fast, 5, 24},
		{free, free, 5, 4},
	} {
		subject := fmt.Sprint("user-", i)
		for range c.used {
			got, err := s.expect(admission.Admitted, subject, c.from)
			if err != nil {
				return err
			}
			if err := s.release(got); err != nil {
				return err
			}
		}
		got, err := s.expect(admission.Admitted, subject, c.to)
		if err != nil {
			return fmt.Errorf("from %v to %v with %d used: %w", c.from, c.to, c.used, err)
		}
		if got.Remaining() != c.left {
			return fmt.Errorf("from %v to %v with %d used: %d tokens left, want %d", c.from, c.to, c.used, got.Remaining(), c.left)
		}
	}
	return nil
}

// A tenth of the burst is less than a token as long as the burst is below ten.
func changesMintNothing(s *session) error {
	a := slow(10, 1)
	for range 9 {
		got, err := s.expect(admission.Admitted, "user", a)
		if err != nil {
			return err
		}
		if err := s.release(got); err != nil {
			return err
		}
	}
	for range 50 {
		for _, burst := range []int64{9, 5, 1, 7} {
			if _, err := s.expect(admission.RateRejected, "user", slow(burst, 1)); err != nil {
				return fmt.Errorf("after changing to and fro: %w", err)
			}
		}
	}
	return nil
}

func lowerCap(s *session) error {
	high, low := slow(1_000, 5), slow(1_000, 2)
	var running []answer
	for range 5 {
		got, err := s.expect(admission.Admitted, "user", high)
		if err != nil {
			return err
		}
		running = append(running, got)
	}
	for _, got := range running[:3] { // down to two, which is still not below two
		if _, err := s.expect(admission.ConcurrencyRejected, "user", low); err != nil {
			return err
		}
		if err := s.release(got); err != nil {
			return err
		}
	}
	if _, err := s.expect(admission.ConcurrencyRejected, "user", low); err != nil {
		return err
	}
	if err := s.release(running[3]); err != nil {
		return err
	}
	if _, err := s.expect(admission.Admitted, "user", low); err != nil {
		return fmt.Errorf("below the lower cap: %w", err)
	}
	for range 3 {
		if _, err := s.expect(admission.Admitted, "user", high); err != nil {
			return fmt.Errorf("a higher cap is there at once: %w", err)
		}
	}
	return nil
}

func zeroAllowance(s *session) error {
	a := slow(2, 2)
	if _, err := s.expect(admission.Admitted, "user", a); err != nil {
		return err
	}
	for _, subject := range []string{"user", "never seen"} {
		if d, err := s.Limiter.Admit(context.Background(), subject, policy.Allowance{}, s.newID()); err == nil {
			return fmt.Errorf("the zero allowance was decided on: %v", d.Outcome)
		}
		if _, err := s.expect(admission.Admitted, subject, a); err != nil {
			return fmt.Errorf("after the zero allowance was refused: %w", err)
		}
	}
	return nil
}

func doubledID(s *session) error {
	a := slow(10, 3)
	first, err := s.expect(admission.Admitted, "user", a)
	if err != nil {
		return err
	}
	if d, err := s.Limiter.Admit(context.Background(), "user", a, first.id); err == nil {
		return fmt.Errorf("decided again on an id in flight: %v", d.Outcome)
	}
	if _, err := s.expect(admission.Admitted, "user", a); err != nil {
		return fmt.Errorf("after an id in flight was refused: %w", err)
	}
	if err := s.release(first); err != nil {
		return err
	}
	again, err := s.ask("user", a, first.id)
	if err != nil {
		return errors.Join(errors.New("an id that is no longer in flight"), err)
	}
	return s.judge(again, a, 1)
}
