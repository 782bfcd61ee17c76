package limiter

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/permit"
	"github.com/invoicespec/brimline/reference/policy"
)

// Errors of Admit: no decision was made and nothing was spent.
var (
	ErrNoAllowance = errors.New("the zero allowance admits nobody")
	ErrDoubledID   = errors.New("request id is in flight already")
)

// Local is the limiter of a single process. Its two parts, [Buckets] and
// [permit.Table], can be composed otherwise. Make one with [NewLocal].
type Local struct {
	clock   clock.Clock
	buckets *Buckets
	permits *permit.Table
	order   atomic.Uint64
}

// NewLocal returns a limiter with every bucket full and nothing in flight.
func NewLocal(c clock.Clock, cfg Config) *Local {
	return &Local{clock: c, buckets: NewBuckets(cfg), permits: permit.New()}
}

// Admit decides as [admission.Decide] does. Reading the clock, taking the permit
// and numbering the decision all happen inside the bucket's lock, so that the
// decisions of one subject, sorted by Order, are the ones Decide gives when it
// is asked again in that order.
func (l *Local) Admit(_ context.Context, subject string, a policy.Allowance, id string) (Decision, error) {
	if a.IsZero() {
		return Decision{}, ErrNoAllowance
	}
	var d Decision
	var err error
	l.buckets.Update(subject, func(s bucket.State) bucket.State {
		next, decided := admission.Decide(s, l.permits.InFlight(subject), a, l.clock.Instant())
		if decided.Outcome == admission.Admitted {
			// Slots are taken nowhere else, so one that was free still is.
			if _, ok := l.permits.Take(subject, id, a.Concurrency()); !ok {
				err = fmt.Errorf("%w: %q", ErrDoubledID, id)
				return s
			}
		}
		d = Decision{Decision: decided, Order: l.order.Add(1)}
		return next
	})
	return d, err
}

// Release gives the permit of a request back. It never fails.
func (l *Local) Release(_ context.Context, subject, id string) error {
	l.permits.Release(subject, id)
	return nil
}

// Stats drops what is idle, then says how full the store of buckets is.
func (l *Local) Stats() Stats {
	l.buckets.Sweep(l.clock.Instant())
	return l.buckets.Stats()
}

// SubjectsInFlight is how many subjects have something in flight.
func (l *Local) SubjectsInFlight() int { return l.permits.Subjects() }
