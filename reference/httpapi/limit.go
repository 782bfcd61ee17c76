package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/admission"
)

// limit carries out RATE-4 to RATE-7, CONC-1 to CONC-5 and PERMIT-1 to PERMIT-8:
// the token is spent, then the permit taken, before anything else is looked at.
// The links inside have written and flushed their answer, and their work has
// ended, when they return: only then is the permit released.
func limit(p *Ports, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := From(r.Context())
		x.Subject = p.Subject(x)
		asked := time.Now() // not the parts' clock, which may stand still
		d, err := p.Limiter.Admit(r.Context(), x.Subject, x.Effective.Allowance, x.ID)
		took := time.Since(asked)
		if err != nil {
			p.unresolved(w, r, x, err)
			return
		}
		p.Meters.Decided(x.PlanRate, d.Outcome, took)
		x.Decision = &d
		switch d.Outcome {
		case admission.Admitted:
			x.Outcome = contract.LogAdmitted
			defer p.release(r.Context(), x)
			next.ServeHTTP(w, r)
		case admission.RateRejected:
			// The first moment at which a retry can succeed is never "now", however
			// little is missing.
			p.rejected(w, x, contract.CodeRateLimited, max(1, seconds(d.ToToken)),
				"too many requests: wait as long as Retry-After says")
		default:
			p.rejected(w, x, contract.CodeConcurrencyLimited, 1,
				"too many requests in flight: wait for one of them to complete")
		}
	})
}

// release gives the permit back, whether or not the client is still there.
func (p *Ports) release(ctx context.Context, x *Exchange) {
	if err := p.Limiter.Release(context.WithoutCancel(ctx), x.Subject, x.ID); err != nil {
		p.Logger.Error("a permit could not be released", "request_id", x.ID, "user", x.Account.User, "error", err)
	}
}

func (p *Ports) rejected(w http.ResponseWriter, x *Exchange, code string, retryAfter int64, message string) {
	x.Outcome = contract.LogRejected
	p.respond(w, x, Reply{
		Status:  http.StatusTooManyRequests,
		Code:    code,
		Message: message,
		Header: http.Header{
			contract.HeaderRetryAfter: {strconv.FormatInt(retryAfter, 10)},
			"Cache-Control":           {"no-store"}, // ERR-4
		},
	})
}
