package steps

import (
	"context"
	"fmt"
	"time"

	"github.com/invoicespec/brimline/conformance/target"
)

// Wait is a wait of a scenario that is long enough to be told of.
type Wait struct {
	User string        // whose bucket it is about; empty: nobody's
	For  time.Duration // how long it will take; 0: until somebody else is done
	What string        // what is waited for
}

// tellable is how long a wait lasts of which nobody need hear.
const tellable = 3 * time.Second

// Waited is how long the scenario has waited so far, for tokens and for others,
// where waiting takes time.
func (s *Scenario) Waited() time.Duration { return s.waited }

// Wait lets the target's time go by because the scenario is about that.
func (s *Scenario) Wait(ctx context.Context, d time.Duration) error {
	return s.pass(ctx, d, Wait{What: "the time that the scenario is about"})
}

// pass lets the target's time go by.
func (s *Scenario) pass(ctx context.Context, d time.Duration, w Wait) error {
	for _, u := range s.they {
		u.emptied = false
	}
	if s.Movable() {
		return s.Target.Wait(ctx, d)
	}
	if w.For = d; d >= tellable {
		s.tell(w)
	}
	defer s.clocked()()
	return s.Target.Wait(ctx, d)
}

// queue waits for others, who do not say how long they will take.
func (s *Scenario) queue(w Wait, wait func() error) error {
	timer := time.AfterFunc(tellable, func() { s.tell(w) })
	defer timer.Stop()
	defer s.clocked()()
	return wait()
}

func (s *Scenario) clocked() (done func()) {
	began := time.Now()
	return func() { s.waited += time.Since(began) }
}

func (s *Scenario) tell(w Wait) {
	if s.suite.waits != nil {
		s.suite.waits(s, w)
	}
}

// ensure makes sure of n tokens, or of the whole burst if that is less.
func (s *Scenario) ensure(ctx context.Context, u *subject, n int64) error {
	_, err := s.learn(ctx, u, n)
	for d := s.ReadyIn(u.User, n); err == nil && d > 0; d = s.ReadyIn(u.User, n) {
		a := u.Bucket.Allowance()
		err = asInconclusive(s.pass(ctx, d, Wait{User: u.ID, What: fmt.Sprintf("%d tokens of plan %s, which gives %d a minute", min(n, a.Burst), u.Plan, a.RequestsPerMinute)}))
	}
	return err
}

// learn asks for the level of u's bucket if that is what keeps n tokens from
// being certain; false: there was no need.
func (s *Scenario) learn(ctx context.Context, u *subject, n int64) (asked bool, err error) {
	e, err := s.Learn(ctx, u.User, n)
	if e.Method == "" {
		return false, asInconclusive(err)
	}
	_, err = s.take(exchange{Exchange: e, who: u})
	return true, err
}

// ReadyFor waits until so many attempts from an address, or its whole burst if
// that is less, would certainly be let through.
func (s *Scenario) ReadyFor(ctx context.Context, a *target.Address, attempts int64) error {
	for {
		d := s.AttemptsIn(a, attempts)
		if d <= 0 {
			return nil
		}
		policy := s.Anonymous()
		what := fmt.Sprintf("%d attempts of an address, which gets %d a minute", min(attempts, policy.Burst), policy.RequestsPerMinute)
		if err := s.pass(ctx, d, Wait{What: what}); err != nil {
			return err
		}
	}
}
