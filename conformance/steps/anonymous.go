package steps

import (
	"context"
	"fmt"
	"net/http"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
)

// addresses are the sentences about attempts that do not authenticate, and the
// address they come from. That one is the scenario's own for all it sends. It is
// the first that a scenario asks for: where there is but one for all, everybody
// waits for whoever has it.
func (s *Scenario) addresses() []sentence {
	return []sentence{
		{given, `^an address at rest$`, "an address of the scenario's own that nobody tried anything from, with the whole burst of attempts", nil, func(ctx context.Context) error { return s.anAddress(ctx, s.Anonymous().Burst) }},
		{given, `^an address with attempts to spare$`, "an address of the scenario's own with one attempt at least", nil, func(ctx context.Context) error { return s.anAddress(ctx, 1) }},
		{given, `^an emptied address$`, "an address of the scenario's own whose attempts are spent on wrong keys", nil, s.anEmptiedAddress},
		{given, `^a user with a key for each place of that address, and one more$`, "a new user with so many keys, none of them used", needs{contract.NeedPolicy}, func(ctx context.Context) error {
			return s.aNewUser(ctx, int(s.Anonymous().Concurrency)+1)
		}},
		{given, `^a new user$`, "a user whose key nobody has used", needs{contract.NeedPolicy}, func(ctx context.Context) error { return s.aNewUser(ctx, 1) }},
		{given, `^a new user with a few keys$`, "a user with four keys that nobody has used", needs{contract.NeedPolicy}, func(ctx context.Context) error { return s.aNewUser(ctx, fewAttempts) }},
		{given, `^more users than the address has attempts$`, "new users on the smallest plan, one more than the address's burst", needs{contract.NeedPolicy}, s.manyUsers},
		{when, `^somebody tries (wrong keys|wrong keys with a marked body|credentials in any way) from there until the first rejection$`, "one attempt after the other from that address until a 429", nil, s.tryUntilRejected},
		{when, `^somebody tries a wrong key from there$`, "one attempt from that address", nil, s.tryOnce},
		{when, `^somebody tries wrong keys from other addresses$`, "one attempt from each of four other addresses", needs{contract.NeedAddresses}, s.tryFromOthers},
		{when, `^somebody waits for two attempts$`, "until two attempts have come back to the address", nil, s.waitForAttempts},
		{when, `^somebody asks every route outside the quotas from there$`, "without a key, more rounds than the address has attempts", needs{contract.NeedOutside}, s.askOutsideFromThere},
		{when, `^the validation of one key for each place is held$`, "a first use of so many keys, each kept in validation", needs{contract.NeedHoldAuth, contract.NeedPolicy}, s.holdValidations},
		{when, `^what is held is let go$`, "all that is kept in validation goes on and is answered", needs{contract.NeedHoldAuth}, s.letGo},
		{when, `^they send a valid request with the key that is left$`, "with the one key that is neither used nor held", needs{contract.NeedPolicy}, s.tryKeyThatIsLeft},
		{when, `^each of them sends a valid request$`, "one request of each user, one after the other", nil, func(ctx context.Context) error { return s.theySend(ctx, kindValid, 1) }},
		{when, `^they try each of their keys on that emptied address$`, "first uses at an empty pool, emptied again before each, until one is refused", needs{contract.NeedPolicy}, s.tryNewKeys},
		{when, `^they start more first uses of one key at once than the address has places$`, "all held in validation until they are there", needs{contract.NeedHoldAuth, contract.NeedPolicy}, s.firstUsesAtOnce},
		{when, `^an attempt comes from there with a request id of its own$`, "a wrong key beside an X-Request-Id that the client chose", nil, s.tryWithID},
		{then, `^the address's burst was let through, and no more$`, "as many attempts as the pool held got 401, the next one 429", nil, s.burstOfAttempts},
		{then, `^attempts came back at the address's rate$`, "as many attempts as had come back got 401, the next one 429", nil, s.burstOfAttempts},
		{then, `^it was told to be unauthenticated$`, "the latest answer is 401", nil, s.wasTold},
		{then, `^it was refused for want of a place$`, "the latest answer is 429 CONCURRENCY_LIMIT_EXCEEDED", nil, s.wasWithoutPlace},
		{then, `^it was authenticated$`, "the latest answer tells of the user's bucket, and the address's pool was empty", nil, s.wasAuthenticated},
		{then, `^the rejection is generic$`, "the latest 429 has Retry-After, no RateLimit header, and no word of a user, plan or quota", nil, s.isGeneric},
		{then, `^no work was done for it, and nothing was charged$`, "the engine was not called for the latest rejection, and no operation charged", needs{contract.NeedAudit}, s.didNothing},
		{then, `^nothing was looked up for it$`, "no key was looked up for the latest rejection", needs{contract.NeedAudit}, s.lookedNothingUp},
		{then, `^one of them was held to that pool$`, "one of the attempts at the emptied pool at least was refused, and none got in that should not", nil, s.wasHeldToThePool},
		{then, `^all were authenticated by one validation$`, "each was admitted, and one of them alone was looked up", needs{contract.NeedHoldAuth}, s.validatedOnce},
		{then, `^it left one log entry marked rejected, that holds neither key nor body$`, "the latest rejection's entry, with its error code and nothing of what was sent", needs{contract.NeedAudit}, s.leftACleanEntry},
		{then, `^(the log entry holds that id, and|neither the log entry nor) the answer (?:another|holds that id)$`, "whether the id that the client chose is logged; the answer never holds it", needs{contract.NeedAudit}, s.idIsLogged},
	}
}

// anAddress takes an address of the scenario's own, with so many attempts.
func (s *Scenario) anAddress(ctx context.Context, attempts int64) error {
	a, own := s.NewAddress()
	if !own {
		// All that other scenarios send comes from there as well: a key of theirs that
		// is new would meet an empty pool.
		if err := s.suite.door.alone(ctx, s); err != nil {
			return setup(err)
		}
		a = s.OwnAddress()
	}
	s.at = a
	return s.ready(asInconclusive(s.ReadyFor(ctx, a, attempts)))
}

func (s *Scenario) anEmptiedAddress(ctx context.Context) error {
	if err := s.anAddress(ctx, 1); err != nil {
		return err
	}
	return s.ready(s.emptyPool(ctx))
}

// Valid is the operation that succeeds, from the scenario's address.
func (s *Scenario) Valid() target.Request {
	r := s.Target.Valid()
	r.From = s.at
	return r
}

// wrongKey is a valid request with a key that nobody has.
func (s *Scenario) wrongKey() target.Request {
	r := s.Valid()
	r.Authorization = []string{s.Credential(s.madeUp())}
	return r
}

// attempt sends a request that must not authenticate. Where nothing is left for
// it, by what is known of its address, it is sent again when there should be.
func (s *Scenario) attempt(ctx context.Context, r target.Request) (exchange, error) {
	for range 3 {
		e, err := s.try(ctx, r)
		if err != nil || e.Status != http.StatusTooManyRequests || len(e.Findings) > 0 {
			return e, err
		}
		if err := s.ReadyFor(ctx, s.from(r), 1); err != nil {
			return e, noAnswer(err)
		}
	}
	return exchange{}, fmt.Errorf("%w: attempts from this address are throttled", ErrInconclusive)
}

// try is attempt, whatever the answer.
func (s *Scenario) try(ctx context.Context, r target.Request) (exchange, error) {
	return s.take(exchange{Exchange: s.Attempt(ctx, r), madeUp: s.isMadeUp(r)})
}

func (s *Scenario) from(r target.Request) *target.Address {
	if r.From == nil {
		return s.OwnAddress()
	}
	return r.From
}

// tryAll tries requests until the first rejection, or until an answer that the
// address's pool cannot explain.
func (s *Scenario) tryAll(ctx context.Context, next func(n int) target.Request) ([]exchange, error) {
	var got []exchange
	for n := range int(3*s.Anonymous().Burst + 30) {
		e, err := s.try(ctx, next(n))
		if err != nil {
			return got, err
		}
		got = append(got, e)
		if e.Status == http.StatusTooManyRequests || len(e.Findings) > 0 {
			return got, nil
		}
	}
	return got, fmt.Errorf("%w: none of %d attempts one after the other was rejected", ErrInconclusive, len(got))
}

// emptyPool spends all that the address may try.
func (s *Scenario) emptyPool(ctx context.Context) error {
	got, err := s.tryAll(ctx, func(int) target.Request { return s.wrongKey() })
	s.got = got
	switch last := len(got) - 1; {
	case err != nil || rateRejected(got[last]) && len(got[last].Findings) == 0:
		return err
	case len(got[last].Findings) == 0:
		return fmt.Errorf("%w: the last attempt was answered with %s", ErrInconclusive, statusAndCode(got[last]))
	}
	if s.ownsSeparation() {
		s.claimPool()
	}
	return fmt.Errorf("%w: the address's pool did not empty as it should", ErrBroken)
}

func (s *Scenario) tryUntilRejected(ctx context.Context, what string) error {
	next := func(int) target.Request { return s.wrongKey() }
	switch what {
	case "wrong keys with a marked body":
		next = func(int) target.Request {
			r := s.wrongKey()
			r.Body = marked()
			return r
		}
	case "credentials in any way":
		ways := [][]string{{}, {s.Credential("")}, {s.Credential("unknown")}, {"Basic eDp5"}, {s.Credential("a"), s.Credential("b")}}
		next = func(n int) target.Request {
			r := s.wrongKey()
			if n %= len(ways) + 1; n < len(ways) {
				r.Authorization = ways[n]
			}
			return r
		}
	}
	err := s.sends(func() ([]exchange, error) { return s.tryAll(ctx, next) })
	s.tries = s.got
	return err
}

func (s *Scenario) tryOnce(ctx context.Context) error {
	return s.sends(func() ([]exchange, error) {
		e, err := s.try(ctx, s.wrongKey())
		return []exchange{e}, err
	})
}

// fewAttempts is how often most scenarios try.
const fewAttempts = 4

func (s *Scenario) tryFromOthers(ctx context.Context) error {
	return s.sends(func() (got []exchange, err error) {
		for range fewAttempts {
			a, ok := s.NewAddress()
			if !ok {
				return got, fmt.Errorf("%w: %w: no other address", ErrSetup, target.ErrUnsupported)
			}
			r := s.wrongKey()
			r.From = a
			e, err := s.try(ctx, r)
			if err != nil {
				return got, err
			}
			got = append(got, e)
		}
		return got, nil
	})
}

func (s *Scenario) waitForAttempts(ctx context.Context) error {
	return asInconclusive(s.ReadyFor(ctx, s.from(s.Valid()), 2))
}

func (s *Scenario) askOutsideFromThere(ctx context.Context) error {
	return s.sends(func() (got []exchange, err error) {
		for range s.Anonymous().Burst + 1 {
			for _, path := range s.OutsideQuotas() {
				r := target.Request{Method: http.MethodGet, Path: path, Authorization: []string{}, From: s.at}
				e, err := s.take(exchange{Exchange: s.SendApart(ctx, nil, r)})
				if err != nil {
					return got, err
				}
				got = append(got, e)
			}
		}
		return got, nil
	})
}

// aNewUser leases a user of whose keys nobody has used any.
func (s *Scenario) aNewUser(ctx context.Context, keys int) error {
	all, err := s.plans()
	if err != nil {
		return err
	}
	together := s.Anonymous().Concurrency + fewAttempts
	u, err := s.lease(ctx, all.roomy(func(p plan) int64 {
		if p.Concurrency < together {
			return p.Burst + 1 // more than it has: its cap is too small
		}
		return together
	}).name, keys)
	if err == nil && u.Used() {
		return fmt.Errorf("%w: %w: users whose keys nobody has used", ErrSetup, target.ErrUnsupported)
	}
	if err == nil {
		s.they = []*subject{u}
	}
	return s.ready(err)
}

func (s *Scenario) manyUsers(ctx context.Context) error {
	all, err := s.plans()
	if err != nil {
		return err
	}
	for range s.Anonymous().Burst + 1 {
		u, err := s.lease(ctx, all[0].name, 1) // the smallest
		if err != nil {
			return err
		}
		s.they = append(s.they, u)
	}
	return s.ready(nil)
}

// holdValidations holds a first use of one key for each place of the address.
func (s *Scenario) holdValidations(ctx context.Context) error {
	u := s.user()
	s.got = nil
	for key := range int(s.Anonymous().Concurrency) {
		e, held, err := s.hold(ctx, u, s.valid(key), target.PlaceAuthentication)
		if err != nil {
			return err
		}
		if !held {
			return s.brokenFor("ANON-3", e, "attempts in flight", fmt.Sprint(s.Anonymous().Concurrency), fmt.Sprintf("%s with %d in flight", statusAndCode(e), key))
		}
	}
	return nil
}

func (s *Scenario) letGo(ctx context.Context) error {
	s.user().held = nil
	return s.sends(func() ([]exchange, error) {
		all, err := s.LetGo(ctx, s.user().User)
		if err != nil {
			return nil, setup(err)
		}
		return s.takeAll(all)
	})
}

// tryKeyThatIsLeft sends the one key that nothing is in flight with. If it gets
// in, it stays in flight beside the others.
func (s *Scenario) tryKeyThatIsLeft(ctx context.Context) error {
	u, r := s.user(), s.valid(int(s.Anonymous().Concurrency))
	if len(u.held) == 0 {
		return s.sendAll(ctx, r)
	}
	h, answered := s.HoldApart(ctx, u.User, r)
	if h != nil {
		u.held = append(u.held, h)
		s.got = nil
		return s.brokenFor("ANON-3", exchange{Exchange: answered}, "status", "429 CONCURRENCY_LIMIT_EXCEEDED",
			fmt.Sprintf("one more attempt in flight beside %d", len(u.held)-1))
	}
	return s.sends(func() ([]exchange, error) {
		e, err := s.take(exchange{Exchange: answered})
		return []exchange{e}, err
	})
}

// tryNewKeys tries keys that nobody has used until one is refused. An attempt may
// come back between the last wrong key and a good one, and lets that one in: the
// next good key finds the pool emptied again.
func (s *Scenario) tryNewKeys(ctx context.Context) error {
	return s.sends(func() (got []exchange, err error) {
		for key := range fewAttempts {
			if key > 0 {
				if err := s.emptyPool(ctx); err != nil {
					return got, err
				}
			}
			r := s.Valid()
			r.Authorization = []string{s.Credential(s.user().Secret(key).Reveal())}
			e, err := s.try(ctx, r)
			got = append(got, e)
			if err != nil || rateRejected(e) || len(e.Findings) > 0 {
				return got, err
			}
		}
		return got, nil
	})
}

// firstUsesAtOnce sends one key's first uses together, and holds the validation
// until all are there.
func (s *Scenario) firstUsesAtOnce(ctx context.Context) error {
	u := s.user()
	rs := make([]target.Request, s.Anonymous().Concurrency+fewAttempts)
	for i := range rs {
		rs[i] = s.Valid()
	}
	if most := u.Bucket.Allowance().Concurrency; int64(len(rs)) > most {
		return fmt.Errorf("%w: needs a plan with a cap of %d", ErrRoom, len(rs))
	}
	return s.sends(func() ([]exchange, error) {
		all, validations, err := s.SendPastValidation(ctx, u.User, rs)
		if err != nil {
			return nil, asSetup(err)
		}
		s.validations = validations
		return s.takeAll(all)
	})
}

func (s *Scenario) tryWithID(ctx context.Context) error {
	r := s.with(http.Header{s.Wording().Name(contract.HeaderRequestID): {ownID}})
	return s.sends(func() ([]exchange, error) {
		e, err := s.attempt(ctx, r)
		return []exchange{e}, err
	})
}
