package fault

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/invoice"
	"github.com/invoicespec/brimline/reference/wiring"
)

func attemptFaults() []Fault {
	return []Fault{
		{"anon-missing", "ANON-1", "attempts without a good key are not counted", gates(func(_ *wiring.Parts, g httpapi.Gate) httpapi.Gate {
			return gate{g, ungated, uncounted}
		})},
		{"anon-burst-11", "ANON-1", "an address has eleven attempts at once", attempts(30, 11, 5)},
		{"anon-burst-9", "ANON-1", "an address has nine attempts at once", attempts(30, 9, 5)},
		{"anon-rate-60", "ANON-1", "attempts come back twice as fast", attempts(60, 10, 5)},
		{"anon-rate-15", "ANON-1", "attempts come back half as fast", attempts(15, 10, 5)},
		{"anon-keyed-by-credential", "ANON-1", "each wrong key has a pool of its own", gates(func(_ *wiring.Parts, g httpapi.Gate) httpapi.Gate {
			return gate{g, func(ctx context.Context, g httpapi.Gate, pool string, key account.Digest, lookup anonymous.Lookup) (account.Record, error) {
				return g.Authenticate(ctx, pool+string(key[:]), key, lookup)
			}, nil}
		})},
		{"anon-missing-key-free", "ANON-1", "an attempt without any key is not counted", gates(func(_ *wiring.Parts, g httpapi.Gate) httpapi.Gate {
			return gate{g, nil, uncounted}
		})},
		{"anon-wrong-key-free", "ANON-1", "an attempt with a wrong key is not counted", gates(func(_ *wiring.Parts, g httpapi.Gate) httpapi.Gate {
			return gate{g, ungated, nil}
		})},

		{"anon-concurrency-missing", "ANON-3", "an address may have any number of attempts in flight", attempts(30, 10, 1000)},
		{"anon-concurrency-6", "ANON-3", "an address may have six attempts in flight", attempts(30, 10, 6)},
		{"anon-concurrency-4", "ANON-3", "an address may have four attempts in flight", attempts(30, 10, 4)},
		{"anon-place-kept", "ANON-3", "once all places of an address were taken, none is free again", gates(func(_ *wiring.Parts, g httpapi.Gate) httpapi.Gate {
			return placeKept(g)
		})},

		{"anon-no-retry-after", "ANON-4", "a rejection before authentication has no Retry-After", answers(onAttempt(onRejection), without(contract.HeaderRetryAfter))},
		{"anon-retry-after-zero", "ANON-4", "a rejection before authentication has Retry-After 0", answers(onAttempt(onRejection), with(contract.HeaderRetryAfter, "0"))},
		{"anon-429-leaks-headers", "ANON-4", "a rejection for an address's rate carries RateLimit headers", answers(onAttempt(onRate), leakedHeaders)},
		{"anon-conc-leaks-headers", "ANON-4", "a rejection for want of a place carries RateLimit headers", answers(onAttempt(onCap), leakedHeaders)},
		{"anon-body-leaks-plan", "ANON-4", "a rejection before authentication names a plan",
			replies(onAttempt(onRejection), func(_ *httpapi.Exchange, r *httpapi.Reply) { r.Message += "; the free plan has more" })},
		{"anon-own-code", "ANON-4", "a rejection before authentication has a code of its own",
			answers(onAttempt(onRejection), body(func(m map[string]any) { m[contract.MemberErrorCode] = "TOO_MANY_ATTEMPTS" }))},
		{"anon-429-runs-engine", "ANON-4", "a rejection before authentication does the engine's work", func(p *wiring.Parts) {
			replies(onAttempt(onRejection), func(x *httpapi.Exchange, _ *httpapi.Reply) {
				ctx, cancel := context.WithTimeout(httpapi.With(context.Background(), x), p.Bounds.Engine)
				defer cancel()
				p.Engine.Calculate(ctx, invoice.Invoice{})
			})(p)
		}},

		{"anon-shares-user-pool", "ANON-5", "attempts spend the tokens of the user who was last at that address", sharesUserPool},
		{"valid-consumes-anon", "ANON-5", "each request of a user costs the address an attempt", gates(func(_ *wiring.Parts, g httpapi.Gate) httpapi.Gate {
			return gate{g, func(ctx context.Context, g httpapi.Gate, pool string, key account.Digest, lookup anonymous.Lookup) (account.Record, error) {
				rec, err := g.Authenticate(ctx, pool, key, lookup)
				if err == nil {
					g.NoKey(pool)
				}
				return rec, err
			}, nil}
		})},
		{"users-take-places", "ANON-5", "requests of users in flight take the places of their address", usersTakePlaces},

		{"anon-after-hash", "ANON-6", "a key is looked up before its address is asked", gates(func(_ *wiring.Parts, g httpapi.Gate) httpapi.Gate {
			return gate{g, func(ctx context.Context, g httpapi.Gate, pool string, key account.Digest, lookup anonymous.Lookup) (account.Record, error) {
				rec, err := lookup(ctx)
				return g.Authenticate(ctx, pool, key, func(context.Context) (account.Record, error) { return rec, err })
			}, nil}
		})},

		{"known-key-needs-pool", "ANON-7", "a key lately seen good needs an attempt of its address like any other", func(p *wiring.Parts) {
			p.Gate = anonymous.New(p.Clock, anonymous.Config{KnownFor: time.Microsecond / 2}) // less than any time that is measured
		}},
		{"first-use-consumes-anon", "ANON-7", "the first use of a good key costs the address an attempt", gates(func(_ *wiring.Parts, g httpapi.Gate) httpapi.Gate {
			var used sync.Map
			return gate{g, func(ctx context.Context, g httpapi.Gate, pool string, key account.Digest, lookup anonymous.Lookup) (account.Record, error) {
				rec, err := g.Authenticate(ctx, pool, key, lookup)
				if _, known := used.LoadOrStore(key, true); err == nil && !known {
					g.NoKey(pool)
				}
				return rec, err
			}, nil}
		})},
		{"unknown-key-passes", "ANON-7", "a good key that nobody knows yet passes at an empty pool", gates(func(_ *wiring.Parts, g httpapi.Gate) httpapi.Gate {
			return gate{g, func(ctx context.Context, g httpapi.Gate, pool string, key account.Digest, lookup anonymous.Lookup) (account.Record, error) {
				rec, err := g.Authenticate(ctx, pool, key, lookup)
				if refused := (anonymous.Rejection{}); errors.As(err, &refused) {
					if found, lerr := lookup(ctx); lerr == nil {
						return found, nil
					}
				}
				return rec, err
			}, nil}
		})},
		{"first-uses-validated-each", "ANON-7", "simultaneous first uses of a key are each validated", gates(func(_ *wiring.Parts, g httpapi.Gate) httpapi.Gate {
			return validatingEach(g)
		})},

		{"anon-429-not-logged", "LOG-2", "a rejection before authentication is not logged", entries(anonymously, none)},
		{"anon-429-logged-twice", "LOG-2", "a rejection before authentication is logged twice", entries(anonymously, twice)},
		{"anon-429-logged-as-401", "LOG-2", "a rejection before authentication is not marked rejected", entries(anonymously, func(e contract.LogEntry) []contract.LogEntry {
			e.Outcome = contract.LogUnauthenticated
			return []contract.LogEntry{e}
		})},
		{"anon-log-credential", "LOG-2", "the entry of a rejection before authentication holds the key", both(presenting, lines(func(ctx context.Context, e contract.LogEntry) []contract.LogEntry {
			if anonymously(e) {
				e.Path += " " + presented(ctx)
			}
			return []contract.LogEntry{e}
		}))},

		{"health-anon-throttled", "SCOPE-2", "the health route is an attempt like any other", throttled("/health")},
		{"openapi-throttled", "SCOPE-2", "the API's description is an attempt like any other", throttled("/openapi.json")},
	}
}

// gates exchanges the gate of attempts.
func gates(of func(*wiring.Parts, httpapi.Gate) httpapi.Gate) alteration {
	return func(p *wiring.Parts) { p.Gate = of(p, p.Gate) }
}

// attempts holds an address to another policy.
func attempts(rpm, burst, concurrency int64) alteration {
	return func(p *wiring.Parts) {
		p.Gate = anonymous.New(p.Clock, anonymous.Config{Allowance: allowance(rpm, burst, concurrency)})
	}
}

// gate is another one in one or both of its functions.
type gate struct {
	httpapi.Gate
	authenticate func(ctx context.Context, g httpapi.Gate, pool string, key account.Digest, lookup anonymous.Lookup) (account.Record, error) // nil: as it is
	noKey        func(g httpapi.Gate, pool string) error                                                                                     // nil: as it is
}

func (g gate) Authenticate(ctx context.Context, pool string, key account.Digest, lookup anonymous.Lookup) (account.Record, error) {
	if g.authenticate == nil {
		return g.Gate.Authenticate(ctx, pool, key, lookup)
	}
	return g.authenticate(ctx, g.Gate, pool, key, lookup)
}

func (g gate) NoKey(pool string) error {
	if g.noKey == nil {
		return g.Gate.NoKey(pool)
	}
	return g.noKey(g.Gate, pool)
}

func ungated(ctx context.Context, _ httpapi.Gate, _ string, _ account.Digest, lookup anonymous.Lookup) (account.Record, error) {
	return lookup(ctx)
}

func uncounted(httpapi.Gate, string) error { return nil }

// onAttempt is answers before anybody was authenticated.
func onAttempt(on when) when {
	return func(x *httpapi.Exchange, r httpapi.Reply) bool { return x.Account.User == "" && on(x, r) }
}

func anonymously(e contract.LogEntry) bool {
	return e.User == "" && e.Outcome == contract.LogRejected
}

func leakedHeaders(_ *httpapi.Exchange, a *httpapi.Answer) { bucketHeaders(a.Header) }

// placeKept forgets to free the places of an address once they were all taken.
func placeKept(g httpapi.Gate) httpapi.Gate {
	var mu sync.Mutex
	inside, full := map[string]int{}, map[string]bool{}
	return gate{g, func(ctx context.Context, g httpapi.Gate, pool string, key account.Digest, lookup anonymous.Lookup) (account.Record, error) {
		mu.Lock()
		if full[pool] && inside[pool] == 0 {
			mu.Unlock()
			return account.Record{}, anonymous.Rejection{Outcome: admission.ConcurrencyRejected, RetryAfter: 1}
		}
		inside[pool]++
		full[pool] = full[pool] || inside[pool] >= anonymous.DefaultConcurrency
		mu.Unlock()
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			inside[pool]--
		}()
		return g.Authenticate(ctx, pool, key, lookup)
	}, nil}
}

// validatingEach takes first uses of one key for those of several.
func validatingEach(g httpapi.Gate) httpapi.Gate {
	var known sync.Map
	return gate{g, func(ctx context.Context, g httpapi.Gate, pool string, key account.Digest, lookup anonymous.Lookup) (account.Record, error) {
		as := key
		if _, ok := known.Load(key); !ok {
			rand.Read(as[:])
		}
		rec, err := g.Authenticate(ctx, pool, as, lookup)
		if err == nil {
			if _, again := known.LoadOrStore(key, true); !again {
				rec, err = g.Authenticate(ctx, pool, key, func(context.Context) (account.Record, error) { return rec, nil })
			}
		}
		return rec, err
	}, nil}
}

// sharesUserPool has attempts at an address spend the tokens of whoever was
// authenticated there last.
func sharesUserPool(p *wiring.Parts) {
	var last sync.Map // pool to the exchange of who was there
	spend := func(pool string) {
		if x, ok := last.Load(pool); ok {
			x := *x.(*httpapi.Exchange)
			x.ID = rand.Text()
			ctx := httpapi.With(context.Background(), &x)
			p.Limiter.Admit(ctx, x.Subject, x.Effective.Allowance, x.ID)
			p.Limiter.Release(ctx, x.Subject, x.ID)
		}
	}
	before(httpapi.LinkRoute, func(p *httpapi.Ports, next http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			x := *httpapi.From(r.Context())
			last.Store(p.Clients.Pool(x.Client), &x)
			next.ServeHTTP(w, r)
		}
	})(p)
	p.Gate = gate{p.Gate, func(ctx context.Context, g httpapi.Gate, pool string, key account.Digest, lookup anonymous.Lookup) (account.Record, error) {
		rec, err := g.Authenticate(ctx, pool, key, lookup)
		if errors.Is(err, account.ErrUnknownKey) {
			spend(pool)
		}
		return rec, err
	}, func(g httpapi.Gate, pool string) error {
		spend(pool)
		return g.NoKey(pool)
	}}
}

// usersTakePlaces counts requests of users among the attempts in flight.
func usersTakePlaces(p *wiring.Parts) {
	var mu sync.Mutex
	inside := map[string]int{}
	before(httpapi.LinkRoute, func(p *httpapi.Ports, next http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			pool := p.Clients.Pool(httpapi.From(r.Context()).Client)
			add := func(n int) { mu.Lock(); defer mu.Unlock(); inside[pool] += n }
			add(1)
			defer add(-1)
			next.ServeHTTP(w, r)
		}
	})(p)
	crowded := func(pool string) error {
		mu.Lock()
		defer mu.Unlock()
		if inside[pool] >= anonymous.DefaultConcurrency {
			return anonymous.Rejection{Outcome: admission.ConcurrencyRejected, RetryAfter: 1}
		}
		return nil
	}
	p.Gate = gate{p.Gate, func(ctx context.Context, g httpapi.Gate, pool string, key account.Digest, lookup anonymous.Lookup) (account.Record, error) {
		rec, err := g.Authenticate(ctx, pool, key, lookup)
		if errors.Is(err, account.ErrUnknownKey) {
			err = errors.Join(err, crowded(pool))
		}
		return rec, err
	}, func(g httpapi.Gate, pool string) error {
		if err := crowded(pool); err != nil {
			return err
		}
		return g.NoKey(pool)
	}}
}

// throttled counts requests for a route outside the quotas as attempts.
func throttled(path string) alteration {
	return func(p *wiring.Parts) {
		right := p.Outside[path]
		p.Outside[path] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p.Gate.NoKey(p.Clients.Pool(p.Clients.Client(r))) != nil {
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			right.ServeHTTP(w, r)
		})
	}
}
