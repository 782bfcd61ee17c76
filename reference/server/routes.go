package server

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"time"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/dashboard"
	"github.com/invoicespec/brimline/reference/operator"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/wiring"
)

// mount puts the operator's routes and the billing page beside the API. They ask
// the parts as they are when a request comes, whoever has altered them meanwhile.
func mount(cfg Config, parts *wiring.Parts) error {
	now := current{parts}
	internal := sync.OnceValue(func() http.Handler { // once nobody alters the parts any more
		return operator.Handler(operator.Config{
			Accounts: parts.Operator, Ledger: parts.Ledger, Clock: parts.Clock, Resolve: now.resolve,
			BillingToken: cfg.OperatorToken, CapacityToken: cfg.CapacityToken,
		})
	})
	parts.Outside[operator.Prefix+"/"] = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { internal().ServeHTTP(w, r) })
	secret := cfg.SessionSecret
	if secret == nil {
		secret = make([]byte, dashboard.MinSecretBytes)
		rand.Read(secret)
	}
	page, err := dashboard.New(dashboard.Ports{
		Clock: parts.Clock, Digest: parts.Digest, Accounts: now, Resolve: now.resolve, Secret: secret, Logger: parts.Logger,
		// A pool of the page's own: who guesses keys here takes nothing from the API,
		// and gets no second try there.
		Gate: anonymous.New(parts.Clock, cfg.Anonymous),
		Pool: func(r *http.Request) string { return parts.Clients.Pool(parts.Clients.Client(r)) },
	})
	if err != nil {
		return err
	}
	for _, path := range dashboard.Paths() {
		parts.Outside[path] = page
	}
	return nil
}

// current is the parts' ports at the time of each call.
type current struct{ parts *wiring.Parts }

func (c current) Lookup(ctx context.Context, key account.Digest) (account.Record, error) {
	return c.parts.Accounts.Lookup(ctx, key)
}

func (c current) Billing(ctx context.Context, user string) (account.Billing, error) {
	return c.parts.Operator.Billing(ctx, user)
}

func (c current) resolve(r account.Record, now time.Time) (policy.Effective, error) {
	return c.parts.Resolve(r, now)
}
