// Package steps says what each sentence of the features does to a target. A
// [Scenario] leases its own users, sends, holds, waits, and hands every answer
// to the oracle and to the checks that concern every answer (ERR-1, ERR-2,
// ERR-4); what it found is a list of findings, each with the clause it breaks.
//
// Most callers want package conformance, which plans and runs. The sentences
// are one table, see sentences.go; what they share is here.
package steps

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
)

// The ways in which a scenario can end before its last sentence. An error that
// is none of them is one of the suite itself.
var (
	ErrBroken       = errors.New("a clause is broken")          // the findings say which
	ErrSetup        = errors.New("the scenario was not set up") // its question could not be asked
	ErrInconclusive = errors.New("the answer tells nothing")    // its question was not answered
)

// Suite is what the scenarios of one run share.
type Suite struct {
	target   *target.Target
	scope    target.Scope
	ids      *identities
	users    *lending
	door     *door
	patterns map[string]*regexp.Regexp
	waits    func(*Scenario, Wait) // nil: nobody wants to hear of them
}

// NewSuite begins a run against t. Waits that take longer than a few seconds are
// told as they begin; nil: to nobody.
func NewSuite(t *target.Target, waits func(*Scenario, Wait)) *Suite {
	return &Suite{target: t, scope: t.Scope(), waits: waits, ids: newIdentities(), users: newLending(), door: newDoor(), patterns: compiled()}
}

// Scenario is one run of one scenario. It is not safe for concurrent use.
type Scenario struct {
	*target.Target
	suite   *Suite
	clause  contract.Clause // of the rule: what a Then finds is a breach of it
	rows    []string        // the plans that the rows of its outline name
	they    []*subject      // whom the sentences speak of; several only where a row stands for several plans
	other   *subject
	step    string     // the sentence being carried out
	got     []exchange // the answers of the latest sentence that sends
	found   []found
	mark    int // how much of found was there when the Givens were done
	begun   bool
	waited  time.Duration
	refused string // whose key was refused first; empty: nobody's

	refusals   []refusal     // of the operator boundary
	tried      []exchange    // what the latest sentence tried in vain, or should have
	operations control.Usage // as counted or set
	before     int64         // what the user had been charged at most when they were counted
	page       string        // the billing page's source

	at          *target.Address // where all requests come from; nil: from the address that all share
	stay        stay            // whether the suite's door has let the scenario in
	secrets     []string        // wrong keys that were tried
	tries       []exchange      // the latest attempts that were to empty a pool
	validations int             // of one key, at once
	attempts    []attempt       // to start a server
	meters      []target.Meter  // the page of metrics, as it was read
}

// subject is a leased user.
type subject struct {
	*target.User
	held    []*target.Held
	served  bool  // a request of theirs got past bucket and cap
	charged int64 // operations at most, of requests that were answered
	budget  int64 // tokens that the scenario may need; 0: it counts none
	left    bool  // a request of theirs was abandoned, and whether its permit is back was not seen
	emptied bool  // and is to stay so until the scenario lets time go by or changes something
	late    bool  // what was to come back did not, before the scenario began
	rested  bool  // not asked yet, and as full as the scenario wants if tokens come back as they should
}

// exchange is a request, its answer, and whose it was.
type exchange struct {
	target.Exchange
	who    *subject // nil: nobody's bucket
	madeUp bool     // sent with a key that nobody has
}

// New returns a scenario that has not begun.
func (s *Suite) New() *Scenario { return &Scenario{Target: s.target, suite: s} }

// About says which clause the scenario's rule is, and which plans the rows of
// its outline name.
func (s *Scenario) About(c contract.Clause, rows []string) { s.clause, s.rows = c, rows }

// Close ends what is still in flight and gives the users back.
func (s *Scenario) Close(ctx context.Context) error {
	var errs []error
	for _, u := range append(s.they, s.other) {
		if u == nil {
			continue
		}
		s.finish(ctx, u)
		if u.left {
			s.Retire(u.User)
		}
		if err := s.Return(ctx, u.User); err != nil {
			errs = append(errs, fmt.Errorf("return user %s: %w", u.ID, err))
		}
		s.suite.users.gaveBack()
	}
	s.they, s.other = nil, nil
	if own := s.Target; own != s.suite.target {
		s.Target = s.suite.target
		errs = append(errs, own.Close())
	}
	return errors.Join(append(errs, s.suite.door.leave(ctx, s))...)
}

// finish lets what is in flight go on, so that nobody leaves a request: whoever is
// lent the user next must not have to answer for a permit that does not come back.
func (s *Scenario) finish(ctx context.Context, u *subject) {
	for _, h := range u.held {
		if !h.Over() && h.Finish(ctx).Err != nil {
			u.left = true
		}
	}
	u.held = nil
}

// Lent is how many users the scenario has, by plan, and how many tokens have to
// come back until their buckets are full.
func (s *Scenario) Lent() (users map[string]int, tokens map[string]float64) {
	users, tokens = map[string]int{}, map[string]float64{}
	for _, u := range append(slices.Clone(s.they), s.other) {
		if u != nil {
			lo, _ := u.Bucket.Level()
			users[u.Plan]++
			tokens[u.Plan] += float64(u.Bucket.Allowance().Burst) - float64(lo)/float64(oracle.Token)
		}
	}
	return users, tokens
}

// Refused is whose key was refused, and where it is; empty: nobody's.
func (s *Scenario) Refused() string { return s.refused }

// user is whom a sentence speaks of where it speaks of one.
func (s *Scenario) user() *subject { return s.they[0] }

// ownsSeparation reports whether the rule is about what others must not take: of
// somebody new it is a breach that anything is missing.
func (s *Scenario) ownsSeparation() bool {
	return slices.Contains([]string{"POOL-3", "ANON-2", "PROXY-2"}, s.clause.ID)
}

// send sends one request of u and takes in what the answer shows.
func (s *Scenario) send(ctx context.Context, u *subject, r target.Request) (exchange, error) {
	e, err := s.take(exchange{Exchange: s.Send(ctx, u.User, r), who: u})
	if err == nil && u.rested {
		err = s.wasRested(u, e)
	}
	return e, err
}

// wasRested looks at the first answer to a user who should have tokens to begin
// with. That they have not is no matter of this scenario, unless it is about how
// a bucket fills or what may empty it. One who has some all the same is taken for
// what the answer says.
func (s *Scenario) wasRested(u *subject, e exchange) error {
	u.rested = false
	off := slices.ContainsFunc(e.Findings, func(f oracle.Finding) bool { return ofBucket(f.Clause) })
	refused := rateRejected(e) && e.decidedWrongly()
	if s.begun || s.ownsFirst() || !off || !refused || !u.Used() && s.ownsSeparation() {
		return nil
	}
	return fmt.Errorf("%w: user %s does not hold the tokens that should be there to begin with", ErrBroken, u.ID)
}

// ownsFirst reports whether the first answer can be what the rule is about.
func (s *Scenario) ownsFirst() bool {
	for _, family := range []string{"PLAN-", "CHG-", "OVR-", "CFG-", "RESTART-"} {
		if strings.HasPrefix(s.clause.ID, family) {
			return true
		}
	}
	return slices.Contains([]string{"RATE-1", "RATE-2", "RATE-3", "RATE-10", "HDR-7"}, s.clause.ID)
}

// sendApart is send for a request that must leave u's bucket alone.
func (s *Scenario) sendApart(ctx context.Context, u *subject, r target.Request) (exchange, error) {
	return s.take(exchange{Exchange: s.SendApart(ctx, u.User, r)})
}

// take adds what is wrong with an answer to the findings. Its error says that
// there was none.
func (s *Scenario) take(e exchange) (exchange, error) {
	e, err := s.takeIn(e)
	if err == nil {
		err = s.stillHeld()
	}
	return e, err
}

// takeIn is take whatever is in flight by then.
func (s *Scenario) takeIn(e exchange) (exchange, error) {
	s.note(e, e.Findings)
	if e.Err != nil {
		return e, noAnswer(e.Err)
	}
	if e.who != nil && e.Refused() && s.refused == "" {
		s.refused = e.Asker
	}
	s.note(e, s.suite.always(e.Exchange))
	if e.who != nil && paid(e) {
		e.who.served = true
		e.who.charged++
	}
	return e, nil
}

// takeAll is take for several answers of nobody's bucket.
func (s *Scenario) takeAll(all []target.Exchange) (got []exchange, err error) {
	for _, x := range all {
		e, err := s.take(exchange{Exchange: x})
		if err != nil {
			return got, err
		}
		got = append(got, e)
	}
	return got, nil
}

// answer is the latest answer.
func (s *Scenario) answer() exchange {
	if len(s.got) == 0 {
		panic("there is no answer yet that this sentence could speak of")
	}
	return s.got[len(s.got)-1]
}

// of is the answers that u got.
func (s *Scenario) of(u *subject) []exchange {
	return slices.DeleteFunc(slices.Clone(s.got), func(e exchange) bool { return e.who != u })
}

// noAnswer says why a request that got no answer tells nothing, or why it was
// not even sent.
func noAnswer(err error) error {
	switch {
	case errors.Is(err, target.ErrBudget), errors.Is(err, target.ErrNoWitness), errors.Is(err, target.ErrUnsupported):
		return setup(err)
	}
	return fmt.Errorf("%w: %w", ErrInconclusive, err)
}

func setup(err error) error { return fmt.Errorf("%w: %w", ErrSetup, err) }

// rateRejected reports whether an answer looks like that of an empty bucket, even
// if not in the form it should have. A 429 that does not say which it is may be
// either kind where requests are in flight: whoever asks knows what was to be
// expected.
func rateRejected(e exchange) bool { return rejected(e, contract.CodeRateLimited) && !capInDisguise(e) }

// capRejected is rateRejected for a full cap.
func capRejected(e exchange) bool {
	return rejected(e, contract.CodeConcurrencyLimited) && !rateInDisguise(e) || capInDisguise(e)
}

// paid reports whether an answer shows that the request got past key, policy,
// bucket and cap, whatever became of it then.
func paid(e exchange) bool {
	return e.Status != 0 && !untouched(e) && !rateRejected(e) && !capRejected(e)
}

// untouched reports whether an answer says that no bucket was asked.
func untouched(e exchange) bool { return e.Answer.Status == http.StatusUnauthorized || unresolved(e) }

func rejected(e exchange, code string) bool {
	switch e.Answer.Body.ErrorCode.Value {
	case code:
		return true
	case contract.CodeRateLimited, contract.CodeConcurrencyLimited:
		return false
	}
	return e.Status == http.StatusTooManyRequests && (code == contract.CodeConcurrencyLimited || !tokensLeft(e))
}

// tokensLeft reports whether an answer says that its bucket still holds a token:
// the bucket has not refused it then.
func tokensLeft(e exchange) bool {
	return e.Answer.Remaining.State == contract.Good && e.Answer.Remaining.Value > 0
}

// tellsWhich fails for a 429 of which nobody can say whether the bucket or the cap
// has refused it: it has a code of its own, and nothing in it decides.
func tellsWhich(e exchange) error {
	if rateRejected(e) && capRejected(e) {
		return fmt.Errorf("%w: a 429 with the code %s may be the bucket's or the cap's; the contract fixes both codes (ERR-3, CONC-2)", ErrInconclusive, orAbsent(e.Answer.Body.ErrorCode.Value))
	}
	return nil
}

// capInDisguise reports whether the oracle knows a rejection by the cap behind
// another name: the bucket held a token, and the headers show it spent.
func capInDisguise(e exchange) bool {
	return slices.ContainsFunc(e.Findings, func(f oracle.Finding) bool { return f.Clause == "CONC-1" })
}

// rateInDisguise reports whether the oracle knows that a rejection without a
// cause of its own can only be one of the bucket.
func rateInDisguise(e exchange) bool {
	return slices.ContainsFunc(e.Findings, func(f oracle.Finding) bool {
		return f.Field == contract.MemberErrorCode && f.Expected == contract.CodeRateLimited
	})
}
