package httpapi

import (
	"context"
	"net/netip"
	"time"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/invoice"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
)

// Exchange is what is known of one request in scope. The links fill it in from
// the outside in, each the part it finds out, and it travels in the request's
// context: also to the ports, where [From] gives it back. Only the goroutine
// that serves the request writes to it.
type Exchange struct {
	ID       string
	Received time.Time
	Start    bucket.Instant
	Method   string
	Path     string     // decoded, cut to a bounded length
	Client   netip.Addr // who asks; the zero Addr: a peer without an address

	// What a trusted proxy calls the request: for the log alone (ERR-5).
	Correlation string

	Account   account.Record    // set by authenticate
	Effective policy.Effective  // set by authenticate
	PlanRate  int64             // set by authenticate: what meters count the request under
	Subject   string            // set by limit
	Decision  *limiter.Decision // set by limit; nil: the limiter was not asked
	Outcome   string            // the log's word for how it fared
	Invoice   invoice.Invoice   // set by validate
	Charged   int64             // set by engine

	Status int    // of the answer, once composed
	Code   string // error code of the answer, if it is an error

	unread bool // the client may still be sending a body that nobody reads
	shared bool // other requests share the connection (HTTP/2)
}

type exchangeKey struct{}

// With returns ctx carrying x.
func With(ctx context.Context, x *Exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

// From is the exchange that ctx carries, or nil outside the chain.
func From(ctx context.Context) *Exchange {
	x, _ := ctx.Value(exchangeKey{}).(*Exchange)
	return x
}
