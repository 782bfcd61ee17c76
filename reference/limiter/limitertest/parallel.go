package limitertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/policy"
)

// allAtOnce sends more requests than there are tokens, together. In their order
// they are judged like requests that came one by one.
func allAtOnce(s *session) error {
	for i, a := range []policy.Allowance{slow(1, 1), slow(40, 100), slow(40, 7), allowed(60_000, 20, 200)} {
		subject := fmt.Sprint("user-", i)
		var all gathering
		all.together(2*int(a.Burst())+20, func(worker int) {
			all.add(s.ask(subject, a, fmt.Sprint("parallel-", worker)))
		})
		if err := s.judgeAll(&all, a, func(answer) int64 { return int64(len(s.book(subject).held)) }); err != nil {
			return err
		}
		admitted, passed := 0, 0
		for _, got := range all.answers {
			if got.Outcome == admission.Admitted {
				admitted++
			}
			if got.Outcome != admission.RateRejected {
				passed++
			}
		}
		if int64(passed) < a.Burst() {
			return fmt.Errorf("%d of a burst of %d got past the bucket", passed, a.Burst())
		}
		if want := min(passed, int(a.Concurrency())); admitted != want {
			return fmt.Errorf("%d admitted, want %d: %d got past the bucket and the cap is %d", admitted, want, passed, a.Concurrency())
		}
	}
	return nil
}

// comingAndGoing takes and gives back permits from many sides. How many are in
// flight at a decision is not known from outside then; that there are never more
// than the cap is, and that none is missing in the end.
func comingAndGoing(s *session) error {
	const workers, rounds = 32, 50
	a := slow(10_000, 5)
	var all gathering
	var holding, most atomic.Int64
	all.together(workers, func(worker int) {
		for round := range rounds {
			got, err := s.ask("user", a, fmt.Sprint(worker, "-", round))
			if err == nil && got.Outcome == admission.Admitted {
				n := holding.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				runtime.Gosched() // so that others come while this one is in flight
				holding.Add(-1)
				err = s.giveBack(context.Background(), "user", got.id)
			}
			all.add(got, err)
		}
	})
	if most.Load() > a.Concurrency() {
		return fmt.Errorf("%d in flight at once, the cap is %d", most.Load(), a.Concurrency())
	}
	if err := s.judgeAll(&all, a, func(got answer) int64 { return got.InFlight }); err != nil {
		return err
	}
	for _, got := range all.answers {
		if got.InFlight > a.Concurrency() {
			return fmt.Errorf("%d in flight, the cap is %d", got.InFlight, a.Concurrency())
		}
	}
	clear(s.book("user").held)
	for range a.Concurrency() {
		if _, err := s.expect(admission.Admitted, "user", a); err != nil {
			return fmt.Errorf("after all were given back: %w", err)
		}
	}
	_, err := s.expect(admission.ConcurrencyRejected, "user", a)
	return err
}

// judgeAll judges answers in their order.
func (s *session) judgeAll(all *gathering, a policy.Allowance, inFlight func(answer) int64) error {
	if len(all.errs) > 0 {
		return errors.Join(all.errs...)
	}
	slices.SortFunc(all.answers, func(x, y answer) int { return cmp.Compare(x.Order, y.Order) })
	for i, got := range all.answers {
		if err := s.judge(got, a, inFlight(got)); err != nil {
			return fmt.Errorf("decision %d of %d at once: %w", i+1, len(all.answers), err)
		}
	}
	return nil
}

// gathering collects what goroutines bring.
type gathering struct {
	mu      sync.Mutex
	answers []answer
	errs    []error
}

func (g *gathering) add(got answer, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.errs = append(g.errs, err)
		return
	}
	g.answers = append(g.answers, got)
}

// together runs f in n goroutines that start at once, and waits for them.
func (g *gathering) together(n int, f func(worker int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for worker := range n {
		all.Go(func() {
			<-start
			f(worker)
		})
	}
	close(start)
	all.Wait()
}
