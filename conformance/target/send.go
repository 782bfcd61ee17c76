package target

import (
	"context"
	"net/http"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
)

// Request is one request. Get one from [Target.Valid] or [Target.Invalid] and
// change what the scenario is about.
type Request struct {
	Method        string
	Path          string      // the request target, sent as it is spelled
	Header        http.Header // sent as spelled, beside Host, Content-Length and the credential
	Body          []byte
	Key           int      // which of the user's keys, from 0
	Authorization []string // if not nil, these credential lines instead of a key; empty: none
}

// Exchange is a request and what came back.
type Exchange struct {
	Method   string
	Path     string
	Curl     string      // a command that repeats the request, its key masked
	Span     oracle.Span // where on the target's timeline the decision fell
	Status   int         // 0: no answer
	Header   http.Header
	Body     []byte // at most 1 MiB
	Answer   contract.Answer
	Findings []oracle.Finding // what the oracle holds against the answer
	Err      error            // why there is no whole answer; nil: there is one
}

// Valid is the operation that succeeds.
func (t *Target) Valid() Request { return Request{} }

// Invalid is the operation that fails validation; false: the target has none.
func (t *Target) Invalid() (Request, bool) { return Request{}, false }

// ExpectValid is the status that [Target.Valid] ends with when admitted.
func (t *Target) ExpectValid() int { return 200 }

// ExpectInvalid is the status that [Target.Invalid] ends with when admitted.
func (t *Target) ExpectInvalid() int { return 422 }

// Send sends a request with a key of u and lets the oracle judge the answer
// against u's bucket. Wait for its answer before sending the next one for u.
func (t *Target) Send(ctx context.Context, u *User, r Request) Exchange { return Exchange{} }

// SendApart is Send for a request that u's bucket must not hear of: one outside
// the quotas, or one that must not authenticate. u may be nil when no key is
// sent.
func (t *Target) SendApart(ctx context.Context, u *User, r Request) Exchange { return Exchange{} }

// SendTogether sends requests of one user at one moment and lets the oracle
// judge them as a whole. The exchanges are in the order of rs.
func (t *Target) SendTogether(ctx context.Context, u *User, rs []Request) ([]Exchange, []oracle.Finding) {
	return nil, nil
}
