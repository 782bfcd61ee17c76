package fault

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/wiring"
)

func fieldFaults() []Fault {
	const (
		limit, remaining, reset = contract.HeaderLimit, contract.HeaderRemaining, contract.HeaderReset
		retryAfter              = contract.HeaderRetryAfter
	)
	return []Fault{
		{"no-headers-200", "HDR-1", "a success lacks the RateLimit headers", answers(onSuccess, withoutBucket)},
		{"no-headers-400", "HDR-1", "a validation failure lacks the RateLimit headers",
			answers(onCode(contract.CodeValidationFailed), withoutBucket)},
		{"no-headers-402", "HDR-1", "a capacity rejection lacks the RateLimit headers",
			answers(onCode(contract.CodeCapacityExhausted), withoutBucket)},
		{"no-headers-5xx", "HDR-1", "an engine failure lacks the RateLimit headers",
			answers(onCode(contract.CodeEngineFailure), withoutBucket)},
		{"no-headers-rate-429", "HDR-1", "a rate rejection lacks the RateLimit headers", answers(onRate, withoutBucket)},

		{"limit-is-rpm", "HDR-2", "Limit is the requests per minute",
			answers(onDecision, number(limit, func(d *limiter.Decision) int64 { return d.Allowance.RequestsPerMinute() }))},

		{"remaining-plus-one", "HDR-3", "Remaining is the tokens before this request",
			answers(onAdmission, number(remaining, func(d *limiter.Decision) int64 { return d.Remaining() + 1 }))},
		{"remaining-minus-one", "HDR-3", "Remaining is one too low",
			answers(onDecision, number(remaining, func(d *limiter.Decision) int64 { return max(0, d.Remaining()-1) }))},
		{"remaining-ceil", "HDR-3", "Remaining is rounded up",
			answers(onDecision, number(remaining, func(d *limiter.Decision) int64 { return ceil(d.Level, bucket.Token) }))},
		{"remaining-negative-429", "HDR-3", "Remaining is -1 at a rate rejection", answers(onRate, with(remaining, "-1"))},
		{"remaining-nonzero-429", "HDR-3", "Remaining is 1 at a rate rejection", answers(onRate, with(remaining, "1"))},

		{"reset-one-token", "HDR-4", "Reset is the time to the next token",
			answers(onDecision, number(reset, func(d *limiter.Decision) int64 {
				missing := bucket.Token - d.Level%bucket.Token
				return min(ceil(d.ToFull, second), ceil(missing, d.Allowance.RequestsPerMinute()*second))
			}))},
		{"reset-floor", "HDR-4", "Reset is rounded down",
			answers(onDecision, number(reset, func(d *limiter.Decision) int64 { return d.ToFull / second }))},
		{"reset-epoch", "HDR-4", "Reset is a Unix time", func(p *wiring.Parts) {
			answers(onDecision, number(reset, func(d *limiter.Decision) int64 {
				return p.Clock.Now().Unix() + ceil(d.ToFull, second)
			}))(p)
		}},
		{"reset-fixed-60", "HDR-4", "Reset is always 60", answers(onDecision, with(reset, "60"))},

		{"no-retry-after", "HDR-5", "a rate rejection has no Retry-After", answers(onRate, without(retryAfter))},
		{"retry-after-floor", "HDR-5", "Retry-After is rounded down, to 0 in the last second",
			answers(onRate, number(retryAfter, func(d *limiter.Decision) int64 { return d.ToToken / second }))},
		{"retry-after-zero", "HDR-5", "Retry-After is 0", answers(onRate, with(retryAfter, "0"))},
		{"retry-after-const-1", "HDR-5", "Retry-After is always 1", answers(onRate, with(retryAfter, "1"))},
		{"retry-after-60", "HDR-5", "Retry-After is always 60", answers(onRate, with(retryAfter, "60"))},
		{"retry-after-plus-one", "HDR-5", "Retry-After is one second too long",
			answers(onRate, number(retryAfter, func(d *limiter.Decision) int64 { return ceil(d.ToToken, second) + 1 }))},
		{"clock-back-retry-after", "HDR-5", "while the date is set back, Retry-After is longer by as much", func(p *wiring.Parts) {
			var mu sync.Mutex
			var latest time.Time
			answers(onDecision, func(x *httpapi.Exchange, a *httpapi.Answer) {
				mu.Lock()
				defer mu.Unlock()
				now := p.Clock.Now()
				if now.After(latest) {
					latest = now
				}
				if behind := latest.Sub(now); behind > 0 && x.Decision.Outcome == admission.RateRejected {
					a.Header.Set(retryAfter, strconv.FormatInt(max(1, ceil(x.Decision.ToToken, second))+int64(behind/time.Second), 10))
				}
			})(p)
		}},
		{"retry-after-is-reset", "HDR-5", "Retry-After is the time to a full bucket",
			answers(onRate, number(retryAfter, func(d *limiter.Decision) int64 { return ceil(d.ToFull, second) }))},

		{"retry-too-soon", "HDR-6", "a client that was refused gets its token a second later than it was told", lateToken()},
		{"never-quite-full", "HDR-7", "a bucket that was used refills to one token less than the burst",
			spending(func(s bucket.State, a policy.Allowance, now bucket.Instant) (bucket.State, bool) {
				before := s
				s = s.Settled(a, now)
				if short := (s.Burst - 1) * bucket.Token; before.Burst == s.Burst && s.Burst > 1 && s.Level > short {
					s.Level = max(short, before.Level)
				}
				return s.Take(a, now)
			})},

		{"limit-policy-suffix", "HDR-8", "Limit is a list, as in the drafts of RateLimit fields",
			answers(onDecision, func(x *httpapi.Exchange, a *httpapi.Answer) {
				burst := strconv.FormatInt(x.Decision.Allowance.Burst(), 10)
				a.Header.Set(limit, burst+", "+burst+";w=60")
			})},
		{"fractional", "HDR-8", "Reset has a decimal point",
			answers(onDecision, func(_ *httpapi.Exchange, a *httpapi.Answer) { a.Header.Set(reset, a.Header.Get(reset)+".0") })},
		{"duplicate-headers", "HDR-8", "Remaining comes twice",
			answers(onDecision, func(_ *httpapi.Exchange, a *httpapi.Answer) { a.Header.Add(remaining, a.Header.Get(remaining)) })},
		{"retry-after-date", "HDR-8", "Retry-After is a date", func(p *wiring.Parts) {
			answers(onRate, func(x *httpapi.Exchange, a *httpapi.Answer) {
				at := p.Clock.Now().Add(time.Duration(max(1, ceil(x.Decision.ToToken, second))) * time.Second)
				a.Header.Set(retryAfter, at.UTC().Format(http.TimeFormat))
			})(p)
		}},

		{"conc-remaining-is-permits", "HDR-9", "at a full cap Remaining is 0, whatever is in the bucket",
			answers(onCap, with(remaining, "0"))},
		{"remaining-is-permits", "HDR-9", "while others are in flight Remaining is the permits left, if they are fewer",
			answers(onAdmission, number(remaining, func(d *limiter.Decision) int64 {
				if d.InFlight == 0 {
					return d.Remaining()
				}
				return min(d.Remaining(), max(0, d.Allowance.Concurrency()-d.InFlight-1))
			}))},
	}
}

// second is a second in microseconds.
const second = 1_000_000

// ceil is a/b rounded up, for a >= 0 and b > 0.
func ceil(a, b int64) int64 { return (a + b - 1) / b }

// lateToken bars whoever was refused for a second longer than the bucket says.
func lateToken() alteration {
	return limiting(func(l *steps) {
		var barred sync.Map // bucket to the first instant at which it gives again
		l.refused = func(x *httpapi.Exchange, d *limiter.Decision) {
			if d.ToToken > 0 {
				barred.Store(l.bucketOf(x), d.At+bucket.Instant(d.ToToken+second))
			}
		}
		l.spend = func(x *httpapi.Exchange, s bucket.State, a policy.Allowance, now bucket.Instant) (bucket.State, bool) {
			if until, ok := barred.Load(l.bucketOf(x)); ok && now < until.(bucket.Instant) {
				return s.Settled(a, now), false
			}
			return take(x, s, a, now)
		}
	})
}
