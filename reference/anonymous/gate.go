// Package anonymous is the gate before authentication: what one client address
// may cost in attempts that do not authenticate. It carries out ANON-1 to
// ANON-8; package clientip says whose address it is.
//
// Most callers want [New], then [Gate.Authenticate] around the lookup of a key,
// and [Gate.NoKey] for an attempt with no key to look up.
//
// While it is not known whether an attempt is good, it holds a place of its
// address's pool, and each place taken sets one token aside. A key that proves
// bad spends the token. One that proves good leaves the bucket as if it had
// never been asked, so its owner is held to the plan alone.
package anonymous

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/permit"
	"github.com/invoicespec/brimline/reference/policy"
)

// The numbers that apply where a [Config] says nothing else.
const (
	DefaultRequestsPerMinute = 30
	DefaultBurst             = 10
	DefaultConcurrency       = 5
	DefaultKnownKeys         = 100_000
	DefaultKnownFor          = 15 * time.Minute
)

// Config is what a gate allows and how much it remembers (ANON-8). The zero
// value takes every default; so does a number that is not positive, so that no
// configuration is unbounded.
type Config struct {
	Allowance policy.Allowance // of one address; its burst also bounds what is undecided at once
	Pools     limiter.Config   // bounds the addresses remembered
	KnownKeys int              // most keys remembered as good; at least 2
	KnownFor  time.Duration    // how long after it was last seen good

	// Observe, if set, is told each decision of a pool and how long it took. It
	// must be quick and must not call the gate.
	Observe func(admission.Outcome, time.Duration)
}

// Lookup finds who presents a key. Its error is [account.ErrUnknownKey], or the
// store is out of reach. It has to end soon after its context does.
type Lookup func(context.Context) (account.Record, error)

// Gate guards the lookup of keys. Make one with [New].
type Gate struct {
	clock clock.Clock
	pools pools

	mu      sync.Mutex
	known   known
	flights map[account.Digest]*flight // first uses that are being looked up
}

// New returns a gate with every pool full and no key known.
func New(c clock.Clock, cfg Config) *Gate {
	if cfg.Allowance.IsZero() {
		// These numbers are in range.
		cfg.Allowance, _ = policy.NewAllowance(DefaultRequestsPerMinute, DefaultBurst, DefaultConcurrency)
	}
	if cfg.KnownKeys <= 0 {
		cfg.KnownKeys = DefaultKnownKeys
	}
	if cfg.KnownFor <= 0 {
		cfg.KnownFor = DefaultKnownFor
	}
	if cfg.Observe == nil {
		cfg.Observe = func(admission.Outcome, time.Duration) {}
	}
	return &Gate{
		clock: c,
		pools: pools{
			clock:     c,
			allowance: cfg.Allowance,
			buckets:   limiter.NewBuckets(cfg.Pools),
			places:    permit.New(),
			observe:   cfg.Observe,
		},
		known:   newKnown(cfg.KnownKeys, cfg.KnownFor),
		flights: map[account.Digest]*flight{},
	}
}

// Authenticate is the answer of lookup for a key, or a [Rejection], before which
// nothing was looked up unless others asked for the same key at the same time.
//
// A key lately seen good is looked up at once. Any other needs a token and a
// place of pool first. If it is being looked up already, this waits for that
// answer and reserves nothing; it is charged only if that answer is bad.
func (g *Gate) Authenticate(ctx context.Context, pool string, key account.Digest, lookup Lookup) (account.Record, error) {
	g.mu.Lock()
	if g.known.has(key, g.clock.Instant()) {
		g.mu.Unlock()
		return g.lookUpAgain(ctx, pool, key, lookup)
	}
	f, joins := g.flights[key]
	if !joins {
		place, err := g.pools.reserve(pool)
		if err != nil {
			g.mu.Unlock()
			return account.Record{}, err
		}
		f = g.start(ctx, pool, place, key, lookup)
	}
	f.waiting++
	g.mu.Unlock()

	select {
	case <-f.done:
	case <-ctx.Done():
		g.leave(key, f)
		return account.Record{}, context.Cause(ctx)
	}
	if joins && errors.Is(f.err, account.ErrUnknownKey) {
		if err := g.pools.count(pool); err != nil {
			return account.Record{}, err
		}
	}
	return f.record, f.err
}

// lookUpAgain is for a key that was good a while ago. One that no longer is, is
// forgotten and counts like any other that is bad.
func (g *Gate) lookUpAgain(ctx context.Context, pool string, key account.Digest, lookup Lookup) (account.Record, error) {
	record, err := lookup(ctx)
	switch {
	case err == nil:
		g.mu.Lock()
		g.known.touch(key, g.clock.Instant())
		g.mu.Unlock()
	case errors.Is(err, account.ErrUnknownKey):
		g.Forget(key)
		if refused := g.pools.count(pool); refused != nil {
			return account.Record{}, refused
		}
	}
	return record, err
}

// NoKey counts an attempt whose credential is missing or malformed like one
// whose key is wrong. Its error is a [Rejection]; without one the attempt is to
// be told that it is not authenticated.
func (g *Gate) NoKey(pool string) error { return g.pools.count(pool) }

// Forget ends what is known of a key, for when it is revoked. An answer that is
// on its way goes to those who wait for it and to nobody else.
func (g *Gate) Forget(key account.Digest) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.known.drop(key)
	delete(g.flights, key)
}

// Stats says how much a gate remembers.
type Stats struct {
	Pools     limiter.Stats // addresses whose pool is not full, or was not lately
	Undecided int           // addresses with an attempt in flight
	Known     int           // keys remembered as good
}

// Stats drops the pools that are idle, then returns the figures as they are now.
func (g *Gate) Stats() Stats {
	g.pools.buckets.Sweep(g.clock.Instant())
	g.mu.Lock()
	defer g.mu.Unlock()
	return Stats{
		Pools:     g.pools.buckets.Stats(),
		Undecided: g.pools.places.Subjects(),
		Known:     g.known.size(),
	}
}
