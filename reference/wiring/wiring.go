// Package wiring is the reference server as data: every port, the named links
// of the chain, the routes outside the quotas and the start-up guards. [Default]
// returns the parts of a correct server, [Parts.Handler] puts them together.
//
// A function of *Parts makes another server of it: the control protocol adds
// its gates and recorders so, and a deliberately wrong server is one such
// function too. Replace what is there (a port, a link by its name, the subject
// function, how an answer is composed, who is in scope) before [Parts.Handler];
// the links take every port from the parts then.
package wiring

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/clientip"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
)

// Parts is a server in pieces.
type Parts struct {
	httpapi.Ports
	Links   httpapi.Links
	InScope func(path string) bool  // who has to pass the links, by decoded path
	Outside map[string]http.Handler // the routes outside the quotas, by decoded path: see [httpapi.Handler]
	Metrics http.Handler            // the page of metrics, for a listener of its own
	Guards  []Guard

	Logged   func(ctx context.Context, requestID string) ([]contract.LogEntry, error) // what the log holds of a request, whichever process wrote it; nil: nobody can look
	Operator Operator                                                                 // what operators write through; nil: nobody is served as one
	Restart  func(ctx context.Context) error                                          // drops what is held in memory; nil: nothing outlives the process
}

// Guard is a condition without which the server does not start.
type Guard struct {
	Name  string
	Check func() error
}

// Needs is what a server cannot do without and this package cannot make.
type Needs struct {
	Clock    clock.Clock
	Plans    map[string]policy.Plan
	Digest   func(account.Key) account.Digest
	Accounts httpapi.Accounts
	Ledger   httpapi.Ledger
	Limiter  limiter.Limiter
	Engine   httpapi.Engine
	Log      httpapi.Log
	Logger   *slog.Logger
	Operator Operator // may be nil
}

// Default returns the parts of a server that keeps the contract. It counts
// nothing until Meters and Metrics are set, and trusts no proxy until Clients is.
func Default(n Needs) *Parts {
	clients, _ := clientip.New(clientip.Config{}) // only what is configured can be refused
	p := &Parts{
		Ports: httpapi.Ports{
			Clock:    n.Clock,
			MintID:   mintID,
			Clients:  clients,
			Gate:     anonymous.New(n.Clock, anonymous.Config{}),
			Digest:   n.Digest,
			Accounts: n.Accounts,
			Resolve:  resolve,
			Subject:  perUser,
			Limiter:  n.Limiter,
			Ledger:   n.Ledger,
			Engine:   n.Engine,
			Log:      n.Log,
			Meters:   httpapi.Unmetered{},
			Compose:  httpapi.Compose,
			Routes:   []httpapi.Route{{Method: http.MethodPost, Path: contract.ScopePrefix + "/calculate"}},
			Bounds:   DefaultBounds(),
			Logger:   n.Logger,
		},
		Links:   httpapi.Chain(),
		InScope: httpapi.InScope,
		Outside: httpapi.Outside(),
		Metrics: http.NotFoundHandler(),
		Guards:  []Guard{{Name: "plans", Check: func() error { return plansResolve(n.Plans) }}},

		Operator: n.Operator,
	}
	return p
}

// DefaultBounds are the sizes and times of a server on loopback. The engine's
// own time is short next to the write timeout, which covers the whole exchange.
func DefaultBounds() httpapi.Bounds {
	return httpapi.Bounds{
		Body:    1 << 20,
		Upload:  time.Minute,
		Engine:  2 * time.Second,
		Linger:  2 * time.Second,
		Header:  16 << 10,
		Head:    10 * time.Second,
		Write:   3 * time.Minute,
		Idle:    time.Minute,
		Stopped: 10 * time.Second,
	}
}

// Handler puts the parts together.
func (p *Parts) Handler() http.Handler {
	return httpapi.Handler(p.InScope, p.Links.Build(&p.Ports), p.Outside)
}

// Guarded returns the first failure among the guards.
func (p *Parts) Guarded() error {
	for _, g := range p.Guards {
		if err := g.Check(); err != nil {
			return fmt.Errorf("guard %s: %w", g.Name, err)
		}
	}
	return nil
}

// perUser makes all keys of a user share one bucket and one cap (POOL-1, POOL-2).
func perUser(x *httpapi.Exchange) string { return x.Account.User }

func resolve(r account.Record, now time.Time) (policy.Effective, error) {
	return policy.Resolve(r.Plans, r.Subscription, r.Overrides, now)
}

// mintID is 130 random bits as text.
func mintID() string { return "req_" + rand.Text() }

// plansResolve refuses a plan table in which some plan entitles to nothing.
func plansResolve(plans map[string]policy.Plan) error {
	for name := range plans {
		if _, err := policy.Resolve(plans, policy.Subscription{Plan: name}, nil, time.Time{}); err != nil {
			return err
		}
	}
	return nil
}
