package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
)

// overrides are the sentences about overrides and what becomes of them.
func (s *Scenario) overrides() []sentence {
	const which = `^their (rate|burst|cap) is `
	return []sentence{
		{when, which + `(set|raised|lowered) by an override$`, "to twice or half of what it is, a cap by two or one", needs{contract.NeedPolicy}, func(ctx context.Context, which, how string) error {
			return s.override(ctx, which, how, target.Override{})
		}},
		{when, which + `raised by an override that expires$`, "in a day", needs{contract.NeedPolicy, contract.NeedClock}, s.overrideThatExpires},
		{when, which + `raised by an override with a reason and an author$`, "which the history has to show", needs{contract.NeedPolicy}, func(ctx context.Context, which string) error {
			return s.override(ctx, which, "raised", target.Override{Reason: ownReason, Author: ownAuthor})
		}},
		{when, `^their (rate|burst|cap) override is replaced by a (larger|smaller) one$`, "twice or half of what is in force", needs{contract.NeedPolicy}, s.replaceOverride},
		{when, `^their (rate|burst|cap) override is replaced by a larger one that expires$`, "in a day", needs{contract.NeedPolicy, contract.NeedClock}, s.replaceByOneThatExpires},
		{when, `^their (rate|burst|cap) override is written again as it is$`, "the same value once more", needs{contract.NeedPolicy}, s.writeOverrideAgain},
		{when, `^their (rate|burst|cap) override is ended$`, "the plan's value is back", needs{contract.NeedPolicy}, s.endOverride},
		{when, `^they wait until just before it (?:expires|takes over)$`, "the override or plan that was announced", needs{contract.NeedClock}, s.waitUntilJustBefore},
		{when, `^they wait until it (?:expires|takes over)$`, "the override or plan that was announced", needs{contract.NeedClock}, s.waitUntilItHappens},
		{then, `^their history holds both, the first one as ended, each with reason and author$`, "two overrides of the burst", needs{contract.NeedHistory}, s.historyHoldsBoth},
		{then, `^their history holds no override$`, "none was ever written", needs{contract.NeedHistory}, s.historyIsEmpty},
	}
}

// Reason and author as no deployment has them by itself: whatever shows them got
// them from an override of this suite.
const (
	ownReason = "brimline-reason-Q7ZK"
	ownAuthor = "brimline-author-X4WD"
)

// dimensionOf is the dimension that a sentence speaks of.
func dimensionOf(word string) target.Dimension {
	return map[string]target.Dimension{
		"rate": target.RequestsPerMinute, "burst": target.Burst, "cap": target.Concurrency,
	}[word]
}

// changed is a value other than old: twice or half of it, for a cap a few more or
// one less, since a full cap costs as many tokens.
func changed(d target.Dimension, old int64, how string) (int64, error) {
	up := 2 * old
	down := old / 2
	if d == target.Concurrency {
		up, down = old+2, old-1
	}
	switch {
	case how == "lowered" && down < 1:
		return 0, fmt.Errorf("%w: needs a plan whose %s is above %d", ErrRoom, d, old)
	case how == "lowered":
		return down, nil
	case up > d.Most():
		return 0, fmt.Errorf("%w: needs a plan whose %s is below %d", ErrRoom, d, old)
	}
	return up, nil
}

// override sets one. What the bucket does from here on is what the scenario is
// about.
func (s *Scenario) override(ctx context.Context, which, how string, o target.Override) error {
	u, d := s.user(), dimensionOf(which)
	value, err := changed(d, d.Of(u.Bucket.Allowance()), how)
	if err != nil {
		return err
	}
	o.Value = value
	s.begin()
	return asSetup(s.SetOverride(ctx, u.User, d, o))
}

// agreed is how long an override that expires holds: longer than any bucket
// needs to fill, since a scenario that has to wait for it moves the clock.
const agreed = 24 * time.Hour

func (s *Scenario) overrideThatExpires(ctx context.Context, which string) error {
	now, err := s.Now(ctx)
	if err != nil {
		return setup(err)
	}
	return s.override(ctx, which, "raised", target.Override{Expires: now.Add(agreed)})
}

func (s *Scenario) replaceOverride(ctx context.Context, which, size string) error {
	how := map[string]string{"larger": "raised", "smaller": "lowered"}[size]
	return s.override(ctx, which, how, target.Override{Reason: ownReason, Author: ownAuthor})
}

func (s *Scenario) writeOverrideAgain(ctx context.Context, which string) error {
	u, d := s.user(), dimensionOf(which)
	s.begin()
	return asSetup(s.SetOverride(ctx, u.User, d, target.Override{Value: d.Of(u.Bucket.Allowance())}))
}

func (s *Scenario) replaceByOneThatExpires(ctx context.Context, which string) error {
	return s.overrideThatExpires(ctx, which)
}

func (s *Scenario) endOverride(ctx context.Context, which string) error {
	s.begin()
	return asSetup(s.EndOverride(ctx, s.user().User, dimensionOf(which)))
}

// waitUntilJustBefore waits as long as what was announced has surely not
// happened, with time left for a few requests where the clock runs by itself.
func (s *Scenario) waitUntilJustBefore(ctx context.Context) error {
	before, _, ok := s.Until(s.user().User)
	if !ok || before <= 0 {
		return fmt.Errorf("%w: nothing was announced, or too late", ErrSetup)
	}
	return asInconclusive(s.Wait(ctx, before))
}

func (s *Scenario) waitUntilItHappens(ctx context.Context) error {
	_, after, ok := s.Until(s.user().User)
	if !ok {
		return fmt.Errorf("%w: nothing was announced", ErrSetup)
	}
	s.begin()
	if err := s.Wait(ctx, after); err != nil {
		return noAnswer(err)
	}
	s.CatchUp(s.user().User)
	return nil
}

func (s *Scenario) historyHoldsBoth(ctx context.Context) error {
	u := s.user()
	all, err := s.History(ctx, u.User)
	if err != nil {
		return setup(err)
	}
	e := exchange{who: u}
	if len(all) != 2 {
		return s.broken(e, "overrides in the history", "2", fmt.Sprint(len(all)))
	}
	value := target.Burst.Of(u.Bucket.Allowance())
	for i, want := range []string{fmt.Sprint(value / 2), fmt.Sprint(value)} {
		got := all[i]
		switch {
		case got.Dimension != string(target.Burst) || got.Value != want:
			return s.broken(e, "override in the history", fmt.Sprintf("%s %s", target.Burst, want), got.Dimension+" "+got.Value)
		case (got.Ended != "") != (i == 0):
			return s.broken(e, "ended of an override", map[bool]string{true: "a date", false: "absent"}[i == 0], orAbsent(got.Ended))
		case got.Reason != ownReason:
			return s.broken(e, "reason of an override", ownReason, orAbsent(got.Reason))
		case got.Author != ownAuthor:
			return s.broken(e, "author of an override", ownAuthor, orAbsent(got.Author))
		}
	}
	return s.verdict()
}

func (s *Scenario) historyIsEmpty(ctx context.Context) error {
	all, err := s.History(ctx, s.user().User)
	if err != nil {
		return setup(err)
	}
	if len(all) > 0 {
		return s.broken(exchange{who: s.user()}, "overrides in the history", "none", fmt.Sprintf("%s %s", all[0].Dimension, all[0].Value))
	}
	return s.verdict()
}

// refusal is what became of something that must be refused.
type refusal struct {
	what string
	by   *target.ControlError // nil: it was taken
}

// boundaries are the sentences about who may write an override, and what.
func (s *Scenario) boundaries() []sentence {
	return []sentence{
		{when, `^an operator writes (` + anyOf(nonsense(target.Burst)) + `) as each of their overrides$`, "a value that is no allowance, for rate, burst and cap", needs{contract.NeedPolicy}, s.writeNonsense},
		{then, `^each was refused with a clear error$`, "status 400 to 499, a code and a message", nil, s.refusedClearly},
		{when, `^they try to write themselves overrides as the control protocol does$`, "at the API, with their own key", nil, s.tryControl},
		{when, `^they try every internal route$`, "with their own key", needs{contract.NeedInternal}, s.tryInternal},
		{then, `^each attempt was refused$`, "none was answered with a success", nil, s.attemptsRefused},
	}
}

// nonsense is JSON values, for a dimension, that are no override.
func nonsense(d target.Dimension) map[string]any {
	return map[string]any{
		"null": nil, "zero": 0, "a negative number": -1, "a fraction": number("1.5"), "a whole number with a point": number("5.0"),
		"a number above the range": d.Most() + 1, "a huge number": number("1e99"), "the largest integer": number("9223372036854775807"),
		"a word": "unlimited", "a number in quotes": "5", "an empty text": "", "a truth value": true, "a list": []int{5}, "an object": map[string]int{"value": 5},
	}
}

func (s *Scenario) writeNonsense(ctx context.Context, word string) error {
	s.begin()
	s.refusals = nil
	for _, d := range target.Dimensions() {
		value := nonsense(d)[word]
		r := refusal{what: fmt.Sprintf("%s as %s", word, d)}
		if err := s.WriteOverride(ctx, s.user().User, d, value); err != nil && !errors.As(err, &r.by) {
			return setup(err)
		}
		s.refusals = append(s.refusals, r)
	}
	return nil
}

func (s *Scenario) refusedClearly() error {
	if len(s.refusals) == 0 {
		return errors.New("nothing was written that could have been refused")
	}
	for _, r := range s.refusals {
		e := exchange{who: s.user()}
		switch {
		case r.by == nil:
			return s.broken(e, r.what, "refused", "taken")
		case r.by.Status != 0 && (r.by.Status < 400 || r.by.Status > 499): // 0: a command refused
			return s.broken(e, r.what, "a status from 400 to 499", fmt.Sprint(r.by.Status))
		case r.by.Code == "" || r.by.Message == "":
			return s.broken(e, r.what, "an error that says why", fmt.Sprintf("%d with code %q and message %q", r.by.Status, r.by.Code, r.by.Message))
		}
	}
	return s.verdict()
}

// tryControl asks the API, with a user's key, for what only the control server
// gives to who has its token.
func (s *Scenario) tryControl(ctx context.Context) error {
	var rs []target.Request
	for _, d := range target.Dimensions() {
		path := control.Prefix + "/users/" + s.user().ID + "/overrides/" + string(d)
		rs = append(rs, target.Request{Method: "PUT", Path: path, Body: []byte(`{"value":1000}`)})
	}
	return s.sendAllApart(ctx, rs)
}

func (s *Scenario) tryInternal(ctx context.Context) error {
	var rs []target.Request
	for _, d := range target.Dimensions() {
		for _, r := range s.InternalRoutes(s.user().User, d) {
			if !slices.ContainsFunc(rs, func(had target.Request) bool { return had.Method == r.Method && had.Path == r.Path }) {
				rs = append(rs, r)
			}
		}
	}
	return s.sendAllApart(ctx, rs)
}

// sendAllApart sends requests of the user that leave the bucket alone.
func (s *Scenario) sendAllApart(ctx context.Context, rs []target.Request) error {
	s.begin()
	s.tried = nil
	return s.sends(func() (got []exchange, err error) {
		for _, r := range rs {
			e, err := s.sendApart(ctx, s.user(), r)
			if err != nil {
				return got, err
			}
			got = append(got, e)
		}
		s.tried = got
		return got, nil
	})
}

func (s *Scenario) attemptsRefused() error {
	if len(s.tried) == 0 {
		return errors.New("nothing was tried")
	}
	for _, e := range s.tried {
		if e.Status < 300 {
			return s.broken(e, "status of "+e.Method+" "+e.Path, "a refusal", statusAndCode(e))
		}
	}
	return s.verdict()
}

// unresolved reports whether an answer says that no allowance could be found.
func unresolved(e exchange) bool {
	return e.Answer.Body.ErrorCode.Value == contract.CodeConfigUnavailable
}

// number is a JSON number as it is spelled.
func number(spelled string) json.RawMessage { return json.RawMessage(spelled) }
