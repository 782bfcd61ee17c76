package fault

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/wiring"
)

func accessFaults() []Fault {
	unauthenticated := onCode(contract.CodeUnauthenticated)
	return []Fault{
		{"401-is-403", "AUTH-1", "a bad key gets 403", answers(unauthenticated, status(http.StatusForbidden))},
		{"401-text", "AUTH-1", "a 401 is plain text", answers(unauthenticated, plainText)},
		{"401-leaks-headers", "AUTH-1", "a 401 carries RateLimit headers",
			answers(unauthenticated, func(_ *httpapi.Exchange, a *httpapi.Answer) { bucketHeaders(a.Header) })},
		{"401-says-why", "AUTH-1", "a 401 tells an unknown key from a missing one",
			hinting("there is no such key", func(context.Context) bool { return true })},
		{"key-prefix-leak", "AUTH-1", "a key that is wrong in its last character alone gets a 401 of its own",
			func(p *wiring.Parts) {
				hinting("the last character of this key is wrong", nearMiss(p))(p)
				presenting(p)
			}},
		{"401-spends", "AUTH-1", "a second credential gets 401, and costs the owner of the first a token",
			before(httpapi.LinkAuthenticate, func(p *httpapi.Ports, next http.Handler) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					if lines := r.Header["Authorization"]; len(lines) > 1 {
						if x, ok := caller(r.Context(), p, lines[0]); ok {
							ctx := httpapi.With(r.Context(), x)
							p.Limiter.Admit(ctx, x.Subject, x.Effective.Allowance, x.ID)
							p.Limiter.Release(ctx, x.Subject, x.ID)
						}
					}
					next.ServeHTTP(w, r)
				}
			})},
		{"second-credential-accepted", "AUTH-1", "of several credentials the first is taken",
			requests(httpapi.LinkAuthenticate, func(r *http.Request) {
				if lines := r.Header["Authorization"]; len(lines) > 1 {
					r.Header["Authorization"] = lines[:1]
				}
			})},
		{"any-scheme-accepted", "AUTH-1", "a key is taken whatever the scheme, and as a Basic password",
			requests(httpapi.LinkAuthenticate, func(r *http.Request) {
				scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
				if _, password, ok := r.BasicAuth(); ok {
					key = password
				}
				if len(r.Header["Authorization"]) == 1 && !strings.EqualFold(scheme, "Bearer") {
					r.Header.Set("Authorization", "Bearer "+key)
				}
			})},
		{"other-header-accepted", "AUTH-1", "a key in X-Api-Key is taken as well",
			requests(httpapi.LinkAuthenticate, func(r *http.Request) {
				if key := r.Header.Get("X-Api-Key"); key != "" && r.Header["Authorization"] == nil {
					r.Header.Set("Authorization", "Bearer "+key)
				}
			})},
		{"revoked-key-works", "AUTH-1", "a key that was used once works for ever, revoked or not", func(p *wiring.Parts) {
			var used sync.Map // digest to record
			lookups(func(_ context.Context, d account.Digest, rec account.Record, err error) (account.Record, error) {
				if old, ok := used.Load(d); ok && errors.Is(err, account.ErrUnknownKey) {
					return old.(account.Record), nil
				}
				if err == nil {
					used.Store(d, rec)
				}
				return rec, err
			})(p)
		}},
	}
}

// lookups changes what the store says of a key.
func lookups(change func(context.Context, account.Digest, account.Record, error) (account.Record, error)) alteration {
	return func(p *wiring.Parts) { p.Accounts = changedAccounts{p.Accounts, change} }
}

type changedAccounts struct {
	httpapi.Accounts
	change func(context.Context, account.Digest, account.Record, error) (account.Record, error)
}

func (c changedAccounts) Lookup(ctx context.Context, d account.Digest) (account.Record, error) {
	rec, err := c.Accounts.Lookup(ctx, d)
	return c.change(ctx, d, rec, err)
}

// hinting gives some unknown keys a message of their own.
func hinting(message string, hint func(context.Context) bool) alteration {
	const hinted = "hinted"
	return both(
		lookups(func(ctx context.Context, _ account.Digest, rec account.Record, err error) (account.Record, error) {
			if errors.Is(err, account.ErrUnknownKey) && hint(ctx) {
				httpapi.From(ctx).Account.KeyID = hinted
			}
			return rec, err
		}),
		replies(onCode(contract.CodeUnauthenticated), func(x *httpapi.Exchange, r *httpapi.Reply) {
			if x.Account.KeyID == hinted {
				r.Message = message
			}
		}))
}

// nearMiss tells a key that would be a good one with another last character.
func nearMiss(p *wiring.Parts) func(context.Context) bool {
	accounts := p.Accounts
	return func(ctx context.Context) bool {
		text := strings.TrimPrefix(presented(ctx), "Bearer ")
		for last := range strings.SplitSeq("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", "") {
			key, err := account.ParseKey(text[:len(text)-1] + last)
			if err != nil {
				return false
			}
			if _, err := accounts.Lookup(ctx, p.Digest(key)); err == nil {
				return true
			}
		}
		return false
	}
}

type presentedKey struct{}

// presenting lets all ports see what credential a request presented.
func presenting(p *wiring.Parts) {
	before(httpapi.LinkAPILog, func(_ *httpapi.Ports, next http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			credential := r.Header.Get("Authorization")
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), presentedKey{}, credential)))
		}
	})(p)
}

func presented(ctx context.Context) string {
	credential, _ := ctx.Value(presentedKey{}).(string)
	return credential
}
