package steps

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
)

func (s *Scenario) whens() []sentence {
	kinds := "(" + kindsPattern() + ")"
	return []sentence{
		{when, `^they send an? ` + kinds + `$`, "one request; some kinds need more of the target", nil, func(ctx context.Context, k string) error { return s.theySend(ctx, kind(k), 1) }},
		{when, `^they send three valid requests$`, "one after the other", nil, func(ctx context.Context) error { return s.theySend(ctx, kindValid, 3) }},
		{when, `^they send (requests .+), two of them$`, "requests of a kind, in the plural", nil, func(ctx context.Context, k string) error { return s.theySend(ctx, singular(k), 2) }},
		{when, `^they send (valid requests), two of them$`, "one after the other", nil, func(ctx context.Context, k string) error { return s.theySend(ctx, kindValid, 2) }},
		{when, `^they send requests until the first rejection(?: for their rate)?$`, "valid ones, one after the other", nil, func(ctx context.Context) error { return s.drainAll(ctx, s.Valid()) }},
		{when, `^they send requests to (/v1/invoice itself|an unknown path|a path far below it) until the first rejection$`, "with a body that can be recognised; /v1/invoice is what the target file calls limited", nil, func(ctx context.Context, where string) error { return s.drainAll(ctx, s.somewhere(where)) }},
		{when, `^they send a valid request with their second key$`, "one request", nil, s.withSecondKey},
		{when, `^they send valid requests with one key and the other in turn$`, "four requests", nil, s.withKeysInTurn},
		{when, `^they send valid requests, unknown paths and requests at an empty bucket$`, "answers of every kind", nil, s.sendMixture},
		{when, `^they send two valid requests with a request id of their own$`, "the same X-Request-Id twice", nil, s.sendOwnIDs},
		{when, `^they send a request whose body stops half-way$`, "to be answered without waiting for the rest", needs{contract.NeedUpload}, s.sendHalf},
		{when, `^they send a request with a large body$`, "three quarters of a mebibyte", nil, s.sendLarge},
		{when, `^they send a request at their empty bucket$`, "whose last tokens are in flight", nil, s.sendAtEmpty},
		{when, `^they spell the valid operation's path in every other way$`, "doubled slashes, dots, escapes, another case, an absolute target, HEAD, OPTIONS", nil, s.spell},
		{when, `^they send more requests at once than their burst$`, "a third more, at one moment", nil, s.sendAtOnce},
		{when, `^they send a few requests at odd moments$`, "between one token and the next", nil, s.sendAtOddMoments},
		{when, `^they spend half of their burst$`, "one request after the other", nil, s.spendHalf},
		{when, `^they spend their whole bucket$`, "one request after the other, until the first rejection", nil, func(ctx context.Context) error { return s.drainAll(ctx, s.Valid()) }},
		{when, `^the other user spends their whole bucket$`, "one request after the other, until the first rejection", nil, s.otherSpends},
		{when, `^they ask every route outside the quotas$`, "twice, with their key", needs{contract.NeedOutside}, s.askOutside},
		{when, `^they ask four times a token while five come back$`, "twenty requests", nil, s.askDenselyAndLong},
		{when, `^they ask just before and just after the next token is due$`, "two requests", nil, s.askAroundTheToken},
		{when, `^they are rejected a dozen times$`, "at an empty bucket, one request after the other", nil, func(ctx context.Context) error { return s.hammer(ctx, 12) }},
		{when, `^they are rejected more often than their cap is large$`, "at an empty bucket, one request after the other", nil, func(ctx context.Context) error { return s.hammer(ctx, s.user().Bucket.Allowance().Concurrency+2) }},
		{when, `^they are rejected at odd moments until the next token is due$`, "while a part of a token is there", nil, s.rejectedAtOddMoments},
		{when, `^they are rejected while the date is an hour behind$`, "the date is set back for one request", needs{contract.NeedClock}, s.rejectedInThePast},
		{when, `^they wait for two tokens$`, "until two have surely come back", nil, s.waitForTwo},
		{when, `^they wait as long as (Retry-After|RateLimit-Reset) says$`, "on the latest answer", nil, func(ctx context.Context, header string) error { return s.obey(ctx, s.answer(), header) }},
		{when, `^they wait as long as the first Retry-After said$`, "of the answers of the sentence before", nil, s.obeyFirst},
		{when, `^they wait until the next token is due$`, "until it has surely come back", nil, s.waitForOne},
		{when, `^they idle until their bucket has long been full$`, "three tokens' time longer", nil, s.idle},
	}
}

// theySend sends n requests of a kind, one after the other, for each user.
func (s *Scenario) theySend(ctx context.Context, k kind, n int) error {
	return s.sends(func() (got []exchange, err error) {
		err = s.each(func(u *subject) error {
			for range n {
				if err := s.afford(ctx, u); err != nil {
					return err
				}
				e, err := s.whileEmpty(ctx, u, func() (exchange, error) { return s.perform(ctx, u, k) })
				if err != nil {
					return err
				}
				got = append(got, e)
			}
			return nil
		})
		return got, err
	})
}

func (s *Scenario) drainAll(ctx context.Context, r target.Request) error {
	return s.sends(func() (got []exchange, err error) {
		err = s.each(func(u *subject) error {
			more, err := s.drain(ctx, u, r)
			got = append(got, more...)
			return err
		})
		return got, err
	})
}

// sendAll sends requests of the user one after the other.
func (s *Scenario) sendAll(ctx context.Context, rs ...target.Request) error {
	return s.sends(func() (got []exchange, err error) {
		for _, r := range rs {
			if err := s.afford(ctx, s.user()); err != nil {
				return got, err
			}
			e, err := s.whileEmpty(ctx, s.user(), func() (exchange, error) { return s.send(ctx, s.user(), r) })
			if err != nil {
				return got, err
			}
			got = append(got, e)
		}
		return got, nil
	})
}

func (s *Scenario) valid(key int) target.Request {
	r := s.Valid()
	r.Key = key
	return r
}

// withSecondKey asks with the key that was not used so far: a bucket that holds
// more for it than for the first is another one. Where it may also be that what
// was held back came at that moment, the first key is asked again.
func (s *Scenario) withSecondKey(ctx context.Context) error {
	before := len(s.found)
	if err := s.withKeys(ctx, 1); err != nil || !s.answer().late() {
		return err
	}
	e := &s.got[len(s.got)-1]
	first, err := s.send(ctx, s.user(), s.Valid())
	if err != nil || !rateRejected(first) {
		return err
	}
	for i := range e.Findings {
		e.Findings[i].Short = false
	}
	for i := before; i < len(s.found); i++ {
		if f := &s.found[i]; f.bucket && f.Got == statusAndCode(*e)[:3] {
			f.Clause, f.short = "POOL-1", false
		}
	}
	return nil
}

func (s *Scenario) withKeysInTurn(ctx context.Context) error { return s.withKeys(ctx, 0, 1, 0, 1) }

// withKeys sends a request with each of these keys. A level that no price and no
// refill of one bucket explains is another bucket's.
func (s *Scenario) withKeys(ctx context.Context, keys ...int) error {
	var rs []target.Request
	for _, k := range keys {
		rs = append(rs, s.valid(k))
	}
	before := len(s.found)
	err := s.sendAll(ctx, rs...)
	for i := before; i < len(s.found); i++ {
		if f := &s.found[i]; f.bucket && (!f.short || f.Clause == "RATE-4") {
			f.Clause = "POOL-1"
		}
	}
	return err
}

// sendMixture brings answers of several kinds, all to requests whose body can
// be recognised, two of them rejections of one bucket.
func (s *Scenario) sendMixture(ctx context.Context) error {
	unknown, err := s.request(kindUnknown)
	if err != nil {
		return err
	}
	if err := s.sendAll(ctx, s.Valid(), unknown); err != nil {
		return err
	}
	mixture := s.got
	if _, err := s.empty(ctx, s.user()); err != nil {
		return err
	}
	return s.sends(func() ([]exchange, error) {
		for range 2 {
			e, err := s.atEmpty(ctx, s.user(), unknown)
			if err != nil {
				return mixture, err
			}
			mixture = append(mixture, e)
		}
		return mixture, nil
	})
}

// ownID is a request id as a client might choose it.
const ownID = "brimline-chose-this-id"

func (s *Scenario) sendOwnIDs(ctx context.Context) error {
	r := s.Valid()
	r.Header = r.Header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set(s.Wording().Name(contract.HeaderRequestID), ownID)
	return s.sendAll(ctx, r, r)
}

// sendAtOnce sends a third more requests at once than the burst.
func (s *Scenario) sendAtOnce(ctx context.Context) error {
	u := s.user()
	rs := make([]target.Request, u.Bucket.Allowance().Burst*4/3+2)
	for i := range rs {
		rs[i] = s.Valid()
	}
	return s.sends(func() ([]exchange, error) { return s.together(ctx, u, rs) })
}

// together sends requests of u at one moment.
func (s *Scenario) together(ctx context.Context, u *subject, rs []target.Request) (got []exchange, err error) {
	answers, findings := s.SendTogether(ctx, u.User, rs)
	s.note(exchange{who: u}, findings)
	for _, a := range answers {
		e, err := s.take(exchange{Exchange: a, who: u})
		if err != nil {
			return got, err
		}
		got = append(got, e)
	}
	return got, nil
}

// odd is a part of a token's time at which neither a token nor, on any usual
// plan, a second is complete.
func (s *Scenario) odd(u *subject) time.Duration { return s.tokenTime(u) * 37 / 100 }

// tokenTime is how long one token takes to come back, rounded up.
func (s *Scenario) tokenTime(u *subject) time.Duration {
	rate := u.Bucket.Allowance().RequestsPerMinute
	return microseconds((oracle.Token + rate - 1) / rate)
}

func (s *Scenario) sendAtOddMoments(ctx context.Context) error {
	return s.sends(func() ([]exchange, error) {
		return s.oddly(ctx, s.user(), min(5, s.user().Bucket.Allowance().Burst))
	})
}

// oddly sends n requests with an odd part of a token's time in between.
func (s *Scenario) oddly(ctx context.Context, u *subject, n int64) (got []exchange, err error) {
	for i := range n {
		if i > 0 {
			if err := s.Wait(ctx, s.odd(u)); err != nil {
				return got, noAnswer(err)
			}
		}
		e, err := s.send(ctx, u, s.Valid())
		if err != nil {
			return got, err
		}
		got = append(got, e)
	}
	return got, nil
}

// rejectedInThePast sets the date back, which the timeline of limits must not
// follow, for one rejection.
func (s *Scenario) rejectedInThePast(ctx context.Context) error {
	if err := s.Advance(ctx, -time.Hour); err != nil {
		return setup(err)
	}
	err := s.hammer(ctx, 1)
	return errors.Join(err, asSetup(s.Advance(context.WithoutCancel(ctx), time.Hour)))
}

func (s *Scenario) spendHalf(ctx context.Context) error {
	rs := make([]target.Request, max(1, s.user().Bucket.Allowance().Burst/2))
	for i := range rs {
		rs[i] = s.Valid()
	}
	err := s.sendAll(ctx, rs...)
	if i := slices.IndexFunc(s.got, func(e exchange) bool { return !paid(e) }); err == nil && i >= 0 {
		return fmt.Errorf("%w: half of the burst was not there to be spent: %s", ErrInconclusive, statusAndCode(s.got[i]))
	}
	return err
}

func (s *Scenario) otherSpends(ctx context.Context) error {
	return s.sends(func() ([]exchange, error) {
		got, err := s.drain(ctx, s.other, s.Valid())
		if err == nil && !slices.ContainsFunc(got, paid) {
			if !s.other.Used() { // others have spent what was theirs
				s.claim(s.other)
				if err := s.verdict(); err != nil {
					return got, err
				}
			}
			err = fmt.Errorf("%w: user %s had nothing to spend", ErrInconclusive, s.other.ID)
		}
		return got, err
	})
}

// askOutside asks each route outside the quotas twice, with the user's key.
func (s *Scenario) askOutside(ctx context.Context) error {
	return s.sends(func() (got []exchange, err error) {
		for range 2 {
			for _, path := range s.OutsideQuotas() {
				e, err := s.sendApart(ctx, s.user(), target.Request{Method: http.MethodGet, Path: path})
				if err != nil {
					return got, err
				}
				got = append(got, e)
			}
		}
		return got, nil
	})
}

// rejectedAtOddMoments asks an empty bucket while a part of a token is there.
func (s *Scenario) rejectedAtOddMoments(ctx context.Context) error {
	return s.sends(func() ([]exchange, error) { return s.oddly(ctx, s.user(), 3) })
}

// askDenselyAndLong asks four times in each token's time, for five tokens.
func (s *Scenario) askDenselyAndLong(ctx context.Context) error {
	u := s.user()
	return s.sends(func() (got []exchange, err error) {
		for range 20 {
			if err := s.Wait(ctx, s.tokenTime(u)/4); err != nil {
				return got, noAnswer(err)
			}
			e, err := s.send(ctx, u, s.Valid())
			if err != nil {
				return got, err
			}
			got = append(got, e)
		}
		return got, nil
	})
}

// askAroundTheToken asks as late as the token is certainly not there, and as
// early as it certainly is. On a clock that runs on while a request is on its
// way, to ask at the last moment is to ask too late.
func (s *Scenario) askAroundTheToken(ctx context.Context) error {
	u := s.user()
	short, ok := u.Bucket.ShortOf(1)
	if !ok {
		return fmt.Errorf("%w: a token may have come back before the wait began", ErrInconclusive)
	}
	before := microseconds(short)
	if !s.Movable() {
		before -= s.tokenTime(u) / 20
	}
	if err := s.Wait(ctx, max(0, before)); err != nil {
		return noAnswer(err)
	}
	early, err := s.send(ctx, u, s.Valid())
	if err != nil {
		return err
	}
	if err := s.ensure(ctx, u, 1); err != nil {
		return err
	}
	return s.sends(func() ([]exchange, error) {
		late, err := s.send(ctx, u, s.Valid())
		return []exchange{early, late}, err
	})
}

func (s *Scenario) waitForOne(ctx context.Context) error {
	return s.ensure(ctx, s.user(), 1)
}

func (s *Scenario) waitForTwo(ctx context.Context) error {
	return s.each(func(u *subject) error { return s.ensure(ctx, u, 2) })
}

// idle waits until the bucket has been full for as long as three tokens take.
func (s *Scenario) idle(ctx context.Context) error {
	return s.each(func(u *subject) error {
		if err := s.ensure(ctx, u, u.Bucket.Allowance().Burst); err != nil {
			return err
		}
		return asInconclusive(s.Wait(ctx, 3*s.tokenTime(u)))
	})
}

// obey waits as many seconds as a header of an answer says.
func (s *Scenario) obey(ctx context.Context, e exchange, header string) error {
	n := e.Answer.RetryAfter
	if header == contract.HeaderReset {
		n = e.Answer.Reset
	}
	most := 2*s.user().Bucket.WaitFor(s.user().Bucket.Allowance().Burst)/1_000_000 + 60
	if n.State != contract.Good || n.Value > most {
		return fmt.Errorf("%w: %s %q tells nobody how long to wait", ErrBroken, header, n)
	}
	return asInconclusive(s.Wait(ctx, time.Duration(n.Value)*time.Second))
}

// obeyFirst waits as long as the first of several rejections said. Where that was
// wrong from the beginning, the wait shows nothing of what came after it.
func (s *Scenario) obeyFirst(ctx context.Context) error {
	first := s.got[0]
	if slices.ContainsFunc(first.Findings, func(f oracle.Finding) bool { return f.Clause == "HDR-5" }) {
		return fmt.Errorf("%w: the first %s was wrong already", ErrBroken, contract.HeaderRetryAfter)
	}
	return s.obey(ctx, first, contract.HeaderRetryAfter)
}

func asInconclusive(err error) error {
	if err == nil {
		return nil
	}
	return noAnswer(err)
}
