package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/invoice"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
)

// Accounts finds who presents a key. One call a request, one round trip a call
// (AUTH-2). Its error is [account.ErrUnknownKey], or the store is out of reach.
type Accounts interface {
	Lookup(ctx context.Context, key account.Digest) (account.Record, error)
}

// Clients says who sent a request (PROXY-1 to PROXY-5), whose pool of attempts
// that is (ANON-2), and what of the address may be logged (LOG-2).
// [clientip.Resolver] does.
type Clients interface {
	Client(*http.Request) netip.Addr
	Trusts(netip.Addr) bool
	Pool(netip.Addr) string
	Logged(netip.Addr) string
}

// Gate holds attempts that do not authenticate to what one client address may
// cost, before anything is looked up for them (ANON-1 to ANON-7). [anonymous.Gate]
// does; what it refuses is an [anonymous.Rejection].
type Gate interface {
	Authenticate(ctx context.Context, pool string, key account.Digest, lookup anonymous.Lookup) (account.Record, error)
	NoKey(pool string) error
}

// Ledger counts paid operations (LOG-4, LOG-7). Each request reserves one under
// its id ([account.ErrExhausted]: none is left), charges it if it succeeds, and
// gives it back when it ends: that returns only what was not charged. Charging
// and giving back are idempotent.
type Ledger interface {
	Reserve(ctx context.Context, user, id string) error
	Charge(ctx context.Context, id string) error
	GiveBack(ctx context.Context, id string) error
}

// Engine does the paid work. It obeys ctx as best it can; a permit stays taken
// until it returns.
type Engine interface {
	Calculate(ctx context.Context, in invoice.Invoice) (invoice.Result, error)
}

// Log takes the one entry of each request in scope (LOG-1, LOG-3, LOG-5). It
// returns once the entry is spooled; an error is counted and fails no request.
type Log interface {
	Write(ctx context.Context, e contract.LogEntry) error
}

// Meters counts what becomes of requests (METRIC-1). It is told in values of
// closed kinds and in numbers, so that no label can hold a user or a key.
type Meters interface {
	// Decided: planRate is the requests per minute of the user's plan, also where
	// an override says otherwise; 0: the plan's own is not well-formed.
	Decided(planRate int64, o admission.Outcome, took time.Duration)
	ConfigurationFailed(r policy.Reason) // the policy did not resolve
	StoreFailed()                        // accounts or limiter could not be asked
}

// Unmetered counts nothing.
type Unmetered struct{}

// Decided does nothing.
func (Unmetered) Decided(int64, admission.Outcome, time.Duration) {}

// ConfigurationFailed does nothing.
func (Unmetered) ConfigurationFailed(policy.Reason) {}

// StoreFailed does nothing.
func (Unmetered) StoreFailed() {}

// Ports is all that the links of the chain are built from. Every field is
// required.
type Ports struct {
	Clock    clock.Clock
	MintID   func() string // unguessable and never twice the same (ERR-5)
	Clients  Clients
	Gate     Gate
	Digest   func(account.Key) account.Digest // one keyed digest of bounded length
	Accounts Accounts
	Resolve  func(account.Record, time.Time) (policy.Effective, error)
	Subject  func(*Exchange) string // whose bucket and cap a request draws on (POOL-1 to POOL-3)
	Limiter  limiter.Limiter
	Ledger   Ledger
	Engine   Engine
	Log      Log
	Meters   Meters
	Compose  func(*Exchange, Reply) Answer // words to bytes: status, headers, body
	Routes   []Route                       // the operations in scope
	Bounds   Bounds
	Logger   *slog.Logger
}

// Route is one operation in scope, by method and exact path.
type Route struct{ Method, Path string }

// Bounds are the sizes and times that no client and no work may exceed.
type Bounds struct {
	Body    int64         // bytes of a request body
	Upload  time.Duration // for the whole body to arrive, from when it is first read
	Engine  time.Duration // for the engine to work
	Linger  time.Duration // for a body that nobody reads to drain after its request was answered
	Header  int           // bytes of a request's head
	Head    time.Duration // for a request's head to arrive
	Write   time.Duration // from the head to the end of the answer
	Idle    time.Duration // between two requests on one connection
	Stopped time.Duration // for requests in flight to end when the server stops
}
