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
	ids      *identities
	users    *lending
	patterns map[string]*regexp.Regexp
}

// NewSuite begins a run against t.
func NewSuite(t *target.Target) *Suite {
	return &Suite{target: t, ids: newIdentities(), users: newLending(), patterns: compiled()}
}

// Scenario is one run of one scenario. It is not safe for concurrent use.
type Scenario struct {
	*target.Target
	suite  *Suite
	clause contract.Clause // of the rule: what a Then finds is a breach of it
	rows   []string        // the plans that the rows of its outline name
	they   []*subject      // whom the sentences speak of; several only where a row stands for several plans
	other  *subject
	step   string     // the sentence being carried out
	got    []exchange // the answers of the latest sentence that sends
	found  []found
	mark   int // how much of found was there when the Givens were done
	begun  bool

	refusals   []refusal     // of the operator boundary
	tried      []exchange    // what the latest sentence tried in vain, or should have
	operations control.Usage // as counted or set
	page       string        // the billing page's source
}

// subject is a leased user.
type subject struct {
	*target.User
	held []*target.Held
}

// exchange is a request, its answer, and whose it was.
type exchange struct {
	target.Exchange
	who *subject // nil: nobody's bucket
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
		if err := s.Return(ctx, u.User); err != nil {
			errs = append(errs, fmt.Errorf("return user %s: %w", u.ID, err))
		}
		s.suite.users.gaveBack()
	}
	s.they, s.other = nil, nil
	return errors.Join(errs...)
}

// user is whom a sentence speaks of where it speaks of one.
func (s *Scenario) user() *subject { return s.they[0] }

// send sends one request of u and takes in what the answer shows.
func (s *Scenario) send(ctx context.Context, u *subject, r target.Request) (exchange, error) {
	return s.take(exchange{Exchange: s.Send(ctx, u.User, r), who: u})
}

// sendApart is send for a request that must leave u's bucket alone.
func (s *Scenario) sendApart(ctx context.Context, u *subject, r target.Request) (exchange, error) {
	return s.take(exchange{Exchange: s.SendApart(ctx, u.User, r)})
}

// take adds what is wrong with an answer to the findings. Its error says that
// there was none.
func (s *Scenario) take(e exchange) (exchange, error) {
	s.note(e, e.Findings)
	if e.Err != nil {
		return e, noAnswer(e.Err)
	}
	s.note(e, s.suite.always(e.Exchange))
	return e, nil
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
// either kind: whoever asks knows what was to be expected.
func rateRejected(e exchange) bool { return rejected(e, contract.CodeRateLimited) && !capInDisguise(e) }

// capRejected is rateRejected for a full cap.
func capRejected(e exchange) bool {
	return rejected(e, contract.CodeConcurrencyLimited) || capInDisguise(e)
}

func rejected(e exchange, code string) bool {
	switch e.Answer.Body.ErrorCode.Value {
	case code:
		return true
	case contract.CodeRateLimited, contract.CodeConcurrencyLimited:
		return false
	}
	return e.Status == http.StatusTooManyRequests
}

// capInDisguise reports whether the oracle knows a rejection by the cap behind
// another name: the bucket held a token, and the headers show it spent.
func capInDisguise(e exchange) bool {
	return slices.ContainsFunc(e.Findings, func(f oracle.Finding) bool { return f.Clause == "CONC-1" })
}

// ensure makes sure of n tokens, or of the whole burst if that is less.
func (s *Scenario) ensure(ctx context.Context, u *subject, n int64) error {
	asked, err := s.Ready(ctx, u.User, n)
	if asked.Method != "" {
		if _, err := s.take(exchange{Exchange: asked, who: u}); err != nil {
			return err
		}
	}
	return asInconclusive(err)
}
