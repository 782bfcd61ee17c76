package fault

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/permit"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/wiring"
)

// steps is the local limiter taken apart, so that a fault can exchange the one
// step that it is about.
type steps struct {
	clock   clock.Clock
	order   *atomic.Uint64
	buckets buckets
	permits permits

	bucketOf func(*httpapi.Exchange) string      // whose bucket it is
	capOf    func(*httpapi.Exchange) string      // whose cap it is
	instant  func(bucket.Instant) bucket.Instant // what a bucket takes the time to be
	spend    func(*httpapi.Exchange, bucket.State, policy.Allowance, bucket.Instant) (bucket.State, bool)
	refused  func(*httpapi.Exchange, *limiter.Decision) // hears of a rate rejection
}

// buckets is a store of bucket states.
type buckets interface {
	Update(subject string, f func(bucket.State) bucket.State)
}

// permits is a table of requests in flight.
type permits interface {
	Take(subject, id string, limit int64) (inFlight int64, ok bool)
	Release(subject, id string) bool
}

// limits puts a limiter in steps into p and returns it, still right.
func limits(p *wiring.Parts) *steps {
	l := &steps{
		clock:    p.Clock,
		order:    &atomic.Uint64{},
		buckets:  limiter.NewBuckets(limiter.Config{}),
		permits:  permit.New(),
		bucketOf: p.Subject,
		capOf:    p.Subject,
		instant:  func(now bucket.Instant) bucket.Instant { return now },
		spend:    take,
		refused:  func(*httpapi.Exchange, *limiter.Decision) {},
	}
	p.Limiter = l
	return l
}

// limiting exchanges steps of the limiter.
func limiting(exchange func(l *steps)) alteration {
	return func(p *wiring.Parts) { exchange(limits(p)) }
}

// take is how a token is spent.
func take(_ *httpapi.Exchange, s bucket.State, a policy.Allowance, now bucket.Instant) (bucket.State, bool) {
	return s.Take(a, now)
}

// look spends nothing, and finds everything in order.
func look(_ *httpapi.Exchange, s bucket.State, a policy.Allowance, now bucket.Instant) (bucket.State, bool) {
	return s.Settled(a, now), true
}

// Admit decides as the reference does, step by step.
func (l *steps) Admit(ctx context.Context, _ string, a policy.Allowance, id string) (limiter.Decision, error) {
	x := httpapi.From(ctx)
	var d limiter.Decision
	l.buckets.Update(l.bucketOf(x), func(s bucket.State) bucket.State {
		now := l.clock.Instant()
		at := l.instant(now)
		s, spent := l.spend(x, s, a, at)
		d = limiter.Decision{Decision: admission.Of(s, a, at), Order: l.order.Add(1)}
		d.At = now
		if !spent {
			d.Outcome = admission.RateRejected
			return s
		}
		inFlight, taken := l.permits.Take(l.capOf(x), id, a.Concurrency())
		if d.Outcome, d.InFlight = admission.ConcurrencyRejected, inFlight; taken {
			d.Outcome = admission.Admitted
		}
		return s
	})
	if d.Outcome == admission.RateRejected {
		l.refused(x, &d)
	}
	return d, nil
}

// Release gives a permit back.
func (l *steps) Release(ctx context.Context, _, id string) error {
	l.permits.Release(l.capOf(httpapi.From(ctx)), id)
	return nil
}

// giveBack puts a token back into the bucket of x, and into what its answer will
// say.
func (l *steps) giveBack(x *httpapi.Exchange) {
	l.buckets.Update(l.bucketOf(x), func(s bucket.State) bucket.State {
		s.Level = min(s.Level+bucket.Token, s.Burst*bucket.Token)
		d := admission.Of(s, x.Decision.Allowance, x.Decision.At)
		x.Decision.Level, x.Decision.ToToken, x.Decision.ToFull = d.Level, d.ToToken, d.ToFull
		return s
	})
}

// refunds gives the token of some replies back, before they are sent.
func refunds(on when) alteration {
	return func(p *wiring.Parts) {
		l := limits(p)
		replies(on, func(x *httpapi.Exchange, _ *httpapi.Reply) { l.giveBack(x) })(p)
	}
}

// halves are the two halves of one limiter: the first spends tokens and gives
// everybody a permit, the second gives permits and spends nothing.
func halves(p *wiring.Parts) (tokens, permits *steps) {
	whole := limits(p)
	first, second := *whole, *whole
	first.permits = noCap{}
	second.spend = look
	return &first, &second
}

// by is the limiter's link with l instead of the parts' limiter.
func by(l *steps, p *wiring.Parts) httpapi.Link {
	inner := p.Links[p.Links.At(httpapi.LinkLimit)]
	return httpapi.Link{Name: inner.Name, Wrap: func(p *httpapi.Ports, next http.Handler) http.Handler {
		ports := *p
		ports.Limiter = l
		return inner.Wrap(&ports, next)
	}}
}

// noCap is a table in which there is always a place.
type noCap struct{}

func (noCap) Take(string, string, int64) (int64, bool) { return 0, true }
func (noCap) Release(string, string) bool              { return true }

// allowance is an allowance as near to these values as there is one.
func allowance(rpm, burst, concurrency int64) policy.Allowance {
	near := func(d policy.Dimension, n int64) int64 { return min(max(n, 1), d.Max()) }
	a, err := policy.NewAllowance(near(policy.RequestsPerMinute, rpm), near(policy.Burst, burst), near(policy.Concurrency, concurrency))
	if err != nil {
		panic(err) // every value is in range
	}
	return a
}
