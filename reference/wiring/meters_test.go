package wiring_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
)

// TestWhatIsCounted: each request in scope is one event or none.
func TestWhatIsCounted(t *testing.T) {
	plan := func(rate string) map[string]policy.Plan {
		return map[string]policy.Plan{"id": {Name: "pro", Entitlements: map[policy.Dimension]string{
			policy.RequestsPerMinute: rate, policy.Burst: "2", policy.Concurrency: "1",
		}}}
	}
	override := func(d policy.Dimension, value string) []policy.Override {
		return []policy.Override{{Dimension: d, Value: value}}
	}
	user := account.Record{User: "u", Plans: plan("300"), Subscription: policy.Subscription{Plan: "id"}}
	with := func(change func(*account.Record)) finds { r := user; change(&r); return finds{record: r} }

	for name, c := range map[string]struct {
		accounts finds
		limiter  limiter.Limiter // nil: a local one
		none     bool            // the request has no key
		want     string
	}{
		"admitted":            {accounts: finds{record: user}, want: "300 admitted"},
		"over the rate":       {accounts: finds{record: user}, limiter: decides{outcome: admission.RateRejected}, want: "300 rate"},
		"over the cap":        {accounts: finds{record: user}, limiter: decides{outcome: admission.ConcurrencyRejected}, want: "300 concurrency"},
		"another rate":        {accounts: with(func(r *account.Record) { r.Overrides = override(policy.RequestsPerMinute, "7") }), want: "300 admitted"},
		"another burst":       {accounts: with(func(r *account.Record) { r.Overrides = override(policy.Burst, "7") }), want: "300 admitted"},
		"over a broken rate":  {accounts: with(func(r *account.Record) { r.Plans, r.Overrides = plan("much"), override(policy.RequestsPerMinute, "7") }), want: "0 admitted"},
		"malformed":           {accounts: with(func(r *account.Record) { r.Plans = plan("much") }), want: "malformed"},
		"malformed override":  {accounts: with(func(r *account.Record) { r.Overrides = override(policy.Burst, "0") }), want: "malformed"},
		"no such plan":        {accounts: with(func(r *account.Record) { r.Subscription.Plan = "gone" }), want: "missing"},
		"broken in the store": {accounts: finds{err: fmt.Errorf("resolve: %w", &policy.ConfigurationError{Reason: policy.Missing})}, want: "missing"},
		"store away":          {accounts: finds{err: errors.New("connection refused")}, want: "store"},
		"store too slow":      {accounts: finds{err: context.DeadlineExceeded}, want: "store"},
		"limiter away":        {accounts: finds{record: user}, limiter: decides{err: errors.New("connection refused")}, want: "store"},
		"client gone":         {accounts: finds{err: fmt.Errorf("query: %w", context.Canceled)}},
		"unknown key":         {accounts: finds{err: account.ErrUnknownKey}},
		"no key":              {accounts: finds{record: user}, none: true},
		"scheduled, in force": {accounts: with(func(r *account.Record) { scheduled(r, -time.Hour) }), want: "60 admitted"},
		"scheduled, not yet":  {accounts: with(func(r *account.Record) { scheduled(r, time.Hour) }), want: "300 admitted"},
		"scheduled, overriden": {accounts: with(func(r *account.Record) {
			scheduled(r, -time.Hour)
			r.Overrides = override(policy.RequestsPerMinute, "7")
		}), want: "60 admitted"},
	} {
		t.Run(name, func(t *testing.T) {
			p := parts(nil)
			var seen events
			p.Accounts, p.Meters = c.accounts, &seen
			if c.limiter != nil {
				p.Limiter = c.limiter
			}
			r := httptest.NewRequest(http.MethodGet, "/v1/invoice/nothing", nil)
			if !c.none {
				key, err := account.NewKey("pro")
				require.NoError(t, err)
				r.Header.Set("Authorization", "Bearer "+key.Reveal())
			}
			p.Handler().ServeHTTP(httptest.NewRecorder(), r)
			if c.want == "" {
				require.Empty(t, seen)
				return
			}
			require.Equal(t, events{c.want}, seen)
		})
	}
}

// scheduled puts the user on a plan of 60 from an instant on.
func scheduled(r *account.Record, in time.Duration) {
	r.Plans = map[string]policy.Plan{"id": r.Plans["id"], "next": {Name: "starter", Entitlements: map[policy.Dimension]string{
		policy.RequestsPerMinute: "60", policy.Burst: "1", policy.Concurrency: "1",
	}}}
	r.Subscription.Scheduled, r.Subscription.Boundary = "next", time.Now().Add(in)
}

// finds is what every lookup finds.
type finds struct {
	record account.Record
	err    error
}

func (f finds) Lookup(context.Context, account.Digest) (account.Record, error) {
	return f.record, f.err
}

// decides is what becomes of every request.
type decides struct {
	outcome admission.Outcome
	err     error
}

func (d decides) Admit(context.Context, string, policy.Allowance, string) (limiter.Decision, error) {
	return limiter.Decision{Decision: admission.Decision{Outcome: d.outcome}}, d.err
}

func (decides) Release(context.Context, string, string) error { return nil }

// events is what was counted.
type events []string

func (e *events) Decided(planRate int64, o admission.Outcome, took time.Duration) {
	if took < 0 {
		o = 0
	}
	*e = append(*e, fmt.Sprint(planRate, " ", o))
}
func (e *events) ConfigurationFailed(r policy.Reason) { *e = append(*e, string(r)) }
func (e *events) StoreFailed()                        { *e = append(*e, "store") }
