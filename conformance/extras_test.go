package conformance_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/limiter"
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
