package steps

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
)

// kind is a request as the features speak of it: in the singular after "a", in
// the plural without.
type kind string

// The kinds. The features' wording is the key: see [Scenario.perform].
const (
	kindValid     kind = "valid request"
	kindHead      kind = "HEAD request"
	kindOptions   kind = "OPTIONS request"
	kindUnknown   kind = "request to an unknown path"
	kindMethod    kind = "request with a wrong method"
	kindInvalid   kind = "request that fails validation"
	kindExhausted kind = "request without operations left"
	kindFails     kind = "request that the engine fails"
	kindPanics    kind = "request that makes the engine panic"
	kindTimesOut  kind = "request that runs into its timeout"
	kindAboveCap  kind = "request above the cap"
	kindAtEmpty   kind = "request at an empty bucket"
)

// kindsPattern matches a kind in a sentence.
func kindsPattern() string {
	kinds := []string{}
	for _, k := range []kind{kindValid, kindHead, kindOptions, kindUnknown, kindMethod, kindInvalid, kindExhausted,
		kindFails, kindPanics, kindTimesOut, kindAboveCap, kindAtEmpty} {
		kinds = append(kinds, string(k))
	}
	return strings.Join(kinds, "|")
}

// singular is the kind that a plural in a feature speaks of.
func singular(plural string) kind {
	text := strings.Replace(plural, "requests", "request", 1)
	for many, one := range map[string]string{
		"that fail ": "that fails ", "that make ": "that makes ", "that run into their ": "that runs into its ",
	} {
		text = strings.Replace(text, many, one, 1)
	}
	return kind(text)
}

// needs is what a kind takes beside plain HTTP.
func (k kind) needs() needs {
	switch k {
	case kindInvalid:
		return needs{contract.NeedInvalid}
	case kindExhausted:
		return needs{contract.NeedOperations}
	case kindFails:
		return needs{contract.NeedFail}
	case kindPanics, kindTimesOut:
		return needs{contract.NeedEngine}
	case kindAboveCap:
		return needs{contract.NeedHold}
	}
	return nil
}

// perform sends one request of a kind, in the state of affairs that makes it
// one. The answer it is about is the last one sent.
func (s *Scenario) perform(ctx context.Context, u *subject, k kind) (exchange, error) {
	switch k {
	case kindAboveCap:
		return s.aboveCap(ctx, u)
	case kindAtEmpty:
		if _, err := s.empty(ctx, u); err != nil {
			return exchange{}, err
		}
		return s.atEmpty(ctx, u, s.Valid())
	}
	undo, err := s.arrange(ctx, u, k)
	if err != nil {
		return exchange{}, err
	}
	r, err := s.request(k)
	if err != nil {
		return exchange{}, err
	}
	e, err := s.send(ctx, u, r)
	if err != nil {
		return e, err
	}
	if paid(e) && e.Status < k.least() {
		return e, fmt.Errorf("%w: a %s was answered with %s", ErrSetup, k, statusAndCode(e))
	}
	if want := s.ExpectFailing(); k == kindFails && want != 0 && paid(e) && e.Status != want {
		return e, fmt.Errorf("%w: a %s was answered with %s, and operations.failing.expect says %d", ErrSetup, k, statusAndCode(e), want)
	}
	if want, said := s.Declared(k.reply()); said && paid(e) && e.Answer.Said != want {
		return e, fmt.Errorf("%w: a %s was answered with %s, and answers.%s says %s", ErrSetup, k, statusAndCode(e), k.reply(), want)
	}
	return e, undo()
}

// least is the least status with which a request can have been of this kind once
// it is past bucket and cap.
func (k kind) least() int {
	switch k {
	case kindInvalid, kindExhausted:
		return http.StatusBadRequest
	case kindFails, kindPanics, kindTimesOut:
		return http.StatusInternalServerError
	}
	return 0
}

// reply is the contract's error code for a request of this kind; empty: it has
// none, or it depends.
func (k kind) reply() string {
	return map[kind]string{
		kindInvalid: contract.CodeValidationFailed, kindExhausted: contract.CodeCapacityExhausted,
		kindFails: contract.CodeEngineFailure, kindPanics: contract.CodeEngineFailure, kindTimesOut: contract.CodeEngineTimeout,
	}[k]
}

// arrange tells the control server what a kind needs behind the scenes, and
// returns how to undo it.
func (s *Scenario) arrange(ctx context.Context, u *subject, k kind) (undo func() error, err error) {
	behave := map[kind]control.Behaviour{
		kindFails: control.EngineFail, kindPanics: control.EnginePanic, kindTimesOut: control.EngineTimeout,
	}
	undo = func() error { return nil }
	_, failing := s.Failing()
	switch {
	case k == kindFails && failing: // by itself
	case behave[k] != "":
		err = s.SetEngine(ctx, u.User, behave[k])
		undo = func() error { return asSetup(s.SetEngine(ctx, u.User, control.EngineOK)) }
	case k == kindExhausted:
		err = s.SetOperations(ctx, u.User, 0)
		undo = func() error { return asSetup(s.SetOperations(ctx, u.User, plentyOfOperations)) }
	}
	return undo, asSetup(err)
}

// plentyOfOperations is more than any scenario charges.
const plentyOfOperations = 1000

// request is one request of a kind that needs no special state of affairs.
func (s *Scenario) request(k kind) (target.Request, error) {
	r := s.Valid()
	switch k {
	case kindHead:
		r.Method, r.Body = http.MethodHead, nil
	case kindOptions:
		r.Method, r.Body = http.MethodOptions, nil
	case kindUnknown:
		r.Path, r.Body = s.Scope().Below(nowhere), marked()
	case kindMethod:
		r.Method = http.MethodPut
		if s.Valid().Method == http.MethodPut {
			r.Method = http.MethodPatch
		}
	case kindFails:
		if failing, ok := s.Failing(); ok {
			r = failing
		}
	case kindInvalid:
		in, ok := s.Invalid()
		if !ok {
			return r, fmt.Errorf("%w: %w: the target file names no invalid operation", ErrSetup, target.ErrUnsupported)
		}
		r = in
	}
	return r, nil
}

// somewhere is a valid request sent to another place in scope.
func (s *Scenario) somewhere(where string) target.Request {
	r := s.Valid()
	r.Body = marked()
	r.Path = s.Scope().Prefix
	switch where {
	case "an unknown path":
		r.Path = s.Scope().Below(nowhere)
	case "a path far below it":
		r.Path = s.Scope().Below("no/such/operation/2026/11/30/draft.json")
	}
	return r
}

// nowhere is a path below what is limited where no operation is.
const nowhere = "no-such-operation"

// bodyMark begins a text that nothing but a request's body of this suite holds.
const bodyMark = "brimline-body-"

// marked is a JSON body that can be recognised wherever it turns up.
func marked() []byte { return []byte(`{"note":"` + bodyMark + rand.Text() + `"}`) }

// drain sends r until the first rejection for the rate, however that looks, or
// until a decision that the bucket cannot explain.
func (s *Scenario) drain(ctx context.Context, u *subject, r target.Request) ([]exchange, error) {
	var got []exchange
	late := 0 // answers in a row in which a token had the time to come back
	for range 3*u.Bucket.Allowance().Burst + 30 {
		e, err := s.send(ctx, u, r)
		if err != nil {
			return got, err
		}
		got = append(got, e)
		if late++; took(e) < s.tokenTime(u) || s.Movable() {
			late = 0
		}
		switch {
		case unresolved(e) && s.begun: // what the scenario changed has left the user without limits
			return got, s.broken(e, "status", "an answer that tells of the bucket", statusAndCode(e))
		case untouched(e):
			return got, fmt.Errorf("%w: %s", ErrInconclusive, statusAndCode(e))
		case rateRejected(e) || e.decidedWrongly():
			return got, nil
		case late == hopeless, late > 1 && s.farTooFast(u, got[len(got)-2], e):
			return got, s.tooFast(u, e)
		}
	}
	return got, fmt.Errorf("%w: none of %d requests one after the other was rejected for the rate", ErrInconclusive, len(got))
}

func asSetup(err error) error {
	if err == nil {
		return nil
	}
	return setup(err)
}
