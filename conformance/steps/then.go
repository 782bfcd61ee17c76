package steps

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
)

func (s *Scenario) thens() []sentence {
	return []sentence{
		{then, `^the whole burst was admitted$`, s.wholeBurst},
		{then, `^(?:no more than their bucket held were admitted|what had come back was admitted|the share that was left was admitted|burst and rate were the plan's)$`, s.bucketWasRight},
		{then, `^(?:burst and rate were as agreed|burst and rate were still the plan's)$`, s.allowanceWasRight},
		{then, `^none of them got through$`, s.noneGotThrough},
		{then, `^as many got past the rate limit as the bucket held$`, s.parallelWasRight},
		{then, `^every token came on time$`, s.bucketWasRight},
		{then, `^(?:exactly one token was spent|no token was spent|each of them spent exactly one token)$`, s.spentWhatIsDue},
		{then, `^the answer is a rate rejection$`, func() error { return s.isRateRejection(s.answer()) }},
		{then, `^the answer is a concurrency rejection$`, func() error { return s.isCapRejection(s.answer()) }},
		{then, `^each answer is a concurrency rejection$`, s.eachIsCapRejection},
		{then, `^the answer is no rejection$`, s.isNoRejection},
		{then, `^the answer has status (\d+) and the error shape$`, s.hasStatus},
		{then, `^the answer has the error shape$`, s.hasErrorShape},
		{then, `^it carries the RateLimit headers$`, s.carriesHeaders},
		{then, `^its headers are single plain integers, Remaining not above Limit$`, s.headersArePlain},
		{then, `^its RateLimit headers describe the bucket$`, s.headersDescribeBucket},
		{then, `^(RateLimit-Limit) was the burst$`, s.headerWasRight},
		{then, `^(RateLimit-Remaining) was always the whole tokens left$`, s.headerWasRight},
		{then, `^(RateLimit-Reset) was always the seconds until the bucket is full$`, s.headerWasRight},
		{then, `^(Retry-After) was always the seconds until the next token$`, s.headerWasRight},
		{then, `^the answer says Retry-After: 1$`, s.saysRetryAfterOne},
		{then, `^the answer forbids caches to store it$`, s.forbidsCaches},
		{then, `^each answer has a request id of its own$`, s.verdict},
		{then, `^the answers have other ids$`, s.haveOtherIDs},
		{then, `^each of them answers, without RateLimit headers$`, s.outsideAnswers},
		{then, `^all of them are in flight$`, func() error { return s.areInFlight() }},
		{then, `^exactly the cap is in flight$`, func() error { return s.areInFlight() }},
		{then, `^their cap is exact(?: but for the one in flight)?$`, s.capIsExact},
		{then, `^once the work has ended their cap is exact$`, s.capIsExactOnceWorkEnds},
	}
}

// wholeBurst counts what a full bucket admitted. Where that is right, headers
// that tell of another level are wrong, and not the bucket.
func (s *Scenario) wholeBurst() error {
	for _, u := range s.they {
		got := s.of(u)
		a := u.Bucket.Allowance()
		last := got[len(got)-1]
		back := a.RequestsPerMinute * (last.Span.To - got[0].Span.From) / oracle.Token
		admitted := int64(len(got) - 1)
		if rateRejected(last) && a.Burst <= admitted && admitted <= a.Burst+back {
			s.blameHeaders(u)
			continue
		}
		s.claim(u)
		if err := s.verdict(); err != nil {
			return err
		}
		if !rateRejected(last) {
			return fmt.Errorf("%w: the last answer was %s", ErrInconclusive, statusAndCode(last))
		}
		return s.broken(last, "requests admitted", fmt.Sprintf("%d to %d", a.Burst, a.Burst+back), fmt.Sprint(admitted))
	}
	return s.verdict()
}

// bucketWasRight judges a drain by the oracle's word on each decision.
func (s *Scenario) bucketWasRight() error {
	for _, u := range s.they {
		if len(s.of(u)) == 0 {
			return fmt.Errorf("nothing was sent for user %s", u.ID)
		}
		s.claim(u)
	}
	return s.verdict()
}

// allowanceWasRight is bucketWasRight for a scenario about what a user may do.
func (s *Scenario) allowanceWasRight() error {
	for _, u := range s.asked() {
		s.claimAllowance(u)
	}
	return s.verdict()
}

// asked is everybody who sent what the sentence before speaks of.
func (s *Scenario) asked() []*subject {
	var all []*subject
	for _, e := range s.got {
		if e.who != nil && !slices.Contains(all, e.who) {
			all = append(all, e.who)
		}
	}
	return all
}

func (s *Scenario) parallelWasRight() error {
	s.claim(s.user())
	if err := s.verdict(); err != nil {
		return err
	}
	for _, e := range s.got {
		if rateRejected(e) {
			return nil
		}
	}
	return fmt.Errorf("%w: none of %d requests at once was rejected for the rate", ErrInconclusive, len(s.got))
}

// spentWhatIsDue asks the bucket once more: the oracle knows what each request
// so far should have cost.
func (s *Scenario) spentWhatIsDue(ctx context.Context) error {
	if _, err := s.send(ctx, s.user(), s.Valid()); err != nil {
		return err
	}
	s.claim(s.user())
	return s.verdict()
}

// isRateRejection asks for a rejection, not for its form: the oracle sees to
// that, and blames the clause of the form.
func (s *Scenario) isRateRejection(e exchange) error {
	s.claim(s.user())
	if rateRejected(e) {
		return s.verdict()
	}
	return s.broken(e, "status", "429 RATE_LIMIT_EXCEEDED", statusAndCode(e))
}

func (s *Scenario) isCapRejection(e exchange) error {
	if capRejected(e) {
		return s.verdict()
	}
	return s.broken(e, "status", "429 CONCURRENCY_LIMIT_EXCEEDED", statusAndCode(e))
}

func (s *Scenario) eachIsCapRejection() error {
	for _, e := range s.got {
		if err := s.isCapRejection(e); err != nil {
			return err
		}
	}
	return nil
}

func (s *Scenario) isNoRejection() error {
	s.claim(s.user())
	e := s.answer()
	switch {
	case capRejected(e) && s.other == nil && len(s.user().held) == 0:
		return s.brokenFor("CONC-6", e, "status", "no rejection: nothing is in flight", statusAndCode(e))
	case rateRejected(e), capRejected(e):
		return s.broken(e, "status", "no rejection", statusAndCode(e))
	}
	return s.verdict()
}

func statusAndCode(e exchange) string {
	if code := e.Answer.Body.ErrorCode.Value; code != "" {
		return fmt.Sprintf("%d %s", e.Status, code)
	}
	return fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status))
}

func (s *Scenario) hasStatus(status int) error {
	e := s.answer()
	if e.Status != status {
		return s.broken(e, "status", fmt.Sprint(status), statusAndCode(e))
	}
	if wrong := shape(e.Answer); len(wrong) > 0 {
		return s.broken(e, wrong[0].Field, wrong[0].Expected, wrong[0].Got)
	}
	return s.verdict()
}

func (s *Scenario) hasErrorShape() error {
	if e := s.answer(); e.Status < http.StatusBadRequest {
		return fmt.Errorf("%w: the answer is no error but %s", ErrInconclusive, statusAndCode(e))
	}
	return s.verdict()
}

// rateLimits is the three headers of the bucket.
func rateLimits(a contract.Answer) map[string]contract.Number {
	return map[string]contract.Number{
		contract.HeaderLimit: a.Limit, contract.HeaderRemaining: a.Remaining, contract.HeaderReset: a.Reset,
	}
}

func (s *Scenario) carriesHeaders() error {
	e := s.answer()
	for name, n := range rateLimits(e.Answer) {
		if n.State == contract.Absent {
			return s.broken(e, name, "present", "absent")
		}
	}
	return s.verdict()
}

func (s *Scenario) headersArePlain() error {
	a := s.answer().Answer
	if a.Limit.State == contract.Absent && a.Remaining.State == contract.Absent && a.Reset.State == contract.Absent {
		return fmt.Errorf("%w: the answer carries no RateLimit header", ErrInconclusive)
	}
	return s.verdict()
}

// headersDescribeBucket makes every wrong header of the latest answer a breach
// of the rule's clause, unless it was wrong before anything was in flight.
func (s *Scenario) headersDescribeBucket() error {
	e := s.answer()
	for i := s.mark; i < len(s.found); i++ {
		f := &s.found[i]
		before := slices.ContainsFunc(s.found[:s.mark], func(g found) bool { return g.Field == f.Field && g.who == f.who })
		if _, is := rateLimits(e.Answer)[f.Field]; is && f.who == e.who && !before {
			f.Clause = s.clause.ID
		}
	}
	return s.verdict()
}

// headerWasRight relies on the oracle, which has judged each value; it only
// makes sure that there were any.
func (s *Scenario) headerWasRight(name string) error {
	for _, e := range s.got {
		if e.Header.Get(name) != "" {
			return s.verdict()
		}
	}
	return fmt.Errorf("%w: no answer carries %s", ErrInconclusive, name)
}

func (s *Scenario) saysRetryAfterOne() error {
	e := s.answer()
	if n := e.Answer.RetryAfter; n.State != contract.Good || n.Value != 1 {
		return s.broken(e, contract.HeaderRetryAfter, "1", n.String())
	}
	return s.verdict()
}

func (s *Scenario) forbidsCaches() error {
	if e := s.answer(); e.Status != http.StatusTooManyRequests {
		return fmt.Errorf("%w: the answer is no 429 but %s", ErrInconclusive, statusAndCode(e))
	}
	return s.verdict()
}

func (s *Scenario) haveOtherIDs() error {
	for _, e := range s.got {
		if e.Answer.RequestID.Value == ownID {
			return s.broken(e, contract.HeaderRequestID, "an id of the server's", ownID)
		}
	}
	return s.verdict()
}

func (s *Scenario) outsideAnswers() error {
	for _, e := range s.got {
		if e.Status == http.StatusTooManyRequests {
			return s.broken(e, "status", "an answer", statusAndCode(e))
		}
		for name, n := range rateLimits(e.Answer) {
			if n.State != contract.Absent {
				return s.broken(e, name, "absent", n.String())
			}
		}
	}
	return s.verdict()
}

// areInFlight judges requests that were started at once: the cap of them in
// flight, the rest rejected, neither more nor less.
func (s *Scenario) areInFlight() error {
	u := s.user()
	a := u.Bucket.Allowance()
	in, out := int64(len(u.held)), int64(len(s.got))
	want := min(in+out, a.Concurrency)
	for _, e := range s.got {
		if !capRejected(e) {
			return fmt.Errorf("%w: a request that was to stay in flight was answered with %s", ErrInconclusive, statusAndCode(e))
		}
	}
	if in == want {
		return s.verdict()
	}
	s.note(exchange{who: u}, []oracle.Finding{{
		Clause: s.clause.ID, Field: "requests in flight",
		Expected: fmt.Sprintf("%d of %d started at once", want, in+out), Ground: fmt.Sprintf("the cap is %d", a.Concurrency),
		Got: fmt.Sprintf("%d", in),
	}})
	return s.verdict()
}

// capIsExact blames a cap that has become too small on the rule's clause. One too
// large is a permit given back more than once, unless the rule is about the cap.
func (s *Scenario) capIsExact(ctx context.Context) error {
	large := s.clause.ID
	if strings.HasPrefix(large, "PERMIT-") || large == "RATE-6" {
		large = "PERMIT-8"
	}
	return s.each(func(u *subject) error {
		if err := s.exactCap(ctx, u, s.clause.ID, large); err != nil {
			return err
		}
		return s.verdict()
	})
}

func (s *Scenario) capIsExactOnceWorkEnds(ctx context.Context) error {
	u := s.user().User
	if err := s.OpenGate(ctx, u, target.PlaceEngine); err != nil {
		return setup(err)
	}
	if err := s.SetEngine(ctx, u, control.EngineOK); err != nil {
		return setup(err)
	}
	return s.capIsExact(ctx)
}
