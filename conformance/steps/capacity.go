package steps

import (
	"context"
	"fmt"
	"net/http"

	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
)

func (s *Scenario) inFlightInEngine(ctx context.Context) error {
	u := s.user()
	rejection, err := s.fill(ctx, u, 1, target.PlaceEngine)
	if err == nil && rejection != nil {
		return s.belowTheCap("CONC-6", *rejection, u, 1)
	}
	return err
}

// goneDuringResponse leaves a request whose work is done.
func (s *Scenario) goneDuringResponse(ctx context.Context) error {
	if err := s.abandon(ctx, target.PlaceResponse, (*target.Held).Reset); err != nil {
		return err
	}
	return asSetup(s.OpenGate(ctx, s.user().User, target.PlaceResponse))
}

// sendCapAtOnce sends as many requests at once as may be in flight.
func (s *Scenario) sendCapAtOnce(ctx context.Context) error {
	u := s.user()
	rs := make([]target.Request, u.Bucket.Allowance().Concurrency)
	for i := range rs {
		rs[i] = s.Valid()
	}
	return s.sends(func() ([]exchange, error) { return s.together(ctx, u, rs) })
}

func (s *Scenario) noMoreThanLeft() error {
	n := int64(0)
	for _, e := range s.got {
		if e.Status == s.ExpectValid() {
			n++
		}
	}
	if n > s.operations.Left {
		return s.broken(s.answer(), "operations carried out", fmt.Sprintf("at most %d", s.operations.Left), fmt.Sprint(n))
	}
	if n == 0 && s.operations.Left > 0 {
		return fmt.Errorf("%w: none of %d requests at once succeeded", ErrInconclusive, len(s.got))
	}
	return s.verdict()
}

func (s *Scenario) saysExhausted() error {
	if e := s.answer(); e.Status == s.ExpectValid() || e.Status >= http.StatusInternalServerError {
		return s.broken(e, "status", "that no operation is left", statusAndCode(e))
	} else if !paid(e) {
		return fmt.Errorf("%w: the answer tells nothing of operations: %s", ErrInconclusive, statusAndCode(e))
	}
	return s.verdict()
}

func (s *Scenario) isSuccess() error {
	if e := s.answer(); e.Status != s.ExpectValid() {
		if err := s.byRight(e); err != nil {
			return err
		}
		if e.Status >= http.StatusInternalServerError { // as where the machine is short of processors
			return fmt.Errorf("%w: a valid request failed by itself: %s", ErrInconclusive, statusAndCode(e))
		}
		return s.broken(e, "status", fmt.Sprint(s.ExpectValid()), statusAndCode(e))
	}
	return s.verdict()
}

// flightIsCharged lets go of the one request that holds an operation.
func (s *Scenario) flightIsCharged(ctx context.Context) error {
	e, err := s.endOne(ctx)
	if err != nil {
		return err
	}
	s.got = []exchange{e}
	if err := s.isSuccess(); err != nil {
		return err
	}
	return s.charged(ctx, 1)
}

// userCharged counts what the user was charged in all.
func (s *Scenario) userCharged(ctx context.Context, n int64) error {
	a, err := s.UserAudit(ctx, s.user().User, func(a control.Audit) bool { return a.Charges == n })
	if err != nil {
		return setup(err)
	}
	if a.Charges != n {
		return s.broken(exchange{who: s.user()}, "charges", fmt.Sprint(n), fmt.Sprint(a.Charges))
	}
	return s.verdict()
}
