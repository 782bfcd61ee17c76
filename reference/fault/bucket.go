package fault

import (
	"net/http"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/wiring"
)

func bucketFaults() []Fault {
	return []Fault{
		{"burst-is-rpm", "RATE-1", "a bucket holds a minute's requests instead of the burst",
			allowances(func(_ *httpapi.Exchange, a policy.Allowance) policy.Allowance {
				return allowance(a.RequestsPerMinute(), a.RequestsPerMinute(), a.Concurrency())
			})},
		{"starts-one-short", "RATE-1", "a new user's bucket lacks one token",
			spending(func(s bucket.State, a policy.Allowance, now bucket.Instant) (bucket.State, bool) {
				if s.Burst == 0 {
					s = s.Settled(a, now)
					s.Level -= bucket.Token
				}
				return s.Take(a, now)
			})},
		{"refill-double", "RATE-2", "the bucket refills at twice the rate",
			timing(func(now bucket.Instant) bucket.Instant { return 2 * now })},
		{"refill-half", "RATE-2", "the bucket refills at half the rate",
			timing(func(now bucket.Instant) bucket.Instant { return now / 2 })},
		{"refill-never", "RATE-2", "the bucket never refills",
			timing(func(bucket.Instant) bucket.Instant { return 0 })},
		{"overfill", "RATE-3", "idle time is banked up to twice the burst", spending(overfill)},

		{"cost-two", "RATE-4", "a request costs two tokens where there are two",
			spending(func(s bucket.State, a policy.Allowance, now bucket.Instant) (bucket.State, bool) {
				s, taken := s.Take(a, now)
				s, _ = s.Take(a, now)
				return s, taken
			})},
		{"refund-on-validation", "RATE-4", "a validation failure gives its token back",
			refunds(onCode(contract.CodeValidationFailed))},
		{"refund-on-capacity", "RATE-4", "a capacity rejection gives its token back",
			refunds(onCode(contract.CodeCapacityExhausted))},
		{"refund-on-engine-failure", "RATE-4", "an engine failure gives its token back",
			refunds(onCode(contract.CodeEngineFailure))},
		{"refund-on-timeout", "RATE-4", "a timeout gives its token back",
			refunds(onCode(contract.CodeEngineTimeout))},

		{"validation-before-token", "RATE-5", "the payload is validated before a token is spent, so that an invalid one is free",
			func(p *wiring.Parts) {
				_, free := halves(p)
				free.permits = noCap{}
				early := onOperation(by(free, p), p.Links[p.Links.At(httpapi.LinkValidate)])
				p.Links = p.Links.Without(httpapi.LinkValidate).Before(httpapi.LinkLimit, early)
			}},
		{"concurrency-before-token", "RATE-6", "the cap is checked before the bucket, and a rejection by it is free",
			func(p *wiring.Parts) {
				tokens, permits := halves(p)
				p.Links = p.Links.Replace(httpapi.LinkLimit, by(tokens, p)).Before(httpapi.LinkLimit, by(permits, p))
			}},
		{"cap-hides-empty-bucket", "RATE-6", "with the cap full an empty bucket gets a concurrency rejection",
			limiting(func(l *steps) {
				l.refused = func(x *httpapi.Exchange, d *limiter.Decision) {
					if _, free := l.permits.Take(l.capOf(x), x.ID, d.Allowance.Concurrency()); !free {
						d.Outcome = admission.ConcurrencyRejected
					}
					l.permits.Release(l.capOf(x), x.ID)
				}
			})},
		{"rate-429-takes-permit", "RATE-6", "a rate rejection takes a permit and keeps it",
			limiting(func(l *steps) {
				l.refused = func(x *httpapi.Exchange, d *limiter.Decision) {
					l.permits.Take(l.capOf(x), x.ID, d.Allowance.Concurrency())
				}
			})},

		{"reject-penalises", "RATE-8", "each rejection puts the next token off by a second",
			spending(func(s bucket.State, a policy.Allowance, now bucket.Instant) (bucket.State, bool) {
				s, taken := s.Take(a, now)
				if !taken {
					s.At += bucket.Instant(time.Second / time.Microsecond) // nothing refills until then
				}
				return s, taken
			})},
		{"reject-loses-fraction", "RATE-8", "a rejection loses the part of a token that had come back",
			spending(func(s bucket.State, a policy.Allowance, now bucket.Instant) (bucket.State, bool) {
				s, taken := s.Take(a, now)
				if !taken {
					s.Level = 0
				}
				return s, taken
			})},
		{"lost-update", "RATE-9", "simultaneous requests can all take the last token",
			storing(func(s bucket.State) bool { return s.Burst != 0 && s.Level < 2*bucket.Token })},
		{"first-request-race", "RATE-9", "simultaneous first requests of a user each make a bucket of their own",
			storing(func(s bucket.State) bool { return s.Burst == 0 })},
		{"refill-by-second", "RATE-10", "tokens come back once a second, several or a part of one at a time",
			timing(func(now bucket.Instant) bucket.Instant {
				return now - now%bucket.Instant(time.Second/time.Microsecond)
			})},
		{"early-token", "RATE-10", "a token is given out once nine tenths of it are there",
			spending(func(s bucket.State, a policy.Allowance, now bucket.Instant) (bucket.State, bool) {
				s = s.Settled(a, now)
				if s.Level < bucket.Token/10*9 {
					return s, false
				}
				s.Level -= bucket.Token
				return s, true
			})},
	}
}

// spending exchanges how a token is spent.
func spending(spend func(bucket.State, policy.Allowance, bucket.Instant) (bucket.State, bool)) alteration {
	return limiting(func(l *steps) {
		l.spend = func(_ *httpapi.Exchange, s bucket.State, a policy.Allowance, now bucket.Instant) (bucket.State, bool) {
			return spend(s, a, now)
		}
	})
}

// timing exchanges what buckets take the time to be.
func timing(instant func(now bucket.Instant) bucket.Instant) alteration {
	return limiting(func(l *steps) { l.instant = instant })
}

// storing makes updates of some states two steps, between which another request
// may update the same bucket.
func storing(torn func(bucket.State) bool) alteration {
	return limiting(func(l *steps) { l.buckets = tornBuckets{l.buckets, torn} })
}

type tornBuckets struct {
	buckets
	torn func(bucket.State) bool
}

func (b tornBuckets) Update(subject string, f func(bucket.State) bucket.State) {
	var read bucket.State
	b.buckets.Update(subject, func(s bucket.State) bucket.State { read = s; return s })
	if !b.torn(read) {
		b.buckets.Update(subject, f)
		return
	}
	time.Sleep(window)
	next := f(read)
	b.buckets.Update(subject, func(bucket.State) bucket.State { return next })
}

// window is how long a torn step leaves open what others may change meanwhile:
// long enough for requests that come together to meet in it on a busy machine.
const window = 50 * time.Millisecond

// overfill settles a bucket as if it held twice the burst.
func overfill(s bucket.State, a policy.Allowance, now bucket.Instant) (bucket.State, bool) {
	if s.Burst == a.Burst() {
		s.Burst *= 2
		s = s.Settled(allowance(a.RequestsPerMinute(), s.Burst, a.Concurrency()), now)
		s.Burst = a.Burst()
	} else {
		s = s.Settled(a, now)
	}
	if s.Level < bucket.Token {
		return s, false
	}
	s.Level -= bucket.Token
	return s, true
}

// onOperation is two links as one that requests for anything but the operation
// go around.
func onOperation(outer, inner httpapi.Link) httpapi.Link {
	return httpapi.Link{Name: "fault", Wrap: func(p *httpapi.Ports, next http.Handler) http.Handler {
		through := outer.Wrap(p, inner.Wrap(p, next))
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == p.Routes[0].Method && r.URL.Path == p.Routes[0].Path {
				through.ServeHTTP(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}}
}
