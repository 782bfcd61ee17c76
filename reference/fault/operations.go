package fault

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/wiring"
)

func scheduleFaults() []Fault {
	oldRate := func(old, now policy.Allowance) policy.Allowance {
		return allowance(old.RequestsPerMinute(), now.Burst(), now.Concurrency())
	}
	oldCap := func(old, now policy.Allowance) policy.Allowance {
		return allowance(now.RequestsPerMinute(), now.Burst(), old.Concurrency())
	}
	return []Fault{
		{"future-plan-early", "PLAN-2", "a scheduled plan applies at once",
			records(func(rec account.Record, _ time.Time) account.Record {
				if rec.Subscription.Scheduled != "" {
					rec.Subscription.Plan = rec.Subscription.Scheduled
				}
				return rec
			})},
		{"future-plan-late", "PLAN-2", "a scheduled plan applies a second after the boundary", holdingPlan(time.Second)},
		{"future-plan-never", "PLAN-2", "a scheduled plan never applies", holdingPlan(100 * 365 * 24 * time.Hour)},
		{"future-plan-old-rate", "PLAN-2", "a scheduled plan leaves the rate as it was", takingOver(oldRate)},
		{"future-plan-old-cap", "PLAN-2", "a scheduled plan leaves the cap as it was", takingOver(oldCap)},

		{"exhausted-empties-bucket", "PLAN-3", "a request without an operation left empties the bucket", func(p *wiring.Parts) {
			l := limits(p)
			replies(onCode(contract.CodeCapacityExhausted), func(x *httpapi.Exchange, _ *httpapi.Reply) {
				l.buckets.Update(l.bucketOf(x), func(s bucket.State) bucket.State { s.Level = 0; return s })
			})(p)
		}},
	}
}

// holdingPlan keeps a user on the plan before the scheduled one for so long after
// the boundary that was announced.
func holdingPlan(after time.Duration) alteration {
	announced := newNotes[policy.Subscription]()
	return records(func(rec account.Record, now time.Time) account.Record {
		sub := rec.Subscription
		announced.change(rec.User, func(old policy.Subscription) policy.Subscription {
			switch {
			case sub.Scheduled != "":
				return sub
			case sub.Plan == old.Scheduled && now.Before(old.Boundary.Add(after)):
				rec.Subscription.Plan = old.Plan
			}
			return old
		})
		return rec
	})
}

// takingOver keeps something of the allowance that a user had while another plan
// was scheduled.
func takingOver(keep func(old, now policy.Allowance) policy.Allowance) alteration {
	waiting := newNotes[policy.Allowance]()
	return resolves(func(resolve resolver, rec account.Record, now time.Time) (policy.Effective, error) {
		eff, err := resolve(rec, now)
		if err != nil {
			return eff, err
		}
		waiting.change(rec.User, func(old policy.Allowance) policy.Allowance {
			switch {
			case rec.Subscription.Scheduled != "":
				return eff.Allowance
			case !old.IsZero():
				eff.Allowance = keep(old, eff.Allowance)
			}
			return old
		})
		return eff, nil
	})
}

func capacityFaults() []Fault {
	return []Fault{
		{"failure-keeps-operation", "LOG-7", "an engine failure does not give its operation back", keepingOn(contract.CodeEngineFailure)},
		{"timeout-keeps-operation", "LOG-7", "a timeout does not give its operation back", keepingOn(contract.CodeEngineTimeout)},
		{"validation-keeps-operation", "LOG-7", "a validation failure reserves an operation and does not give it back", func(p *wiring.Parts) {
			replies(onCode(contract.CodeValidationFailed), func(x *httpapi.Exchange, _ *httpapi.Reply) {
				p.Ledger.Reserve(httpapi.With(context.Background(), x), x.Account.User, x.ID)
			})(p)
		}},
		{"operation-not-reserved", "LOG-7", "the capacity check looks whether an operation is left and reserves none", func(p *wiring.Parts) {
			p.Ledger = lookingLedger{p.Ledger}
		}},
		{"charged-on-delivery", "LOG-7", "a success is charged once its client has the response", func(p *wiring.Parts) {
			charging(func(context.Context, httpapi.Ledger, string) error { return nil })(p)
			ledger := p.Ledger.(chargingLedger).Ledger
			before(httpapi.LinkLimit, func(_ *httpapi.Ports, next http.Handler) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					next.ServeHTTP(w, r)
					if x := httpapi.From(r.Context()); x.Charged > 0 && r.Context().Err() == nil {
						ledger.Reserve(r.Context(), x.Account.User, x.ID)
						ledger.Charge(r.Context(), x.ID)
						ledger.GiveBack(r.Context(), x.ID)
					}
				}
			})(p)
		}},

		{"parser-refusal-logged", "LOG-8", "a head that is too large gets a request id and a log entry", func(p *wiring.Parts) {
			most := p.Bounds.Header
			p.Bounds.Header = 1 << 20
			before(httpapi.LinkAuthenticate, func(p *httpapi.Ports, next http.Handler) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					size := 0
					for name, lines := range r.Header {
						for _, line := range lines {
							size += len(name) + len(line)
						}
					}
					if size <= most {
						next.ServeHTTP(w, r)
						return
					}
					x := httpapi.From(r.Context())
					x.Outcome = contract.LogUnauthenticated
					x.Status, x.Code = http.StatusRequestHeaderFieldsTooLarge, "HEAD_TOO_LARGE"
					write(w, p.Compose(x, httpapi.Reply{Status: x.Status, Code: x.Code, Message: "the head of this request is too large"}))
				}
			})(p)
		}},
	}
}

// keepingOn leaves reserved what requests that ended so had reserved.
func keepingOn(code string) alteration {
	return func(p *wiring.Parts) { p.Ledger = keepingLedger{p.Ledger, code} }
}

type keepingLedger struct {
	httpapi.Ledger
	code string
}

func (l keepingLedger) GiveBack(ctx context.Context, id string) error {
	if x := httpapi.From(ctx); x != nil && x.Code == l.code {
		return nil
	}
	return l.Ledger.GiveBack(ctx, id)
}

// lookingLedger reserves an operation only to see that there is one, and charges
// whatever comes of it.
type lookingLedger struct{ httpapi.Ledger }

func (l lookingLedger) Reserve(ctx context.Context, user, id string) error {
	if err := l.Ledger.Reserve(ctx, user, id); err != nil {
		return err
	}
	if err := l.Ledger.GiveBack(ctx, id); err != nil {
		return err
	}
	time.Sleep(window)
	return nil
}

func (l lookingLedger) Charge(ctx context.Context, id string) error {
	err := l.Ledger.Reserve(ctx, httpapi.From(ctx).Account.User, id)
	if errors.Is(err, account.ErrExhausted) {
		return nil
	}
	return errors.Join(err, l.Ledger.Charge(ctx, id))
}

// write sends an answer of a fault's own.
func write(w http.ResponseWriter, a httpapi.Answer) {
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.Status)
	w.Write(a.Body)
}
