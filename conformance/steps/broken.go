package steps

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
)

// breakages are the sentences about entitlements and overrides that a store
// should not hold. What they send must not reach the bucket.
func (s *Scenario) breakages() []sentence {
	texts := anyOf(brokenTexts(target.Burst))
	return []sentence{
		{when, `^they send a valid request with each entitlement in turn (` + missing + `|` + texts + `)$`, "rate, burst and cap broken one after the other, each mended again", needs{contract.NeedEntitlements}, s.breakEachAndSend},
		{when, `^they send a valid request with each override in turn stored as (` + texts + `)$`, "rate, burst and cap overridden past every check one after the other, each ended again", needs{contract.NeedEntitlements, contract.NeedPolicy}, s.storeEachAndSend},
		{when, `^their (rate|burst|cap) entitlement is (missing|malformed)$`, "stored so for this one user, who was served before", needs{contract.NeedEntitlements}, s.breakOne},
		{when, `^their (rate|burst|cap) override is stored malformed$`, "past every check, for this one user, who was served before", needs{contract.NeedEntitlements, contract.NeedPolicy}, func(ctx context.Context, which string) error { return s.storeOne(ctx, which, time.Time{}) }},
		{when, `^their (rate|burst|cap) override is stored malformed, to expire$`, "in a day", needs{contract.NeedEntitlements, contract.NeedPolicy, contract.NeedClock}, s.storeOneThatExpires},
		{when, `^they send a valid request that nobody can know the limits of$`, "one that must not touch the bucket", nil, func(ctx context.Context) error { return s.sendUnresolved(ctx, 1) }},
		{when, `^they send more than their burst of such requests$`, "two more than the burst, none of which may touch the bucket", nil, func(ctx context.Context) error {
			return s.sendUnresolved(ctx, s.user().Bucket.Allowance().Burst+2)
		}},
		{when, `^their entitlements are mended$`, "as the plan has them", needs{contract.NeedEntitlements}, s.mend},
		{then, `^(?:the|each) answer is a configuration failure$`, "503 RATE_LIMIT_CONFIGURATION_UNAVAILABLE in the error shape, with a request id", nil, s.areConfigurationFailures},
		{then, `^the answer carries no RateLimit header$`, "none of the three, on a configuration failure", nil, s.carriesNoHeaders},
	}
}

// brokenTexts is texts, for a dimension, that are no entitlement.
func brokenTexts(d target.Dimension) map[string]string {
	return map[string]string{
		"empty": "", "zero": "0", "negative": "-5", "fractional": "1.5", "written with a leading zero": "010",
		"written with a plus sign": "+5", "written with a space": "5 ", "in words": "unlimited", "a sentinel": "-1",
		"above the range": fmt.Sprint(d.Most() + 1), "huge": "99999999999999999999999999", "an exponent": "1e3", "not a number": "NaN",
	}
}

func brokenText(word string, d target.Dimension) (string, error) {
	text, ok := brokenTexts(d)[word]
	if !ok {
		return "", fmt.Errorf("no such text: %q", word)
	}
	return text, nil
}

// servedBefore makes sure that the user is served as long as nothing is broken:
// a server that refuses everybody does not do so for a broken entitlement.
func (s *Scenario) servedBefore(ctx context.Context) error {
	if s.user().served {
		return nil
	}
	e, err := s.send(ctx, s.user(), s.Valid())
	if err == nil && !paid(e) {
		err = fmt.Errorf("%w: refused before anything was broken: %s", ErrInconclusive, statusAndCode(e))
	}
	return err
}

const missing = "missing"

func (s *Scenario) breakEntitlement(ctx context.Context, d target.Dimension, word string) error {
	u := s.user().User
	if word == missing {
		return asSetup(s.RemoveEntitlement(ctx, u, d))
	}
	text, err := brokenText(word, d)
	if err != nil {
		return err
	}
	return asSetup(s.BreakEntitlement(ctx, u, d, text))
}

// breakEachAndSend breaks one dimension after the other, the ones before mended.
func (s *Scenario) breakEachAndSend(ctx context.Context, word string) error {
	return s.sends(func() (got []exchange, err error) {
		if err := s.servedBefore(ctx); err != nil {
			return got, err
		}
		for _, d := range target.Dimensions() {
			if err := s.breakEntitlement(ctx, d, word); err != nil {
				return got, err
			}
			e, err := s.sendApart(ctx, s.user(), s.Valid())
			if err != nil {
				return got, err
			}
			got = append(got, e)
			if err := s.MendEntitlements(ctx, s.user().User); err != nil {
				return got, setup(err)
			}
		}
		return got, nil
	})
}

func (s *Scenario) storeEachAndSend(ctx context.Context, word string) error {
	return s.sends(func() (got []exchange, err error) {
		if err := s.servedBefore(ctx); err != nil {
			return got, err
		}
		for _, d := range target.Dimensions() {
			text, err := brokenText(word, d)
			if err != nil {
				return got, err
			}
			if err := s.StoreOverride(ctx, s.user().User, d, text, time.Time{}); err != nil {
				return got, setup(err)
			}
			e, err := s.sendApart(ctx, s.user(), s.Valid())
			if err != nil {
				return got, err
			}
			got = append(got, e)
			if err := s.EndOverride(ctx, s.user().User, d); err != nil {
				return got, setup(err)
			}
		}
		return got, nil
	})
}

func (s *Scenario) breakOne(ctx context.Context, which, how string) error {
	if how == "malformed" {
		how = "in words"
	}
	if err := s.servedBefore(ctx); err != nil {
		return err
	}
	s.begin()
	return s.breakEntitlement(ctx, dimensionOf(which), how)
}

func (s *Scenario) storeOne(ctx context.Context, which string, expires time.Time) error {
	d := dimensionOf(which)
	text, err := brokenText("in words", d)
	if err != nil {
		return err
	}
	if err := s.servedBefore(ctx); err != nil {
		return err
	}
	s.begin()
	return asSetup(s.StoreOverride(ctx, s.user().User, d, text, expires))
}

func (s *Scenario) storeOneThatExpires(ctx context.Context, which string) error {
	now, err := s.Now(ctx)
	if err != nil {
		return setup(err)
	}
	return s.storeOne(ctx, which, now.Add(agreed))
}

func (s *Scenario) sendUnresolved(ctx context.Context, n int64) error {
	rs := make([]target.Request, n)
	for i := range rs {
		rs[i] = s.Valid()
	}
	return s.sendAllApart(ctx, rs)
}

func (s *Scenario) mend(ctx context.Context) error {
	return asSetup(s.MendEntitlements(ctx, s.user().User))
}

// areConfigurationFailures looks at status, code and shape; RateLimit headers are
// another clause's.
func (s *Scenario) areConfigurationFailures() error {
	for _, e := range s.got {
		want := fmt.Sprintf("%d %s", http.StatusServiceUnavailable, contract.CodeConfigUnavailable)
		if got := statusAndCode(e); got != want {
			return s.broken(e, "status", want, got)
		}
		if id := e.Answer.RequestID; id.State != contract.Good {
			return s.broken(e, contract.HeaderRequestID, "one request id", id.State.String())
		}
		if wrong := shape(e.Answer); len(wrong) > 0 {
			return s.broken(e, wrong[0].Field, wrong[0].Expected, wrong[0].Got)
		}
	}
	return s.verdict()
}

func (s *Scenario) carriesNoHeaders() error {
	e := s.answer()
	if !unresolved(e) {
		return fmt.Errorf("%w: the answer is no configuration failure but %s", ErrInconclusive, statusAndCode(e))
	}
	for name, n := range rateLimits(e.Answer) {
		if n.State != contract.Absent {
			return s.broken(e, name, "absent", n.String())
		}
	}
	return s.verdict()
}
