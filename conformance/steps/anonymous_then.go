package steps

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
)

// claimPool is claim for the pool of attempts.
func (s *Scenario) claimPool() error { return s.claimAttempts(func(found) bool { return true }) }

func (s *Scenario) claimAttempts(which func(found) bool) error {
	for i := s.mark; i < len(s.found); i++ {
		if f := &s.found[i]; f.Clause == "ANON-1" && which(*f) {
			f.Clause = s.clause.ID
		}
	}
	return s.verdict()
}

// burstOfAttempts is for a pool that something may have taken from: a rejection
// too early is that something's doing, one too late is not.
func (s *Scenario) burstOfAttempts() error {
	if err := s.claimAttempts(func(f found) bool { return f.status == http.StatusTooManyRequests }); err != nil {
		return err
	}
	if last := s.answer(); !rateRejected(last) {
		return fmt.Errorf("%w: the last attempt was answered with %s", ErrInconclusive, statusAndCode(last))
	}
	return nil
}

func (s *Scenario) wasTold() error {
	if err := s.claimPool(); err != nil {
		return err
	}
	if e := s.answer(); e.Answer.Status != http.StatusUnauthorized {
		return s.broken(e, "status", fmt.Sprint(s.Wording().Reply(http.StatusUnauthorized).Status), statusAndCode(e))
	}
	return nil
}

func (s *Scenario) wasWithoutPlace() error {
	if e := s.answer(); e.Status != http.StatusTooManyRequests || e.Answer.Body.ErrorCode.Value != contract.CodeConcurrencyLimited {
		return s.broken(e, "status", "429 CONCURRENCY_LIMIT_EXCEEDED", statusAndCode(e))
	}
	return s.verdict()
}

func (s *Scenario) wasAuthenticated() error {
	if last := len(s.tries) - 1; last >= 0 && !rateRejected(s.tries[last]) {
		return fmt.Errorf("%w: the address's pool did not empty: the last attempt was answered with %s", ErrInconclusive, statusAndCode(s.tries[last]))
	}
	if e := s.answer(); !s.authenticated(e) {
		return s.broken(e, "status", "an answer that tells of the user's bucket", statusAndCode(e))
	}
	return s.verdict()
}

// authenticated reports whether the answer to a valid request shows that it got
// past the key: it succeeded, or it tells of a user's bucket.
func (s *Scenario) authenticated(e exchange) bool {
	return e.Status == s.ExpectValid() || !untouched(e) && e.Answer.Limit.State != contract.Absent
}

// wasHeldToThePool is for attempts at an emptied pool: one that is let through
// though nothing can have come back is a breach, and one rejection at least has
// to show that it is this pool.
func (s *Scenario) wasHeldToThePool() error {
	if err := s.claimPool(); err != nil {
		return err
	}
	if !slices.ContainsFunc(s.got, rateRejected) {
		return fmt.Errorf("%w: attempts come back faster than an empty pool can be asked", ErrInconclusive)
	}
	return nil
}

// isGeneric checks the form of a rejection before authentication.
func (s *Scenario) isGeneric() error {
	e := s.answer()
	if e.Status != http.StatusTooManyRequests {
		return fmt.Errorf("%w: there was no rejection, but %s", ErrInconclusive, statusAndCode(e))
	}
	a := e.Answer
	for name, n := range rateLimits(a) {
		if n.State != contract.Absent {
			return s.broken(e, name, "absent", n.String())
		}
	}
	switch code := a.Body.ErrorCode.Value; {
	case a.RetryAfter.State != contract.Good || a.RetryAfter.Value < 1:
		return s.broken(e, contract.HeaderRetryAfter, "at least 1", a.RetryAfter.String())
	case code != contract.CodeRateLimited && code != contract.CodeConcurrencyLimited:
		return s.broken(e, contract.MemberErrorCode, contract.CodeRateLimited+" or "+contract.CodeConcurrencyLimited, orAbsent(code))
	case len(shape(a)) > 0:
		return s.broken(e, "body", "the error shape", shape(a)[0].Got)
	}
	names := s.Plans()
	for _, u := range s.they {
		names = append(names, u.ID)
	}
	text := strings.ReplaceAll(string(e.Body), e.Answer.RequestID.Value, "")
	if told := tells(text, names); told != "" {
		return s.broken(e, "body", "no word of a user, plan or quota", told)
	}
	return s.verdict()
}

// tells is the word in a text that tells of a user: a quota, a plan, or one of
// the names; empty: there is none. It goes by whole words, also those of a name
// like userPlan: an id may have any letters within.
func tells(text string, names []string) string {
	words := []string{"plans?", "quotas?", "users?"}
	for _, n := range names {
		words = append(words, regexp.QuoteMeta(n))
	}
	text = regexp.MustCompile(`(\p{Ll})(\p{Lu})`).ReplaceAllString(text, "$1 $2")
	told := regexp.MustCompile(`(?i)(?:^|[^\pL\pN])(` + strings.Join(words, "|") + `)(?:[^\pL\pN]|$)`).FindStringSubmatch(text)
	if told == nil {
		return ""
	}
	return told[1]
}

func (s *Scenario) rejectedAudit(ctx context.Context) (exchange, control.Audit, error) {
	e := s.answer()
	if e.Status != http.StatusTooManyRequests {
		return e, control.Audit{}, fmt.Errorf("%w: there was no rejection, but %s", ErrInconclusive, statusAndCode(e))
	}
	a, err := s.audit(ctx, e, func(a control.Audit) bool { return len(a.Entries) == 1 })
	return e, a, err
}

func (s *Scenario) didNothing(ctx context.Context) error {
	e, a, err := s.rejectedAudit(ctx)
	if err == nil && (a.EngineCalls > 0 || a.Charges > 0) {
		return s.broken(e, "engine calls and charges", "none", fmt.Sprintf("%d and %d", a.EngineCalls, a.Charges))
	}
	return errors.Join(err, s.verdict())
}

func (s *Scenario) lookedNothingUp(ctx context.Context) error {
	e, a, err := s.rejectedAudit(ctx)
	if err == nil && a.KeyLookups < 0 {
		return fmt.Errorf("%w: %w: to count lookups of keys", ErrSetup, target.ErrUnsupported)
	}
	if err == nil && a.KeyLookups > 0 {
		return s.broken(e, "lookups of a key", "none", fmt.Sprint(a.KeyLookups))
	}
	return errors.Join(err, s.verdict())
}

func (s *Scenario) leftACleanEntry(ctx context.Context) error {
	e, a, err := s.rejectedAudit(ctx)
	if err != nil {
		return err
	}
	if len(a.Entries) != 1 {
		return s.broken(e, "log entries", "1", fmt.Sprint(len(a.Entries)))
	}
	x := a.Entries[0]
	if !x.Rejected || x.ErrorCode != e.Answer.Body.ErrorCode.Value {
		return s.broken(e, "log entry", "marked rejected, with its error code", fmt.Sprintf("rejected: %t, error code: %s", x.Rejected, orAbsent(x.ErrorCode)))
	}
	for _, secret := range append(s.secrets, bodyMark) {
		if strings.Contains(x.Raw, secret) {
			return s.broken(e, "log entry", "neither key nor body", "one of them")
		}
	}
	return s.verdict()
}

func (s *Scenario) validatedOnce() error {
	for _, e := range s.got {
		if !s.authenticated(e) {
			return s.broken(e, "status", "an answer that tells of the user's bucket", statusAndCode(e))
		}
	}
	switch s.validations {
	case 0:
		return fmt.Errorf("%w: nothing was seen in validation", ErrInconclusive)
	case 1:
		return s.verdict()
	}
	return s.broken(s.answer(), "validations of the key at once", "1", fmt.Sprint(s.validations))
}

func (s *Scenario) idIsLogged(ctx context.Context, how string) error {
	e := s.answer()
	x, err := s.entry(ctx)
	if err != nil {
		return err
	}
	logged, answered := strings.Contains(x.Raw, ownID), e.Answer.RequestID.Value == ownID
	if want := strings.HasPrefix(how, "the log"); logged != want {
		return s.broken(e, "log entry", fmt.Sprintf("holds the id: %t", want), fmt.Sprint(logged))
	}
	if answered {
		return s.broken(e, contract.HeaderRequestID, "an id of the server's own", ownID)
	}
	return s.verdict()
}
