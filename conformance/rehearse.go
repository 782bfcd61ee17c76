package conformance

import (
	"context"
	"errors"
	"time"

	"github.com/invoicespec/brimline/conformance/steps"
	"github.com/invoicespec/brimline/conformance/target"
)

// Cost is what a scenario takes, as its rehearsal found.
type Cost struct {
	Operations int64              `json:"operations"` // charged
	Requests   int64              `json:"requests"`
	Waits      time.Duration      `json:"waits_ns"` // until tokens are back and time has passed
	Work       time.Duration      `json:"work_ns"`  // everything else, on a server that is near
	Held       int64              `json:"held"`     // requests that are held in flight
	Rounds     int64              `json:"rounds"`   // how often that begins with nothing in flight
	Users      map[string]int     `json:"users"`    // lent, by plan
	Tokens     map[string]float64 `json:"tokens"`   // that are to come back afterwards, by plan
}

// OpenRehearsal opens a target to rehearse on: one that keeps the contract, with
// the plans of another, whose clock can be moved and that makes users. The
// function it returns ends it.
type OpenRehearsal func(ctx context.Context, like *target.Target) (*target.Target, func() error, error)

// longestRehearsal is when a rehearsal is left: what it has not got to has no
// known cost. Nothing is waited for in it, so that only huge buckets take long.
const longestRehearsal = 2 * time.Minute

// Rehearse finds out what each scenario of a plan takes on t, by running it on a
// server with the same plans on which waiting takes no time. The cost of one that
// cannot be rehearsed is not known, and stays nil; nor is anything where there is
// nowhere to rehearse, which the estimate says.
func Rehearse(ctx context.Context, t *target.Target, p Plan, open OpenRehearsal, o Options) (_ Plan, err error) {
	within, cancel := context.WithTimeout(ctx, longestRehearsal)
	defer cancel()
	stage, end, err := open(within, t)
	if err != nil {
		p.estimate(t, o)
		p.Estimate.Unrehearsed = err.Error()
		return p, ctx.Err()
	}
	defer func() { err = errors.Join(err, end()) }()
	r := newRunner(stage, p, Options{Features: o.featuresOrOurs(), Deadline: o.Deadline})
	r.measure = func(s *steps.Scenario) func() Cost { return measure(stage, s) }
	if err := r.run(within); err != nil {
		return p, err
	}
	if err := ctx.Err(); err != nil {
		return p, err
	}
	for i, s := range p.Scenarios {
		if out, ok := r.outcomes[s.At]; ok && out.err == nil {
			p.Scenarios[i].Cost = &out.cost
		}
	}
	p.estimate(t, o)
	return p, nil
}

// measure begins to measure a scenario; where time stands still it runs alone.
func measure(t *target.Target, s *steps.Scenario) func() Cost {
	charged, sent, at, began := t.Charged(), t.Sent(), t.Elapsed(), time.Now()
	held, rounds := t.Flown()
	return func() Cost {
		c := Cost{Operations: t.Charged() - charged, Requests: t.Sent() - sent, Waits: t.Elapsed() - at, Work: time.Since(began)}
		c.Held, c.Rounds = t.Flown()
		c.Held, c.Rounds = c.Held-held, c.Rounds-rounds
		c.Users, c.Tokens = s.Lent()
		return c
	}
}
