package fault

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/invoice"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/wiring"
)

func sideEffectFaults() []Fault {
	rate, concurrency := ofCode(contract.CodeRateLimited), ofCode(contract.CodeConcurrencyLimited)
	return []Fault{
		{"rate-429-runs-engine", "RATE-7", "a rate rejection does the engine's work", runsEngine(admission.RateRejected)},
		{"rate-429-charges", "RATE-7", "a rate rejection is charged", charges(admission.RateRejected)},
		{"conc-429-runs-engine", "CONC-5", "a concurrency rejection does the engine's work", runsEngine(admission.ConcurrencyRejected)},
		{"conc-429-charges", "CONC-5", "a concurrency rejection is charged", charges(admission.ConcurrencyRejected)},

		{"rate-429-not-logged", "LOG-1", "a rate rejection is not logged", entries(rate, none)},
		{"rate-429-logged-twice", "LOG-1", "a rate rejection is logged twice", entries(rate, twice)},
		{"rate-429-logged-success", "LOG-1", "a rate rejection is logged as admitted", entries(rate, asAdmitted)},
		{"rate-429-logged-bare", "LOG-1", "a rate rejection is logged without its error code", entries(rate, withoutCode)},
		{"conc-429-not-logged", "LOG-1", "a concurrency rejection is not logged", entries(concurrency, none)},
		{"conc-429-logged-twice", "LOG-1", "a concurrency rejection is logged twice", entries(concurrency, twice)},
		{"conc-429-logged-success", "LOG-1", "a concurrency rejection is logged as admitted", entries(concurrency, asAdmitted)},

		{"success-not-logged", "LOG-3", "a success is not logged", entries(ofCode(""), none)},
		{"error-not-logged", "LOG-3", "a validation failure is not logged", entries(ofCode(contract.CodeValidationFailed), none)},
		{"401-not-logged", "LOG-3", "a bad key is not logged", entries(ofCode(contract.CodeUnauthenticated), none)},
		{"404-not-logged", "LOG-3", "an unknown path is not logged", entries(ofCode(contract.CodeNotFound), none)},
		{"log-credential", "LOG-3", "the log holds the key", both(presenting, lines(func(ctx context.Context, e contract.LogEntry) []contract.LogEntry {
			e.Path += " " + presented(ctx)
			return []contract.LogEntry{e}
		}))},
		{"log-body", "LOG-3", "the log holds the request's body", logBody()},

		{"charged-twice", "LOG-4", "a success is charged twice", charging(func(ctx context.Context, l httpapi.Ledger, id string) error {
			again := id + "-again"
			l.Reserve(ctx, httpapi.From(ctx).Account.User, again)
			l.Charge(ctx, again)
			l.GiveBack(ctx, again)
			return l.Charge(ctx, id)
		})},
		{"charged-never", "LOG-4", "a success is not charged", charging(func(context.Context, httpapi.Ledger, string) error { return nil })},
		{"charged-on-validation", "LOG-4", "a validation failure is charged", chargedOn(contract.CodeValidationFailed)},
		{"charged-on-failure", "LOG-4", "an engine failure is charged", chargedOn(contract.CodeEngineFailure)},
		{"charged-on-timeout", "LOG-4", "a timeout is charged", chargedOn(contract.CodeEngineTimeout)},
	}
}

// runsEngine does the engine's work for requests decided so.
func runsEngine(on admission.Outcome) alteration {
	return decisions(func(ctx context.Context, p *wiring.Parts, _ *httpapi.Exchange, d *limiter.Decision) {
		if d.Outcome == on {
			ctx, cancel := context.WithTimeout(ctx, p.Bounds.Engine)
			defer cancel()
			p.Engine.Calculate(ctx, invoice.Invoice{})
		}
	})
}

// charges charges requests decided so.
func charges(on admission.Outcome) alteration {
	return decisions(func(ctx context.Context, p *wiring.Parts, x *httpapi.Exchange, d *limiter.Decision) {
		if d.Outcome == on {
			charge(ctx, p, x)
		}
	})
}

// charge charges a request, whether or not it has reserved an operation.
func charge(ctx context.Context, p *wiring.Parts, x *httpapi.Exchange) {
	p.Ledger.Reserve(ctx, x.Account.User, x.ID)
	p.Ledger.Charge(ctx, x.ID)
	p.Ledger.GiveBack(ctx, x.ID)
}

func ofCode(code string) func(contract.LogEntry) bool {
	return func(e contract.LogEntry) bool { return e.ErrorCode == code }
}

func none(contract.LogEntry) []contract.LogEntry    { return nil }
func twice(e contract.LogEntry) []contract.LogEntry { return []contract.LogEntry{e, e} }

func withoutCode(e contract.LogEntry) []contract.LogEntry {
	e.ErrorCode = ""
	return []contract.LogEntry{e}
}

func asAdmitted(e contract.LogEntry) []contract.LogEntry {
	e.Outcome, e.Status, e.ErrorCode = contract.LogAdmitted, http.StatusOK, ""
	return []contract.LogEntry{e}
}

// logBody logs what was read of a body.
func logBody() alteration {
	type key struct{}
	return both(
		before(httpapi.LinkAPILog, func(_ *httpapi.Ports, next http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				read := &bytes.Buffer{}
				r = r.WithContext(context.WithValue(r.Context(), key{}, read))
				r.Body = teeBody{io.TeeReader(r.Body, read), r.Body}
				next.ServeHTTP(w, r)
			}
		}),
		lines(func(ctx context.Context, e contract.LogEntry) []contract.LogEntry {
			e.Path += " " + ctx.Value(key{}).(*bytes.Buffer).String()
			return []contract.LogEntry{e}
		}))
}

type teeBody struct {
	io.Reader
	io.Closer
}

// charging changes how an operation is charged.
func charging(charge func(ctx context.Context, l httpapi.Ledger, id string) error) alteration {
	return func(p *wiring.Parts) { p.Ledger = chargingLedger{p.Ledger, charge} }
}

type chargingLedger struct {
	httpapi.Ledger
	charge func(ctx context.Context, l httpapi.Ledger, id string) error
}

func (l chargingLedger) Charge(ctx context.Context, id string) error {
	return l.charge(ctx, l.Ledger, id)
}

// chargedOn charges some errors, before they are answered.
func chargedOn(code string) alteration {
	return func(p *wiring.Parts) {
		replies(onCode(code), func(x *httpapi.Exchange, _ *httpapi.Reply) {
			charge(httpapi.With(context.Background(), x), p, x)
		})(p)
	}
}
