package fault

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/permit"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/wiring"
)

// boundaryFaults are those of who may write overrides, what, and what is kept of it.
func boundaryFaults() []Fault {
	positive := func(text string) bool { return strings.Trim(text, "0123456789") == "" }
	return []Fault{
		{"nonpositive-override-unlimited", "OVR-3", "an override of 0 or less means as much as can be",
			taking(func(text string) bool { return text == "0" || strings.HasPrefix(text, "-") }, theMost)},
		{"word-override-unlimited", "OVR-3", "an override in words means as much as can be",
			taking(func(text string) bool { return strings.HasPrefix(text, `"`) }, theMost)},
		{"huge-override-clamped", "OVR-3", "an override above the range is taken for the largest",
			taking(func(text string) bool { return positive(text) && len(text) > 5 }, theMost)},
		{"fraction-override-truncated", "OVR-3", "an override loses its fraction",
			taking(func(text string) bool { return strings.Contains(text, ".") },
				func(o policy.Override) string { whole, _, _ := strings.Cut(o.Value, "."); return whole })},
		{"quoted-override-accepted", "OVR-3", "an override may be a number in quotes",
			taking(func(text string) bool { return positive(strings.Trim(text, `"`)) },
				func(o policy.Override) string { return strings.Trim(o.Value, `"`) })},
		{"null-override-ends", "OVR-3", "an override of null ends the one before", refusing(func(ctx context.Context, s wiring.Operator, user string, o policy.Override, err error) error {
			if o.Value != "null" {
				return err
			}
			return s.EndOverride(ctx, user, o.Dimension, account.PastChecks())
		})},
		{"refused-override-ends-old", "OVR-3", "an override that is refused ends the one before", refusing(func(ctx context.Context, s wiring.Operator, user string, o policy.Override, err error) error {
			return errors.Join(err, s.EndOverride(ctx, user, o.Dimension, account.PastChecks()))
		})},
		{"override-refused-in-silence", "OVR-3", "an override that makes no sense is dropped, and nobody is told",
			refusing(func(context.Context, wiring.Operator, string, policy.Override, error) error { return nil })},
		{"override-refused-as-a-failure", "OVR-3", "an override that makes no sense is answered like a failure of the server",
			refusing(func(_ context.Context, _ wiring.Operator, _ string, _ policy.Override, err error) error {
				return errors.New(err.Error())
			})},

		{"control-path-open", "OVR-6", "the control protocol is spoken where users ask, to whoever has a key", open("/control/v1/users/")},
		{"internal-route-open", "OVR-6", "a user's key opens the operator's route", open("/internal/billing/users/")},

		{"history-forgets-replaced", "OVR-7", "an override that was replaced is gone from the history", remembering(func(e account.OverrideEntry) (account.OverrideEntry, bool) {
			return e, e.Ended.IsZero()
		})},
		{"history-without-reason", "OVR-7", "the history does not say why", remembering(func(e account.OverrideEntry) (account.OverrideEntry, bool) {
			e.By.Reason = ""
			return e, true
		})},
		{"history-without-author", "OVR-7", "the history does not say who", remembering(func(e account.OverrideEntry) (account.OverrideEntry, bool) {
			e.By.Author = ""
			return e, true
		})},
		{"history-without-end", "OVR-7", "the history does not say that an override was replaced", remembering(func(e account.OverrideEntry) (account.OverrideEntry, bool) {
			e.Ended = e.Expires
			return e, true
		})},
	}
}

func theMost(o policy.Override) string { return strconv.FormatInt(o.Dimension.Max(), 10) }

// operating exchanges some of what operators write through.
func operating(exchange func(wiring.Operator) wiring.Operator) alteration {
	return func(p *wiring.Parts) { p.Operator = exchange(p.Operator) }
}

// taking takes some overrides that are to be refused for others.
func taking(which func(text string) bool, as func(policy.Override) string) alteration {
	return refusing(func(ctx context.Context, s wiring.Operator, user string, o policy.Override, err error) error {
		if !which(o.Value) {
			return err
		}
		o.Value = as(o)
		return s.SetOverride(ctx, user, o, account.PastChecks())
	})
}

// refusing exchanges what becomes of an override that is refused.
func refusing(instead func(ctx context.Context, s wiring.Operator, user string, o policy.Override, err error) error) alteration {
	return operating(func(s wiring.Operator) wiring.Operator { return refusingStore{s, instead} })
}

type refusingStore struct {
	wiring.Operator
	instead func(context.Context, wiring.Operator, string, policy.Override, error) error
}

func (s refusingStore) SetOverride(ctx context.Context, user string, o policy.Override, by account.Note) error {
	err := s.Operator.SetOverride(ctx, user, o, by)
	if errors.Is(err, account.ErrRefused) {
		return s.instead(ctx, s.Operator, user, o, err)
	}
	return err
}

// remembering shows the history with entries changed or left out.
func remembering(change func(account.OverrideEntry) (account.OverrideEntry, bool)) alteration {
	return operating(func(s wiring.Operator) wiring.Operator { return forgetfulStore{s, change} })
}

type forgetfulStore struct {
	wiring.Operator
	change func(account.OverrideEntry) (account.OverrideEntry, bool)
}

func (s forgetfulStore) Overrides(ctx context.Context, user string) ([]account.OverrideEntry, error) {
	all, err := s.Operator.Overrides(ctx, user)
	var shown []account.OverrideEntry
	for _, e := range all {
		if e, ok := s.change(e); ok {
			shown = append(shown, e)
		}
	}
	return shown, err
}

// open lets every good key write overrides below a path.
func open(prefix string) alteration {
	return func(p *wiring.Parts) {
		inScope := p.InScope
		p.InScope = func(path string) bool { return strings.HasPrefix(path, prefix) || inScope(path) }
		before(httpapi.LinkRequestID, func(ports *httpapi.Ports, next http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				rest, ok := strings.CutPrefix(r.URL.Path, prefix)
				if !ok {
					next.ServeHTTP(w, r)
					return
				}
				user, dimension, _ := strings.Cut(rest, "/overrides/")
				if _, ok := caller(r.Context(), ports, r.Header.Get("Authorization")); !ok {
					http.Error(w, "forbidden", http.StatusForbidden)
					return
				}
				o := policy.Override{Dimension: policy.Dimension(dimension), Value: "50"}
				if err := p.Operator.SetOverride(r.Context(), user, o, account.PastChecks()); err != nil {
					http.Error(w, "no such override", http.StatusUnprocessableEntity)
					return
				}
				w.WriteHeader(http.StatusNoContent)
			}
		})(p)
	}
}

// operatedFaults are those of plans and operations that an operator's writing
// brings about.
func operatedFaults() []Fault {
	return []Fault{
		{"period-end-ignored", "PLAN-2", "ending the billing period does not let the scheduled plan take over",
			operating(func(s wiring.Operator) wiring.Operator { return endlessStore{s} })},
		{"bought-operations-fill-bucket", "PLAN-3", "setting the operations left fills the bucket", func(p *wiring.Parts) {
			l := limits(p)
			onOperations(func(user string) {
				l.buckets.Update(user, func(s bucket.State) bucket.State { s.Level = full(s, s.Burst); return s })
			})(p)
		}},
		{"bought-operations-widen-cap", "PLAN-3", "setting the operations left raises the cap by one", func(p *wiring.Parts) {
			bought := newNotes[int64]()
			limits(p).permits = cappedTable{permit.New(), func(subject string, limit int64) int64 {
				return limit + bought.change(subject, func(n int64) int64 { return n })
			}}
			onOperations(func(user string) { bought.change(user, func(int64) int64 { return 1 }) })(p)
		}},
		{"override-costs-operation", "PLAN-3", "an override costs an operation",
			operating(func(s wiring.Operator) wiring.Operator { return costlyStore{s} })},
	}
}

// onOperations calls f when a user's operations are set.
func onOperations(f func(user string)) alteration {
	return operating(func(s wiring.Operator) wiring.Operator { return noticingStore{s, f} })
}

type noticingStore struct {
	wiring.Operator
	noticed func(user string)
}

func (s noticingStore) SetOperations(ctx context.Context, user string, left int64) error {
	s.noticed(user)
	return s.Operator.SetOperations(ctx, user, left)
}

// onOverride calls f when an override is written that is in force already.
func onOverride(f func(user string)) alteration {
	return operating(func(s wiring.Operator) wiring.Operator { return repeatedStore{s, f} })
}

type repeatedStore struct {
	wiring.Operator
	noticed func(user string)
}

func (s repeatedStore) SetOverride(ctx context.Context, user string, o policy.Override, by account.Note) error {
	b, err := s.Operator.Billing(ctx, user)
	if err != nil {
		return err
	}
	for _, old := range b.Overrides {
		if old.Dimension == o.Dimension && old.Value == o.Value {
			s.noticed(user)
		}
	}
	return s.Operator.SetOverride(ctx, user, o, by)
}

type endlessStore struct{ wiring.Operator }

func (s endlessStore) EndPeriod(ctx context.Context, user string) (account.Period, error) {
	b, err := s.Operator.Billing(ctx, user)
	return b.Period, err
}

type costlyStore struct{ wiring.Operator }

func (s costlyStore) SetOverride(ctx context.Context, user string, o policy.Override, by account.Note) error {
	b, err := s.Operator.Billing(ctx, user)
	return errors.Join(err, s.Operator.SetOverride(ctx, user, o, by), s.Operator.SetOperations(ctx, user, b.Left-1))
}
