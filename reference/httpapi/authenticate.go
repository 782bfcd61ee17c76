package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/policy"
)

// authenticate carries out ANON-1 to ANON-7, AUTH-1, AUTH-2 and CFG-1 to CFG-4:
// the gate of the client's address stands before the one lookup that finds the
// user and all that its policy is resolved from. Whatever is wrong with the
// credential, the answer is the same; a policy that does not resolve is the
// platform's failure, never somebody else's limits.
func authenticate(p *Ports, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := From(r.Context())
		rec, err := p.account(r, p.Clients.Pool(x.Client))
		var refused anonymous.Rejection
		switch {
		case errors.As(err, &refused):
			p.tooMany(w, x, refused)
			return
		case errors.Is(err, account.ErrUnknownKey):
			p.unauthenticated(w, x)
			return
		case err != nil:
			p.unresolved(w, r, x, err)
			return
		}
		x.Account = rec
		now := p.Clock.Now()
		x.Effective, err = p.Resolve(rec, now)
		if err != nil {
			x.Effective = policy.Effective{Plan: rec.PlanAt(now)}
			p.unresolved(w, r, x, err)
			return
		}
		x.PlanRate = planRate(x, now)
		next.ServeHTTP(w, r)
	})
}

// account finds whose key a request presents, if the gate lets it be looked up.
func (p *Ports) account(r *http.Request, pool string) (account.Record, error) {
	key, ok := credential(r.Header)
	if !ok {
		if err := p.Gate.NoKey(pool); err != nil {
			return account.Record{}, err
		}
		return account.Record{}, account.ErrUnknownKey
	}
	digest := p.Digest(key)
	return p.Gate.Authenticate(r.Context(), pool, digest, func(ctx context.Context) (account.Record, error) {
		return p.Accounts.Lookup(ctx, digest)
	})
}

// planRate is the requests per minute of the plan itself, whatever an override
// makes of it (METRIC-2); 0: the plan's own is not well-formed.
func planRate(x *Exchange, now time.Time) int64 {
	if !x.Effective.Negotiated[policy.RequestsPerMinute] {
		return x.Effective.Allowance.RequestsPerMinute()
	}
	plan := x.Account.Plans[x.Account.Subscription.PlanAt(now)]
	rate, _ := policy.ParseValue(policy.RequestsPerMinute, plan.Entitlements[policy.RequestsPerMinute])
	return rate
}

// credential is the key of a request: exactly one Authorization line of the
// form "Bearer KEY".
func credential(h http.Header) (account.Key, bool) {
	lines := h["Authorization"]
	if len(lines) != 1 {
		return account.Key{}, false
	}
	scheme, text, _ := strings.Cut(lines[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return account.Key{}, false
	}
	key, err := account.ParseKey(text)
	return key, err == nil
}

// tooMany answers an attempt refused for its address. It says nothing of a user,
// a plan or a quota: nobody has been looked up (ANON-4).
func (p *Ports) tooMany(w http.ResponseWriter, x *Exchange, refused anonymous.Rejection) {
	code := contract.CodeRateLimited
	if refused.Outcome == admission.ConcurrencyRejected {
		code = contract.CodeConcurrencyLimited
	}
	p.rejected(w, x, code, refused.RetryAfter, "too many attempts: wait as long as Retry-After says")
}

func (p *Ports) unauthenticated(w http.ResponseWriter, x *Exchange) {
	x.Outcome = contract.LogUnauthenticated
	p.respond(w, x, Reply{
		Status:  http.StatusUnauthorized,
		Code:    contract.CodeUnauthenticated,
		Message: "a valid API key is required, as Authorization: Bearer KEY",
		Header:  http.Header{"Www-Authenticate": {"Bearer"}},
	})
}

// unresolved answers when nothing can be said about what the caller may do: the
// policy is broken, or a store is out of reach.
func (p *Ports) unresolved(w http.ResponseWriter, r *http.Request, x *Exchange, cause error) {
	x.Outcome = contract.LogUnresolved
	if p.clientGone(w, r, x, cause) {
		return
	}
	var broken *policy.ConfigurationError
	switch {
	case errors.As(cause, &broken):
		p.Meters.ConfigurationFailed(broken.Reason)
	case !errors.Is(cause, context.Canceled): // the client has gone: nothing has failed
		p.Meters.StoreFailed()
	}
	p.Logger.Error("no policy for a request", "request_id", x.ID, "user", x.Account.User, "error", cause)
	p.respond(w, x, Reply{
		Status:  http.StatusServiceUnavailable,
		Code:    contract.CodeConfigUnavailable,
		Message: "the limits of this account cannot be determined; retry later, and contact support with the request id if it persists",
	})
}
