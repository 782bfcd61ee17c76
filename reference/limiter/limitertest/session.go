package limitertest

import (
	"context"
	"fmt"
	"math/big"
	"strconv"
	"time"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/bucket/buckettest"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
)

// session is one adapter and the books kept on it beside it.
type session struct {
	Harness
	books map[string]*book
	ids   int
	order uint64 // of the latest decision judged
}

// book is what a subject must have: tokens by the model, slots by request id.
type book struct {
	bucket buckettest.Model
	held   map[string]bool
}

// answer is a decision and the span of instants in which it was made.
type answer struct {
	limiter.Decision
	subject, id string
	from, to    bucket.Instant
}

func newSession(h Harness) *session { return &session{Harness: h, books: map[string]*book{}} }

func (s *session) book(subject string) *book {
	b, ok := s.books[subject]
	if !ok {
		b = &book{held: map[string]bool{}}
		s.books[subject] = b
	}
	return b
}

func (s *session) newID() string {
	s.ids++
	return "request-" + strconv.Itoa(s.ids)
}

// ask admits without judging, so that many may ask at once.
func (s *session) ask(subject string, a policy.Allowance, id string) (answer, error) {
	from := s.Instant()
	d, err := s.Limiter.Admit(context.Background(), subject, a, id)
	to := s.Instant()
	if err != nil {
		return answer{}, fmt.Errorf("admit under %v: %w", a, err)
	}
	return answer{Decision: d, subject: subject, id: id, from: from, to: to}, nil
}

// admit asks for one more request and judges the answer.
func (s *session) admit(subject string, a policy.Allowance) (answer, error) {
	got, err := s.ask(subject, a, s.newID())
	if err != nil {
		return got, err
	}
	b := s.book(subject)
	return got, s.judge(got, a, int64(len(b.held)))
}

// expect is admit where the outcome is known beforehand.
func (s *session) expect(want admission.Outcome, subject string, a policy.Allowance) (answer, error) {
	got, err := s.admit(subject, a)
	if err == nil && got.Outcome != want {
		err = fmt.Errorf("outcome %v under %v, want %v", got.Outcome, a, want)
	}
	return got, err
}

// release gives back what answer holds, and wants that to work.
func (s *session) release(got answer) error {
	delete(s.book(got.subject).held, got.id)
	return s.giveBack(context.Background(), got.subject, got.id)
}

// giveBack releases without writing it in the books.
func (s *session) giveBack(ctx context.Context, subject, id string) error {
	if err := s.Limiter.Release(ctx, subject, id); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}

// judge holds the next decision, in Order, against the books: its instant is one
// at which it was asked, and every figure is exactly what follows from it.
func (s *session) judge(got answer, a policy.Allowance, inFlight int64) error {
	b := s.book(got.subject)
	at := int64(got.At)
	taken := b.bucket.Take(a.RequestsPerMinute(), a.Burst(), at)
	outcome := admission.Admitted
	switch {
	case !taken:
		outcome, inFlight = admission.RateRejected, 0
	case inFlight >= a.Concurrency():
		outcome = admission.ConcurrencyRejected
	}
	if outcome == admission.Admitted {
		b.held[got.id] = true
	}
	switch {
	case got.At < got.from || got.At > got.to:
		return fmt.Errorf("decided at %d µs, but asked between %d and %d", got.At, got.from, got.to)
	case got.Order <= s.order:
		return fmt.Errorf("order %d follows order %d", got.Order, s.order)
	case got.Allowance != a:
		return fmt.Errorf("decided under %v, asked under %v", got.Allowance, a)
	case got.Outcome != outcome:
		return fmt.Errorf("outcome %v under %v at %d µs, want %v with %s tokens left and %d in flight",
			got.Outcome, a, at, outcome, b.bucket.Tokens().FloatString(9), inFlight)
	case got.InFlight != inFlight:
		return fmt.Errorf("%v with %d in flight before it, want %d", outcome, got.InFlight, inFlight)
	case new(big.Rat).SetFrac64(got.Level, bucket.Token).Cmp(b.bucket.Tokens()) != 0:
		return fmt.Errorf("%v leaves a level of %d units under %v at %d µs, want %s tokens", outcome, got.Level, a, at, b.bucket.Tokens())
	case got.ToToken != buckettest.Ceil(b.bucket.ToToken(at)).Int64():
		return fmt.Errorf("%d µs to one token, want %s rounded up", got.ToToken, b.bucket.ToToken(at))
	case got.ToFull != buckettest.Ceil(b.bucket.ToFull(at)).Int64():
		return fmt.Errorf("%d µs to full, want %s rounded up", got.ToFull, b.bucket.ToFull(at))
	}
	s.order = got.Order
	select {
	case <-got.Lost:
		return fmt.Errorf("%v: the permit is lost as soon as it is taken", outcome)
	default:
		return nil
	}
}

// drain spends what subject has, giving every permit back, until the first rate
// rejection, which it returns. It fails after many more requests than there can
// be tokens.
func (s *session) drain(subject string, a policy.Allowance) (rejection answer, admitted int64, err error) {
	for {
		got, err := s.admit(subject, a)
		switch {
		case err != nil:
			return got, admitted, err
		case got.Outcome == admission.RateRejected:
			return got, admitted, nil
		}
		if admitted++; admitted > 1_000+100*a.Burst() {
			return got, admitted, fmt.Errorf("no rate rejection in %d requests under %v", admitted, a)
		}
		if err := s.release(got); err != nil {
			return got, admitted, err
		}
	}
}

// pass lets microseconds go by after answer's instant, as nearly as the clock allows.
func (s *session) pass(after answer, micros int64) {
	due := after.At + bucket.Instant(micros)
	for {
		missing := time.Duration(due-s.Instant()) * time.Microsecond
		switch {
		case missing <= 0:
			return
		case s.Advance != nil:
			s.Advance(missing)
		default:
			time.Sleep(missing)
		}
	}
}

func allowed(rpm, burst, concurrency int64) policy.Allowance {
	a, err := policy.NewAllowance(rpm, burst, concurrency)
	if err != nil {
		panic(err) // a case of this package is wrong
	}
	return a
}
