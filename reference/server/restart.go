package server

import (
	"context"
	"sync/atomic"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
)

// renewable is something that can begin anew as in a new process.
type renewable[T any] struct {
	now  atomic.Pointer[T]
	make func() *T
}

func newRenewable[T any](fresh func() *T) *renewable[T] {
	r := &renewable[T]{make: fresh}
	r.renew()
	return r
}

func (r *renewable[T]) renew() { r.now.Store(r.make()) }

// renewableLimits begin with every bucket full and no permit taken (RESTART-1).
// What was admitted before releases into nothing.
type renewableLimits struct{ *renewable[limiter.Local] }

func (r renewableLimits) Admit(ctx context.Context, subject string, a policy.Allowance, id string) (limiter.Decision, error) {
	return r.now.Load().Admit(ctx, subject, a, id)
}

func (r renewableLimits) Release(ctx context.Context, subject, id string) error {
	return r.now.Load().Release(ctx, subject, id)
}

func (r renewableLimits) Stats() limiter.Stats { return r.now.Load().Stats() }

func (r renewableLimits) SubjectsInFlight() int { return r.now.Load().SubjectsInFlight() }

// renewableGate begins with every pool full and no key known.
type renewableGate struct{ *renewable[anonymous.Gate] }

func (r renewableGate) Authenticate(ctx context.Context, pool string, key account.Digest, lookup anonymous.Lookup) (account.Record, error) {
	return r.now.Load().Authenticate(ctx, pool, key, lookup)
}

func (r renewableGate) NoKey(pool string) error { return r.now.Load().NoKey(pool) }

func (r renewableGate) Stats() anonymous.Stats { return r.now.Load().Stats() }
