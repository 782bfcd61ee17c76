package steps

import (
	"cmp"
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
		{then, `^the whole burst was admitted$`, "somebody was admitted, somebody rejected, and never against the bucket", nil, s.wholeBurst},
		{then, `^(?:the share that was left was admitted|burst and rate were the plan's)$`, "every answer fits the bucket, by the allowance in force", nil, s.bucketWasRight},
		{then, `^(?:burst and rate were as agreed|burst and rate were still the plan's)$`, "every answer of the user fits the allowance in force, RateLimit-Limit too", nil, s.allowanceWasRight},
		{then, `^none of them got through$`, "every spelling was limited, or never got to the engine", nil, s.noneGotThrough},
		{then, `^as many got past the rate limit as the bucket held$`, "of what was sent at once", nil, s.parallelWasRight},
		{then, `^(?:no more than their bucket held were admitted|what had come back was admitted|every token came on time)$`, "every answer fits the bucket", nil, s.bothCame},
		{then, `^(?:exactly one token was spent|each of them spent exactly one token)$`, "the bucket is asked once more and lacks as many tokens as it should", nil, s.eachSpentOne},
		{then, `^no token was spent$`, "the bucket is asked once more and lacks nothing", nil, s.spentWhatIsDue},
		{then, `^the answer is a rate rejection$`, "the latest answer is a 429 for an empty bucket", nil, func() error { return s.isRateRejection(s.answer()) }},
		{then, `^the answer is a concurrency rejection$`, "the latest answer is a 429 for a full cap", nil, func(ctx context.Context) error { return s.isCapRejection(ctx, s.answer()) }},
		{then, `^each answer is a concurrency rejection$`, "each is a 429 for a full cap", nil, s.eachIsCapRejection},
		{then, `^the answer is no rejection$`, "the latest answer got past bucket and cap", nil, s.isNoRejection},
		{then, `^the answer has status (\d+) and the error shape$`, "the latest answer, once past bucket and cap", nil, s.hasStatus},
		{then, `^the answer has the error shape$`, "requestId, errorCode and message, none of them empty", nil, s.hasErrorShape},
		{then, `^it carries the RateLimit headers$`, "the latest answer has all three", nil, s.carriesHeaders},
		{then, `^its headers are single plain integers, Remaining not above Limit$`, "the latest answer", nil, s.headersArePlain},
		{then, `^its RateLimit headers describe the bucket$`, "and say nothing of the cap", nil, s.headersDescribeBucket},
		{then, `^(RateLimit-Limit) was the burst$`, "on every answer", nil, s.headerWasRight},
		{then, `^(RateLimit-Remaining) was always the whole tokens left$`, "on every answer", nil, s.headerMoved},
		{then, `^(RateLimit-Reset) was always the seconds until the bucket is full$`, "on every answer", nil, s.headerMoved},
		{then, `^(Retry-After) is what it would have been$`, "whatever the date is", nil, s.headerIsUnmoved},
		{then, `^(Retry-After) was always the seconds until the next token$`, "on every rate rejection", nil, s.headerWasRight},
		{then, `^the answer says Retry-After: 1$`, "on a concurrency rejection", nil, s.saysRetryAfterOne},
		{then, `^the answer forbids caches to store it$`, "on a 429", nil, s.forbidsCaches},
		{then, `^each answer has a request id of its own$`, "and the error bodies hold the same", nil, s.verdict},
		{then, `^the answers have other ids$`, "than the client chose", nil, s.haveOtherIDs},
		{then, `^each of them answers, without RateLimit headers$`, "and none is a 429", nil, s.outsideAnswers},
		{then, `^all of them are in flight$`, "none was rejected", needs{contract.NeedHold}, s.areInFlight},
		{then, `^exactly the cap is in flight$`, "the rest were rejected", needs{contract.NeedHold}, s.areInFlight},
		{then, `^their cap is exact(?: but for the one in flight)?$`, "as many as the cap get in, and not one more; they are let go again", needs{contract.NeedHold}, s.capIsExact},
		{then, `^once the work has ended their cap is exact$`, "as many as the cap get in, and not one more", needs{contract.NeedEngine, contract.NeedGates}, s.capIsExactOnceWorkEnds},
	}
}

// wholeBurst counts what a full bucket admitted. Where that is right, headers
// that tell of another level are wrong, and not the bucket.
func (s *Scenario) wholeBurst() error {
	for _, u := range s.they {
		got := s.of(u)
		if i := slices.IndexFunc(got, func(e exchange) bool { return !paid(e) && !rateRejected(e) }); i >= 0 {
			return fmt.Errorf("%w: neither admitted nor rejected for the rate: %s", ErrInconclusive, statusAndCode(got[i]))
		}
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
		clause := s.clause.ID
		if clause == "RATE-3" && admitted < a.Burst { // that is about too many
			clause = "RATE-1"
		}
		return s.brokenFor(clause, last, "requests admitted", fmt.Sprintf("%d to %d", a.Burst, a.Burst+back), fmt.Sprint(admitted))
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
	return s.verdictOn(s.they...)
}

// verdictOn is verdict for what a bucket gives: nothing can be said of one that
// never let anybody in.
func (s *Scenario) verdictOn(users ...*subject) error {
	if err := s.verdict(); err != nil {
		return err
	}
	for _, u := range users {
		if !u.served {
			return fmt.Errorf("%w: no request of user %s got past bucket and cap", ErrInconclusive, u.ID)
		}
	}
	return nil
}

// bothCame is bucketWasRight where somebody must have been admitted and somebody
// rejected: with only one of the two, the other half of the clause was not seen.
func (s *Scenario) bothCame() error {
	if err := s.bucketWasRight(); err != nil {
		return err
	}
	for _, u := range s.they {
		got := s.of(u)
		if !slices.ContainsFunc(got, paid) || !slices.ContainsFunc(got, rateRejected) {
			return fmt.Errorf("%w: of %d requests none was admitted, or none rejected for the rate", ErrInconclusive, len(got))
		}
	}
	return nil
}

// allowanceWasRight is bucketWasRight for a scenario about what a user may do.
func (s *Scenario) allowanceWasRight() error {
	all := s.asked()
	for _, u := range all {
		s.claimAllowance(u)
	}
	return s.verdictOn(all...)
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
	n := 0
	for _, e := range s.got {
		if rateRejected(e) && capRejected(e) {
			return fmt.Errorf("%w: a rejection does not say whether it is for the rate: %s", ErrInconclusive, statusAndCode(e))
		}
		if rateRejected(e) {
			n++
		}
	}
	if n == 0 || n == len(s.got) {
		return fmt.Errorf("%w: of %d requests at once %d were rejected for the rate", ErrInconclusive, len(s.got), n)
	}
	return nil
}

// eachSpentOne is spentWhatIsDue for requests that a token can have been spent on.
func (s *Scenario) eachSpentOne(ctx context.Context) error {
	for _, e := range s.got {
		if untouched(e) || rateRejected(e) {
			return fmt.Errorf("%w: nothing was to be spent on a request answered with %s", ErrInconclusive, statusAndCode(e))
		}
	}
	return s.spentWhatIsDue(ctx)
}

// spentWhatIsDue asks the bucket once more: the oracle knows what each request
// so far should have cost, and the answer has to say what is left.
func (s *Scenario) spentWhatIsDue(ctx context.Context) error {
	u := s.user()
	if s.other != nil && !slices.ContainsFunc(s.of(s.other), rateRejected) {
		return fmt.Errorf("%w: user %s spent and spent and was never rejected for the rate", ErrInconclusive, s.other.ID)
	}
	wide, before := u.Bucket.Width() >= oracle.Token, known(u)
	e, err := s.send(ctx, u, s.Valid())
	if err != nil {
		return err
	}
	s.claim(u)
	if err := s.verdictOn(u); err != nil {
		return err
	}
	switch {
	case untouched(e):
		return fmt.Errorf("%w: the bucket was not asked: %s", ErrInconclusive, statusAndCode(e))
	case e.Answer.Remaining.State != contract.Good:
		return fmt.Errorf("%w: no %s that can be read tells what was spent", ErrInconclusive, contract.HeaderRemaining)
	case wide:
		return fmt.Errorf("%w: %s, too little to tell a token more from a token less", ErrInconclusive, before)
	}
	return nil
}

// isRateRejection asks for a rejection, not for its form: the oracle sees to
// that, and blames the clause of the form. On a clock that runs a token may have
// come back meanwhile: then an admission is right, and a rejection shows nothing
// of an empty bucket; it is the refill's matter.
func (s *Scenario) isRateRejection(e exchange) error {
	if rateRejected(e) && e.decidedWrongly() {
		return fmt.Errorf("%w: a token should have come back meanwhile", ErrInconclusive)
	}
	s.claim(s.user())
	switch {
	case rateRejected(e):
		return s.verdict()
	case !e.decidedWrongly():
		return fmt.Errorf("%w: %s, and a token may have come back meanwhile: %s", ErrInconclusive, known(s.user()), statusAndCode(e))
	case e.late():
		return fmt.Errorf("%w: what this bucket holds back may come at any time: %s", ErrInconclusive, statusAndCode(e))
	}
	return s.broken(e, "status", "429 RATE_LIMIT_EXCEEDED", statusAndCode(e))
}

func (s *Scenario) isCapRejection(ctx context.Context, e exchange) error {
	if capRejected(e) {
		return s.verdict()
	}
	if err := s.byRight(e); err != nil {
		return err
	}
	if err := s.stood(ctx, e); err != nil {
		return err
	}
	if err := s.capIsLarger(ctx); err != nil {
		return err
	}
	return s.broken(e, "status", "429 CONCURRENCY_LIMIT_EXCEEDED", statusAndCode(e))
}

// eachIsCapRejection is for rejections that may free a place: where not even the
// first came, counting those that saw the cap full, it is the cap that is not kept.
func (s *Scenario) eachIsCapRejection(ctx context.Context) error {
	if first := s.got[0]; !capRejected(first) && !slices.ContainsFunc(s.user().held, (*target.Held).Capped) {
		if err := s.byRight(first); err != nil {
			return err
		}
		if err := s.stood(ctx, first); err != nil {
			return err
		}
		return s.brokenFor("CONC-1", first, "status", "429 CONCURRENCY_LIMIT_EXCEEDED", statusAndCode(first))
	}
	for _, e := range s.got {
		if err := s.isCapRejection(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

func (s *Scenario) isNoRejection() error {
	s.claim(s.user())
	e := s.answer()
	if err := s.byRight(e); err != nil && s.other != nil { // it is about the other's cap
		return err
	}
	switch {
	case untouched(e):
		return fmt.Errorf("%w: the bucket was not asked: %s", ErrInconclusive, statusAndCode(e))
	case capRejected(e) && s.other == nil && len(s.user().held) == 0:
		return s.brokenFor("CONC-6", e, "status", "no rejection: nothing is in flight", statusAndCode(e))
	case s.clause.ID == "RATE-8" && rateRejected(e) && s.user().late:
		return fmt.Errorf("%w: tokens of this bucket were late before anything was rejected: %s", ErrInconclusive, statusAndCode(e))
	case rateRejected(e), capRejected(e):
		return s.broken(e, "status", "no rejection", statusAndCode(e))
	}
	return s.verdict()
}

func statusAndCode(e exchange) string {
	if code := cmp.Or(e.Answer.Said.Code, e.Answer.Body.ErrorCode.Value); code != "" {
		return fmt.Sprintf("%d %s", e.Status, code)
	}
	return fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status))
}

func (s *Scenario) hasStatus(status int) error {
	e := s.answer()
	if !paid(e) {
		return fmt.Errorf("%w: refused before it was looked at: %s", ErrInconclusive, statusAndCode(e))
	}
	if want := s.Wording().Reply(status).Status; e.Status != want {
		return s.broken(e, "status", fmt.Sprint(want), statusAndCode(e))
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

func (s *Scenario) forbidsCaches() error {
	if e := s.answer(); e.Status != http.StatusTooManyRequests {
		return fmt.Errorf("%w: the answer is no 429 but %s", ErrInconclusive, statusAndCode(e))
	}
	return s.verdict()
}

func (s *Scenario) haveOtherIDs() error {
	for _, e := range s.got {
		switch id := e.Answer.RequestID; {
		case id.Value == ownID:
			return s.broken(e, contract.HeaderRequestID, "an id of the server's", ownID)
		case id.State != contract.Good:
			return fmt.Errorf("%w: %s is %s", ErrInconclusive, contract.HeaderRequestID, id.State)
		}
	}
	return s.verdict()
}

func (s *Scenario) outsideAnswers() error {
	outside := s.OutsideQuotas()
	for _, e := range s.got {
		if slices.Contains(outside, e.Path) && (e.Status == http.StatusNotFound || e.Status >= http.StatusInternalServerError) {
			return fmt.Errorf("%w: %s is not there to be asked: %s", ErrInconclusive, e.Path, statusAndCode(e))
		}
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
func (s *Scenario) areInFlight(ctx context.Context) error {
	u := s.user()
	a := u.Bucket.Allowance()
	in, out := int64(len(u.held)), int64(len(s.got))
	want := min(in+out, a.Concurrency)
	for _, e := range s.got {
		if err := s.byRight(e); err != nil {
			return err
		}
		if !capRejected(e) {
			return fmt.Errorf("%w: a request that was to stay in flight was answered with %s", ErrInconclusive, statusAndCode(e))
		}
	}
	beside := func(e exchange) bool { return e.Beside }
	switch {
	case in == want:
		return s.verdict()
	case in > want:
		if err := s.stood(ctx, exchange{who: u}); err != nil {
			return err
		}
	case slices.ContainsFunc(s.got, beside):
		return fmt.Errorf("%w: %d of %d are in flight, and one of those that were to see them may have had a place", ErrInconclusive, in, want)
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
