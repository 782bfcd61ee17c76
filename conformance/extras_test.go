package conformance_test

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/dashboard"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/operator"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/wiring"
	"github.com/invoicespec/brimline/reports/record"
)

// outlive lets a server start anew on its store, as if that outlived it.
func outlive(p *wiring.Parts) {
	l := &replaced{p: p, Limiter: p.Limiter}
	p.Limiter, p.Restart = l, l.restart
}

// replaced is a limiter that begins anew.
type replaced struct {
	p  *wiring.Parts
	mu sync.RWMutex
	limiter.Limiter
}

func (r *replaced) restart(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Limiter = limiter.NewLocal(r.p.Clock, limiter.Config{})
	return nil
}

func (r *replaced) now() limiter.Limiter {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.Limiter
}

func (r *replaced) Admit(ctx context.Context, subject string, a policy.Allowance, id string) (limiter.Decision, error) {
	return r.now().Admit(ctx, subject, a, id)
}

func (r *replaced) Release(ctx context.Context, subject, id string) error {
	return r.now().Release(ctx, subject, id)
}

// withInternal puts the operator's routes beside the API.
func withInternal(p *wiring.Parts) {
	p.Outside[operator.Prefix+"/"] = operator.Handler(operator.Config{
		Accounts: p.Operator, Ledger: p.Ledger, Clock: p.Clock, Resolve: p.Resolve,
		BillingToken: rand.Text(), CapacityToken: rand.Text(),
	})
}

// withPage puts the billing page beside the API.
func withPage(p *wiring.Parts) {
	secret := make([]byte, dashboard.MinSecretBytes)
	rand.Read(secret)
	h, err := dashboard.New(dashboard.Ports{
		Clock: p.Clock, Digest: p.Digest, Accounts: billed{p}, Gate: openGate{}, Secret: secret, Logger: slog.New(slog.DiscardHandler),
		Pool:    func(*http.Request) string { return "" },
		Resolve: func(rec account.Record, now time.Time) (policy.Effective, error) { return p.Resolve(rec, now) },
	})
	if err != nil {
		panic(err) // the secret is long enough
	}
	for _, path := range dashboard.Paths() {
		p.Outside[path] = h
	}
}

type billed struct{ p *wiring.Parts }

func (b billed) Lookup(ctx context.Context, key account.Digest) (account.Record, error) {
	return b.p.Accounts.Lookup(ctx, key)
}

func (b billed) Billing(ctx context.Context, user string) (account.Billing, error) {
	return b.p.Operator.Billing(ctx, user)
}

type openGate struct{}

func (openGate) Authenticate(ctx context.Context, _ string, _ account.Digest, lookup anonymous.Lookup) (account.Record, error) {
	return lookup(ctx)
}

func (openGate) NoKey(string) error { return nil }

// verdictOf is a clause's verdict on an altered server.
func verdictOf(t *testing.T, clause string, alter func(*wiring.Parts)) record.Verdict {
	t.Helper()
	c, err := conformance.Run(t.Context(), start(t, control.ClockFrozen, alter).open(t), conformance.Options{Clauses: []string{clause}})
	require.NoError(t, err)
	for _, cl := range c.Clauses {
		if cl.ID == clause {
			return cl.Verdict
		}
	}
	return ""
}

// rewriting changes the source of the billing page, by the note that its user's
// overrides came with.
func rewriting(change func(page string, by account.Note) string) func(*wiring.Parts) {
	return func(p *wiring.Parts) {
		notes := &noted{Operator: p.Operator}
		p.Operator = notes
		inner := p.Outside[dashboard.BillingPath]
		p.Outside[dashboard.BillingPath] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rec := httptest.NewRecorder()
			inner.ServeHTTP(rec, r)
			for name, lines := range rec.Header() {
				w.Header()[name] = lines
			}
			w.Header().Del("Content-Length")
			w.WriteHeader(rec.Code)
			io.WriteString(w, change(rec.Body.String(), notes.by))
		})
	}
}

type noted struct {
	wiring.Operator
	by account.Note
}

func (n *noted) SetOverride(ctx context.Context, user string, o policy.Override, by account.Note) error {
	n.by = by
	return n.Operator.SetOverride(ctx, user, o, by)
}

func TestABillingPageThatIsWrong(t *testing.T) {
	require.Equal(t, record.Pass, verdictOf(t, "BILL-1", nil))
	for name, change := range map[string]func(page string, by account.Note) string{
		"shows the plan's rate":  func(page string, _ account.Note) string { return strings.ReplaceAll(page, "883", "10") },
		"shows the plan's burst": func(page string, _ account.Note) string { return strings.ReplaceAll(page, "977", "10") },
		"shows the plan's cap":   func(page string, _ account.Note) string { return strings.ReplaceAll(page, "769", "2") },
		"tells no value from another": func(page string, _ account.Note) string {
			return strings.ReplaceAll(page, "negotiated", "plan default")
		},
		"calls all negotiated": func(page string, _ account.Note) string {
			return strings.ReplaceAll(page, "plan default", "negotiated")
		},
		"shows the reason": func(page string, by account.Note) string { return page + by.Reason },
		"hides the author": func(page string, by account.Note) string { return page + "<!-- " + by.Author + " -->" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, record.Fail, verdictOf(t, "BILL-1", rewriting(change)))
		})
	}
}

func TestARestartThatForgets(t *testing.T) {
	require.Equal(t, record.Pass, verdictOf(t, "RESTART-2", nil))
	// after calls f once the server has started anew.
	after := func(f func(p *wiring.Parts)) func(*wiring.Parts) {
		return func(p *wiring.Parts) {
			restart := p.Restart
			p.Restart = func(ctx context.Context) error {
				f(p)
				return restart(ctx)
			}
		}
	}
	forgetting := func(change func(*account.Record)) func(*wiring.Parts) {
		return after(func(p *wiring.Parts) {
			resolve := p.Resolve
			p.Resolve = func(rec account.Record, now time.Time) (policy.Effective, error) {
				change(&rec)
				return resolve(rec, now)
			}
		})
	}
	for name, alter := range map[string]func(*wiring.Parts){
		"overrides":  forgetting(func(rec *account.Record) { rec.Overrides = nil }),
		"the plan":   forgetting(func(rec *account.Record) { rec.Subscription = policy.Subscription{Plan: "free"} }),
		"operations": after(func(p *wiring.Parts) { p.Operator = generous{p.Operator} }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, record.Fail, verdictOf(t, "RESTART-2", alter))
		})
	}
	t.Run("nobody starts anew on a real clock, where others are asked meanwhile", func(t *testing.T) {
		require.False(t, start(t, control.ClockReal, nil).open(t).Has(contract.NeedRestart))
	})
}

// generous gives a user an operation whenever it is asked how many are left.
type generous struct{ wiring.Operator }

func (g generous) Billing(ctx context.Context, user string) (account.Billing, error) {
	b, err := g.Operator.Billing(ctx, user)
	if err == nil {
		err = g.SetOperations(ctx, user, b.Left+1)
	}
	b.Left++
	return b, err
}
