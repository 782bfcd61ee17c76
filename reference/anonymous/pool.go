package anonymous

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/permit"
	"github.com/invoicespec/brimline/reference/policy"
)

// Rejection is an attempt refused for what others of its address did. It names
// no user, no plan and no quota (ANON-4).
type Rejection struct {
	Outcome    admission.Outcome // [admission.RateRejected] or [admission.ConcurrencyRejected]
	RetryAfter int64             // seconds, rounded up, at least 1
}

func (r Rejection) Error() string {
	return fmt.Sprintf("too many attempts from this address (%s): retry after %d s", r.Outcome, r.RetryAfter)
}

// pools are the tokens and places of all addresses. A place that is taken sets a
// token aside without touching the bucket: to give it back is to do nothing, and
// can neither overfill the bucket nor be done twice. A bucket is thus written by
// failed attempts alone, and addresses without any leave nothing in memory.
type pools struct {
	clock     clock.Clock
	allowance policy.Allowance
	buckets   *limiter.Buckets
	places    *permit.Table
	last      atomic.Uint64 // place that was given out
	observe   func(admission.Outcome, time.Duration)
}

// reserve takes a place, and with it sets a token aside, or takes neither.
func (p *pools) reserve(pool string) (place string, err error) {
	place = strconv.FormatUint(p.last.Add(1), 36)
	return place, p.attempt(pool, func(s bucket.State, _ bucket.Instant) (bucket.State, bool) {
		_, ok := p.places.Take(pool, place, p.allowance.Concurrency())
		return s, ok
	})
}

// spend gives a place up and spends its token, which nobody else can have taken.
func (p *pools) spend(pool, place string) {
	p.buckets.Update(pool, func(s bucket.State) bucket.State {
		if p.places.Release(pool, place) {
			s, _ = s.Take(p.allowance, p.clock.Instant())
		}
		return s
	})
}

// giveBack gives a place up, and with it the token that was set aside.
func (p *pools) giveBack(pool, place string) { p.places.Release(pool, place) }

// count is reserve and spend in one, for an attempt known to be bad.
func (p *pools) count(pool string) error {
	return p.attempt(pool, func(s bucket.State, now bucket.Instant) (bucket.State, bool) {
		if p.places.InFlight(pool) >= p.allowance.Concurrency() {
			return s, false
		}
		return s.Take(p.allowance, now)
	})
}

// attempt has take do its work if there is a token that is not set aside. When
// take reports false there is no place. All of it is one step: places are taken
// nowhere else, so none is taken meanwhile.
func (p *pools) attempt(pool string, take func(bucket.State, bucket.Instant) (bucket.State, bool)) error {
	began := time.Now()
	r := Rejection{Outcome: admission.Admitted}
	p.buckets.Update(pool, func(s bucket.State) bucket.State {
		now := p.clock.Instant()
		free := s.Settled(p.allowance, now)
		free.Level -= p.places.InFlight(pool) * bucket.Token
		if free.Level < bucket.Token {
			r = Rejection{admission.RateRejected, seconds(free.ToToken(now))}
			return s
		}
		next, ok := take(s, now)
		if !ok {
			r = Rejection{admission.ConcurrencyRejected, 1}
			return s
		}
		return next
	})
	p.observe(r.Outcome, time.Since(began))
	if r.Outcome != admission.Admitted {
		return r
	}
	return nil
}

// seconds rounds microseconds up, so that the shortest wait is one second.
func seconds(micros int64) int64 { return (micros + 999_999) / 1_000_000 }
