package fault

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/limiter/limitertest"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/wiring"
)

// chained gives each call the exchange that it has in the chain.
type chained struct{ limiter.Limiter }

func inChain(ctx context.Context, subject, id string) context.Context {
	return httpapi.With(ctx, &httpapi.Exchange{ID: id, Account: account.Record{User: subject}})
}

func (c chained) Admit(ctx context.Context, subject string, a policy.Allowance, id string) (limiter.Decision, error) {
	return c.Limiter.Admit(inChain(ctx, subject, id), subject, a, id)
}

func (c chained) Release(ctx context.Context, subject, id string) error {
	return c.Limiter.Release(inChain(ctx, subject, id), subject, id)
}

// TestStepsAreRight: as long as no step is exchanged, the limiter in steps is
// one of the reference's. What it does not refuse, no allowance at all and an id
// in flight, never reaches it.
func TestStepsAreRight(t *testing.T) {
	findings := limitertest.Check(t, func(testing.TB) limitertest.Harness {
		c := clock.NewFrozen(time.Unix(0, 0))
		p := &wiring.Parts{Ports: httpapi.Ports{
			Clock:   c,
			Subject: func(x *httpapi.Exchange) string { return x.Account.User },
		}}
		return limitertest.Harness{Limiter: chained{limits(p)}, Instant: c.Instant, Advance: c.Advance}
	})
	var cases []string
	for _, f := range findings {
		cases = append(cases, f.Case)
	}
	require.Equal(t, []string{"CFG-2 no allowance is not unlimited", "an id in flight is refused"}, cases, "%v", findings)
}
