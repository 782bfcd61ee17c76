package steps

import (
	"context"
	"fmt"
	"slices"

	"github.com/invoicespec/brimline/conformance/contract"
)

// rateLimits is the three headers of the bucket.
func rateLimits(a contract.Answer) map[string]contract.Number {
	return map[string]contract.Number{
		contract.HeaderLimit: a.Limit, contract.HeaderRemaining: a.Remaining, contract.HeaderReset: a.Reset,
	}
}

func (s *Scenario) carriesHeaders() error {
	e := s.answer()
	if untouched(e) {
		return fmt.Errorf("%w: there is no bucket to describe: %s", ErrInconclusive, statusAndCode(e))
	}
	for name, n := range rateLimits(e.Answer) {
		if n.State == contract.Absent {
			return s.broken(e, name, "present", "absent")
		}
	}
	return s.verdict()
}

func (s *Scenario) headersArePlain() error {
	if err := s.verdict(); err != nil {
		return err
	}
	for name, n := range rateLimits(s.answer().Answer) {
		if n.State != contract.Good {
			return fmt.Errorf("%w: %s is %s", ErrInconclusive, name, n.State)
		}
	}
	return nil
}

// headersDescribeBucket makes every wrong header of the latest answer a breach
// of the rule's clause, unless it is as wrong while nothing is in flight: before
// that, or once it was let go.
func (s *Scenario) headersDescribeBucket(ctx context.Context) error {
	e, end := s.answer(), len(s.found)
	if end > s.mark {
		if err := s.release(ctx, s.user()); err != nil {
			return err
		}
		if _, err := s.send(ctx, s.user(), s.passing()); err != nil {
			return err
		}
	}
	for i := s.mark; i < end; i++ {
		f := &s.found[i]
		same := func(g found) bool { return g.Field == f.Field && g.who == f.who }
		anyway := slices.ContainsFunc(s.found[:s.mark], same) || slices.ContainsFunc(s.found[end:], same)
		if _, is := rateLimits(e.Answer)[f.Field]; is && f.who == e.who && !anyway {
			f.Clause = s.clause.ID
		}
	}
	return s.verdict()
}

// headerIsUnmoved makes a header that is wrong since the Givens were done a breach
// of the rule's clause, whatever else would explain it: nothing else happened.
func (s *Scenario) headerIsUnmoved(name string) error {
	for i := s.mark; i < len(s.found); i++ {
		if f := &s.found[i]; f.Field == name {
			f.Clause = s.clause.ID
		}
	}
	return s.headerWasRight(name)
}

// headerWasRight relies on the oracle, which has judged each value that can be
// read; it makes sure that each answer that should carry one does.
func (s *Scenario) headerWasRight(name string) error {
	if err := s.verdict(); err != nil {
		return err
	}
	seen := false
	for _, e := range s.got {
		n, always := rateLimits(e.Answer)[name]
		if !always {
			n = e.Answer.RetryAfter
		}
		switch {
		case n.State == contract.Good:
			seen = true
		case n.State != contract.Absent:
			return fmt.Errorf("%w: %s cannot be read: %s", ErrInconclusive, name, n)
		case always || rateRejected(e):
			return fmt.Errorf("%w: an answer carries no %s: %s", ErrInconclusive, name, statusAndCode(e))
		}
	}
	if !seen {
		return fmt.Errorf("%w: no answer carries %s", ErrInconclusive, name)
	}
	return nil
}

// headerMoved is headerWasRight for a header that every request moves.
func (s *Scenario) headerMoved(name string) error {
	if err := s.headerWasRight(name); err != nil {
		return err
	}
	if !slices.ContainsFunc(s.got, paid) {
		return fmt.Errorf("%w: none of %d requests got past bucket and cap", ErrInconclusive, len(s.got))
	}
	return nil
}

func (s *Scenario) saysRetryAfterOne() error {
	e := s.answer()
	if !capRejected(e) {
		return fmt.Errorf("%w: the answer is no concurrency rejection but %s", ErrInconclusive, statusAndCode(e))
	}
	if rateRejected(e) {
		return fmt.Errorf("%w: the rejection does not say whether it is for the cap: %s", ErrInconclusive, statusAndCode(e))
	}
	if n := e.Answer.RetryAfter; n.State != contract.Good || n.Value != 1 {
		return s.broken(e, contract.HeaderRetryAfter, "1", n.String())
	}
	return s.verdict()
}
