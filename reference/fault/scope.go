package fault

import (
	"context"
	"net/http"
	"path"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/wiring"
)

func scopeFaults() []Fault {
	return []Fault{
		{"limits-off", "SCOPE-1", "nothing is limited at all",
			unlimited(func(*http.Request) bool { return true })},
		{"scope-needs-slash", "SCOPE-1", "/v1/invoice itself is not limited, only what is below it",
			unlimited(func(r *http.Request) bool { return r.URL.Path == contract.ScopePrefix })},
		{"scope-one-level", "SCOPE-1", "what is more than one level below /v1/invoice is not limited",
			unlimited(func(r *http.Request) bool {
				return strings.Contains(strings.TrimPrefix(r.URL.Path, contract.ScopePrefix+"/"), "/")
			})},

		{"health-uses-user-token", "SCOPE-2", "/health spends a token of its caller",
			countedOutside("/health", func(l *steps) { l.permits, l.spend = noCap{}, takeIfThere })},
		{"health-limited", "SCOPE-2", "/health answers 429 to a caller whose bucket is empty",
			countedOutside("/health", func(l *steps) { l.permits, l.spend = noCap{}, hasToken })},
		{"health-in-cap", "SCOPE-2", "/health answers 429 to a caller whose cap is full",
			countedOutside("/health", func(l *steps) { l.spend = look })},
		{"health-rl-headers", "SCOPE-2", "/health carries RateLimit headers", func(p *wiring.Parts) {
			health := p.Outside["/health"]
			p.Outside["/health"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				bucketHeaders(w.Header())
				health.ServeHTTP(w, r)
			})
		}},
		{"internal-route-limited", "SCOPE-2", "an internal route is limited like the rest", func(p *wiring.Parts) {
			inScope := p.InScope
			p.InScope = func(path string) bool { return strings.HasPrefix(path, "/internal/") || inScope(path) }
		}},

		{"404-free", "SCOPE-3", "an unknown path below /v1/invoice/ costs nothing",
			refunds(onCode(contract.CodeNotFound))},
		{"405-free", "SCOPE-3", "a wrong method costs nothing",
			refunds(onCode(contract.CodeMethodNotAllowed))},
		{"no-headers-404", "SCOPE-3", "a 404 below /v1/invoice/ lacks the RateLimit headers",
			answers(onCode(contract.CodeNotFound), withoutBucket)},
		{"404-text", "SCOPE-3", "a 404 below /v1/invoice/ is plain text",
			answers(onCode(contract.CodeNotFound), plainText)},

		{"trailing-slash-bypass", "SCOPE-4", "a path with a slash at its end reaches the engine unlimited",
			bypass(func(operation string, r *http.Request) bool { return r.URL.Path == operation+"/" })},
		{"dot-segment-bypass", "SCOPE-4", "a path with dots or doubled slashes in it reaches the engine unlimited",
			bypass(func(operation string, r *http.Request) bool {
				return strings.TrimSuffix(r.URL.Path, "/") != operation && path.Clean(r.URL.Path) == operation
			})},
		{"encoded-bypass", "SCOPE-4", "a path with an encoded character in it reaches the engine unlimited",
			bypass(func(operation string, r *http.Request) bool {
				return r.URL.Path == operation && strings.Contains(r.RequestURI, "%")
			})},
		{"absolute-form-bypass", "SCOPE-4", "a request target in absolute form reaches the engine unlimited",
			bypass(func(operation string, r *http.Request) bool {
				return r.URL.Path == operation && !strings.HasPrefix(r.RequestURI, "/")
			})},
		{"upper-case-bypass", "SCOPE-4", "a path in upper case reaches the engine unlimited", func(p *wiring.Parts) {
			inScope := p.InScope
			p.InScope = func(path string) bool { return inScope(strings.ToLower(path)) }
			bypass(func(operation string, r *http.Request) bool {
				return r.URL.Path != operation && strings.EqualFold(r.URL.Path, operation)
			})(p)
		}},
		{"head-free", "SCOPE-4", "HEAD costs nothing",
			refunds(func(x *httpapi.Exchange, r httpapi.Reply) bool {
				return x.Method == http.MethodHead && onAdmission(x, r)
			})},
		{"options-free", "SCOPE-4", "OPTIONS costs nothing",
			refunds(func(x *httpapi.Exchange, r httpapi.Reply) bool {
				return x.Method == http.MethodOptions && onAdmission(x, r)
			})},
	}
}

// unlimited lets some requests go around the limiter.
func unlimited(free func(r *http.Request) bool) alteration {
	return func(p *wiring.Parts) {
		limit := p.Links[p.Links.At(httpapi.LinkLimit)]
		p.Links = p.Links.Replace(httpapi.LinkLimit, httpapi.Link{
			Name: limit.Name,
			Wrap: func(p *httpapi.Ports, next http.Handler) http.Handler {
				limited := limit.Wrap(p, next)
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !free(r) {
						limited.ServeHTTP(w, r)
						return
					}
					httpapi.From(r.Context()).Outcome = contract.LogAdmitted
					next.ServeHTTP(w, r)
				})
			},
		})
	}
}

// bypass lets requests that spell the operation's path in some way go around the
// limiter, and takes that path for the operation's.
func bypass(spelled func(operation string, r *http.Request) bool) alteration {
	return func(p *wiring.Parts) {
		operation := p.Routes[0].Path
		unlimited(func(r *http.Request) bool { return spelled(operation, r) })(p)
		requests(httpapi.LinkRoute, func(r *http.Request) {
			if spelled(operation, r) {
				r.URL.Path = operation
			}
		})(p)
	}
}

// countedOutside makes the callers of a route outside the quotas pass the
// limiter, with some of its steps exchanged.
func countedOutside(route string, exchange func(*steps)) alteration {
	return func(p *wiring.Parts) {
		l := *limits(p)
		exchange(&l)
		inner := p.Outside[route]
		p.Outside[route] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			x, ok := caller(r.Context(), &p.Ports, r.Header.Get("Authorization"))
			if !ok {
				inner.ServeHTTP(w, r)
				return
			}
			ctx := httpapi.With(r.Context(), x)
			d, err := l.Admit(ctx, x.Subject, x.Effective.Allowance, x.ID)
			if err != nil || d.Outcome != admission.Admitted {
				http.Error(w, "too many requests", http.StatusTooManyRequests)
				return
			}
			defer l.Release(ctx, x.Subject, x.ID)
			inner.ServeHTTP(w, r)
		})
	}
}

// caller is who presents a credential outside the chain.
func caller(ctx context.Context, p *httpapi.Ports, credential string) (*httpapi.Exchange, bool) {
	key, err := account.ParseKey(strings.TrimPrefix(credential, "Bearer "))
	if err != nil {
		return nil, false
	}
	x := &httpapi.Exchange{ID: p.MintID()}
	if x.Account, err = p.Accounts.Lookup(ctx, p.Digest(key)); err != nil {
		return nil, false
	}
	if x.Effective, err = p.Resolve(x.Account, p.Clock.Now()); err != nil {
		return nil, false
	}
	x.Subject = p.Subject(x)
	return x, true
}

// takeIfThere spends a token if there is one, and never minds.
func takeIfThere(_ *httpapi.Exchange, s bucket.State, a policy.Allowance, now bucket.Instant) (bucket.State, bool) {
	s, _ = s.Take(a, now)
	return s, true
}

// hasToken spends nothing.
func hasToken(_ *httpapi.Exchange, s bucket.State, a policy.Allowance, now bucket.Instant) (bucket.State, bool) {
	s = s.Settled(a, now)
	return s, s.Level >= bucket.Token
}

// bucketHeaders makes up a bucket.
func bucketHeaders(h http.Header) {
	h.Set(contract.HeaderLimit, "10")
	h.Set(contract.HeaderRemaining, "9")
	h.Set(contract.HeaderReset, "6")
}
