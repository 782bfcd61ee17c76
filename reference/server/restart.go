package server

import (
	"context"
	"sync/atomic"

	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
)

// renewable is a local limiter that can begin anew as in a new process: every
// bucket full, no permit taken (RESTART-1). What was admitted before releases
// into nothing.
type renewable struct {
	now  atomic.Pointer[limiter.Local]
	make func() *limiter.Local
}

func newRenewable(fresh func() *limiter.Local) *renewable {
	r := &renewable{make: fresh}
	r.renew()
	return r
}

func (r *renewable) renew() { r.now.Store(r.make()) }

func (r *renewable) Admit(ctx context.Context, subject string, a policy.Allowance, id string) (limiter.Decision, error) {
	return r.now.Load().Admit(ctx, subject, a, id)
}

func (r *renewable) Release(ctx context.Context, subject, id string) error {
	return r.now.Load().Release(ctx, subject, id)
}

func (r *renewable) Stats() limiter.Stats { return r.now.Load().Stats() }

func (r *renewable) SubjectsInFlight() int { return r.now.Load().SubjectsInFlight() }
