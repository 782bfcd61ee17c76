// Package limiter is the port through which every request is admitted, and the
// local limiter behind it: bounded memory of one process (CACHE-1, CACHE-2).
//
// Most callers want [NewLocal]. The contract that every adapter keeps is tested
// by package limitertest.
package limiter

import (
	"context"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/policy"
)

// Limiter admits requests. Admit spends the token and takes the permit in one
// call, so that a remote store needs one round trip; an error means that no
// decision could be made and nothing was spent. The zero allowance is such an
// error, and so is an id that the subject has in flight. Release gives the permit
// back; it is idempotent, never frees another request's permit, and works when
// the request's own context is gone.
//
// id is the request id that the server minted. Subject is who is limited: the
// user, never the key.
type Limiter interface {
	Admit(ctx context.Context, subject string, a policy.Allowance, id string) (Decision, error)
	Release(ctx context.Context, subject, id string) error
}

// Decision is an admission with its place among all decisions of this limiter.
type Decision struct {
	admission.Decision
	Order uint64          // from 1, in the order in which decisions took effect
	Lost  <-chan struct{} // closed when a remote store took the permit back early; nil: it cannot
}
