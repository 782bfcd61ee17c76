package fault

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/invoice"
	"github.com/invoicespec/brimline/reference/permit"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/wiring"
)

func configurationFaults() []Fault {
	unresolved := onCode(contract.CodeConfigUnavailable)
	logged := ofCode(contract.CodeConfigUnavailable)
	most := func(d policy.Dimension, _ string) string { return strconv.FormatInt(d.Max(), 10) }
	return []Fault{
		{"missing-entitlement-500", "CFG-1", "a configuration failure is a 500", answers(unresolved, status(http.StatusInternalServerError))},
		{"missing-entitlement-429", "CFG-1", "a configuration failure is a 429", answers(unresolved, status(http.StatusTooManyRequests))},
		{"missing-entitlement-403", "CFG-1", "a configuration failure is a 403", answers(unresolved, status(http.StatusForbidden))},
		{"config-503-wrong-code", "CFG-1", "a configuration failure has another error code",
			answers(unresolved, body(func(m map[string]any) { m[contract.MemberErrorCode] = "SERVICE_UNAVAILABLE" }))},
		{"config-503-text", "CFG-1", "a configuration failure is plain text", answers(unresolved, plainText)},
		{"xrid-missing-503", "CFG-1", "a configuration failure has no X-Request-Id", answers(unresolved, without(contract.HeaderRequestID))},
		{"empty-entitlement-is-one", "CFG-1", "an entitlement that is empty is taken for 1", loosely("", "1")},
		{"zero-entitlement-is-one", "CFG-1", "an entitlement of 0 is taken for 1", loosely("0", "1")},
		{"negative-entitlement-absolute", "CFG-1", "an entitlement loses its minus sign", trimmed("-")},
		{"plus-sign-accepted", "CFG-1", "an entitlement may have a plus sign", trimmed("+")},
		{"leading-zero-accepted", "CFG-1", "an entitlement may have leading zeros", trimmed("0")},
		{"spaces-trimmed", "CFG-1", "an entitlement may have spaces around it",
			rewritten(func(_ policy.Dimension, text string) string { return strings.TrimSpace(text) })},
		{"fraction-truncated", "CFG-1", "an entitlement loses its fraction",
			rewritten(func(_ policy.Dimension, text string) string { whole, _, _ := strings.Cut(text, "."); return whole })},
		{"exponent-accepted", "CFG-1", "an entitlement may have an exponent", rewritten(func(_ policy.Dimension, text string) string {
			if f, err := strconv.ParseFloat(text, 64); err == nil && strings.Contains(text, "e") {
				return strconv.FormatInt(int64(f), 10)
			}
			return text
		})},
		{"out-of-range-clamped", "CFG-1", "an entitlement above the range is taken for the largest", rewritten(func(d policy.Dimension, text string) string {
			if len(text) > 5 && strings.Trim(text, "0123456789") == "" {
				return most(d, text)
			}
			return text
		})},

		{"missing-entitlement-free", "CFG-2", "an entitlement that is missing is taken from Free",
			missing(func(d policy.Dimension) string {
				return map[policy.Dimension]string{policy.RequestsPerMinute: "10", policy.Burst: "10", policy.Concurrency: "2"}[d]
			})},
		{"missing-entitlement-unlimited", "CFG-2", "an entitlement that is missing means as much as can be",
			missing(func(d policy.Dimension) string { return most(d, "") })},
		{"malformed-entitlement-unlimited", "CFG-2", "an entitlement that is no number means as much as can be", rewritten(most)},
		{"config-503-free-caps", "CFG-2", "a user whose policy does not resolve is held to Free's cap", freeCaps()},
		{"config-503-at-empty-429", "CFG-2", "a user whose policy does not resolve and whose bucket is empty gets a rate rejection", emptyFirst()},

		{"config-503-charges", "CFG-3", "a configuration failure is charged", chargedOn(contract.CodeConfigUnavailable)},
		{"config-503-runs-engine", "CFG-3", "a configuration failure does the engine's work", runsEngineOn(unresolved)},
		{"config-503-not-logged", "CFG-3", "a configuration failure is not logged", entries(logged, none)},
		{"config-503-logged-twice", "CFG-3", "a configuration failure is logged twice", entries(logged, twice)},

		{"config-503-headers", "CFG-4", "a configuration failure carries RateLimit headers",
			answers(unresolved, func(_ *httpapi.Exchange, a *httpapi.Answer) { bucketHeaders(a.Header) })},
		{"config-503-spends", "CFG-4", "a configuration failure costs a token", touching(func(s bucket.State, now bucket.Instant) bucket.State {
			s, _ = s.Take(allowance(s.Rate, s.Burst, 1), now)
			return s
		})},
		{"config-503-fills-bucket", "CFG-4", "a configuration failure leaves a full bucket", touching(func(s bucket.State, _ bucket.Instant) bucket.State {
			s.Level = full(s, s.Burst)
			return s
		})},
		{"config-503-stops-refill", "CFG-4", "no token comes back while the policy does not resolve", stopsRefill()},
		{"mended-entitlement-unseen", "CFG-4", "a user whose entitlement was broken once stays without one",
			sticking(func(e *policy.ConfigurationError) bool { return !e.Override })},

		{"malformed-override-ignored", "CFG-5", "an override that is malformed is passed over",
			keep(func(o policy.Override, _ policy.Plan) bool { return parses(o) })},
		{"malformed-override-unlimited", "CFG-5", "an override that is malformed means as much as can be", loose(func(o policy.Override) string { return most(o.Dimension, "") })},
		{"malformed-override-read-loosely", "CFG-5", "an override is read as far as it is a number", loose(func(o policy.Override) string {
			digits := strings.TrimLeft(strings.Trim(o.Value, "+ "), "0")
			return digits[:len(digits)-len(strings.TrimLeft(digits, "0123456789"))]
		})},
		{"expired-malformed-override-counts", "CFG-5", "an override that is malformed and has expired is a configuration failure",
			expiredMalformedCounts()},
		{"ended-malformed-override-counts", "CFG-5", "a user whose override was malformed once stays without a policy",
			sticking(func(e *policy.ConfigurationError) bool { return e.Override })},
	}
}

// loosely takes one text of an entitlement for another.
func loosely(text, taken string) alteration {
	return rewritten(func(_ policy.Dimension, got string) string {
		if got == text {
			return taken
		}
		return got
	})
}

// trimmed reads entitlements without some character in front.
func trimmed(prefix string) alteration {
	return rewritten(func(_ policy.Dimension, text string) string { return strings.TrimLeft(text, prefix) })
}

// missing fills in what is not there.
func missing(value func(policy.Dimension) string) alteration {
	return entitled(func(d policy.Dimension, text string, there bool) (string, bool) {
		if !there {
			text = value(d)
		}
		return text, true
	})
}

// parses reports whether an override is well-formed.
func parses(o policy.Override) bool {
	_, err := policy.ParseValue(o.Dimension, o.Value)
	return err == nil
}

// loose reads overrides that are malformed in some way.
func loose(value func(policy.Override) string) alteration {
	return overridden(func(o policy.Override, _ policy.Plan, _ time.Time) []policy.Override {
		if !parses(o) {
			o.Value = value(o)
		}
		return []policy.Override{o}
	})
}

func expiredMalformedCounts() alteration {
	return func(p *wiring.Parts) {
		withExpired(func(rec account.Record, expired []policy.Override) account.Record {
			for _, o := range expired {
				if !parses(o) {
					o.Expires = time.Time{}
					rec.Overrides = append(rec.Overrides, o)
				}
			}
			return rec
		})(p)
	}
}

// sticking keeps refusing users whose policy did not resolve once.
func sticking(on func(*policy.ConfigurationError) bool) alteration {
	failed := newNotes[error]()
	return resolves(func(resolve resolver, rec account.Record, now time.Time) (policy.Effective, error) {
		eff, err := resolve(rec, now)
		failed.change(rec.User, func(before error) error {
			var broken *policy.ConfigurationError
			switch {
			case before != nil:
				err = before
			case errors.As(err, &broken) && on(broken):
				return err
			}
			return before
		})
		return eff, err
	})
}

// instead answers 429 to requests whose policy does not resolve.
func instead(code string, on func(x *httpapi.Exchange) bool) alteration {
	return replies(onCode(contract.CodeConfigUnavailable), func(x *httpapi.Exchange, r *httpapi.Reply) {
		if on(x) {
			r.Status, r.Code = http.StatusTooManyRequests, code
			r.Header = http.Header{contract.HeaderRetryAfter: {"1"}, "Cache-Control": {"no-store"}}
		}
	})
}

// freeCaps holds nobody's requests in a table of its own: it counts those that
// were let in.
func freeCaps() alteration {
	return func(p *wiring.Parts) {
		const freeCap = 2
		table := permit.New()
		limits(p).permits = table
		instead(contract.CodeConcurrencyLimited, func(x *httpapi.Exchange) bool {
			return table.InFlight(x.Account.User) >= freeCap
		})(p)
	}
}

func emptyFirst() alteration {
	return func(p *wiring.Parts) {
		l := limits(p)
		instead(contract.CodeRateLimited, func(x *httpapi.Exchange) (empty bool) {
			l.buckets.Update(x.Account.User, func(s bucket.State) bucket.State {
				empty = s.Burst != 0 && s.Level < bucket.Token
				return s
			})
			return empty
		})(p)
	}
}

func runsEngineOn(on when) alteration {
	return func(p *wiring.Parts) {
		replies(on, func(x *httpapi.Exchange, _ *httpapi.Reply) {
			ctx, cancel := context.WithTimeout(httpapi.With(context.Background(), x), p.Bounds.Engine)
			defer cancel()
			p.Engine.Calculate(ctx, invoice.Invoice{})
		})(p)
	}
}

// touching changes the bucket of a user whose policy does not resolve.
func touching(change func(s bucket.State, now bucket.Instant) bucket.State) alteration {
	return func(p *wiring.Parts) {
		l := limits(p)
		replies(onCode(contract.CodeConfigUnavailable), func(x *httpapi.Exchange, _ *httpapi.Reply) {
			l.buckets.Update(x.Account.User, func(s bucket.State) bucket.State {
				if s.Burst == 0 {
					return s
				}
				return change(s, l.clock.Instant())
			})
		})(p)
	}
}

// stopsRefill loses the time from the first request that did not resolve to the
// first one that does again.
func stopsRefill() alteration {
	return func(p *wiring.Parts) {
		l := limits(p)
		stopped := newNotes[bool]()
		spend := l.spend
		l.spend = func(x *httpapi.Exchange, s bucket.State, a policy.Allowance, now bucket.Instant) (bucket.State, bool) {
			if stopped.change(x.Account.User, func(bool) bool { return false }) {
				s.At = now
			}
			return spend(x, s, a, now)
		}
		replies(onCode(contract.CodeConfigUnavailable), func(x *httpapi.Exchange, _ *httpapi.Reply) {
			stopped.change(x.Account.User, func(bool) bool { return true })
		})(p)
	}
}
