// Package conformance judges whether a deployment keeps the limiting contract:
// it plans which scenarios of the features can be run against a target, runs
// them, and gives every clause of the contract a verdict.
//
// Most callers want [Run] with a target from package target; in a Go test,
// [Test]. [NewPlan] says what would be run, [SelfTest] whether the suite would
// notice known faults. What was found is a record.Conformance, from which
// package render makes text, JSON and JUnit.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/steps"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/features"
	"github.com/invoicespec/brimline/internal/build"
	"github.com/invoicespec/brimline/reports/record"
)

// Options say what to run and how. The zero value runs everything.
type Options struct {
	Clauses  []string      // ids of clauses; empty: all
	Strict   bool          // a DECIDED clause that is not kept fails
	Workers  int           // scenarios at a time on a clock that nobody moves; 0: 8
	Deadline time.Duration // of one scenario, by the wall clock, its wait for users included; 0: 15 minutes
	Progress func(Event)   // called after each scenario, one call at a time; nil: nobody
	Features fs.FS         // nil: the contract's own
}

// Event is one scenario that has ended, or in a self-test one fault.
type Event struct {
	Done, Of int // ended so far, and planned
	Name     string
}

// ErrSuite is a mistake of the suite itself: a sentence nobody understands, a
// scenario that was planned and not run. Nothing it says of a target counts.
var ErrSuite = errors.New("the suite itself is broken")

// Run judges t. Its error wraps [ErrSelection] when nothing could be run and
// [ErrSuite] when the suite is at fault; what a target does wrong is in the
// result. A cancelled ctx ends the run after the scenarios that are under way:
// what was not reached is not run.
func Run(ctx context.Context, t *target.Target, o Options) (record.Conformance, error) {
	if o.Features == nil {
		o.Features = features.FS
	}
	plan, err := NewPlan(t, o.Features, o.Clauses)
	if err != nil {
		return record.Conformance{}, err
	}
	started := time.Now()
	r := newRunner(t, plan, o)
	if err := r.run(ctx); err != nil {
		return record.Conformance{}, err
	}
	c := record.Conformance{
		Schema:     record.ConformanceSchema,
		Target:     describe(t),
		Brimline:   build.Version(),
		Run:        t.Run(),
		Started:    started.UTC(),
		DurationMS: time.Since(started).Milliseconds(),
		Strict:     o.Strict,
		Charged:    t.Charged(),
		Aborted:    r.aborted(),
		Selected:   o.Clauses,
		Clauses:    judge(contract.Clauses(), r.results(), o.Strict),
		Power:      record.Power{Further: []record.Further{}},
	}
	return c.Summed(), nil
}

func describe(t *target.Target) record.Target {
	d := record.Target{Description: t.Describe(), Server: t.Server(), Clock: string(t.Clock()), Plans: append([]string{}, t.Plans()...), Offers: []string{}}
	for _, m := range contract.Needs() {
		if t.Has(m.Need) {
			d.Offers = append(d.Offers, string(m.Need))
		}
	}
	return d
}

// outcome is how a scenario ended.
type outcome struct {
	Planned
	err      error // nil: all its sentences were carried out
	findings []record.Finding
	took     time.Duration
	reached  bool // false: it was planned and never begun
}

// suiteErr is what is wrong with the suite where a scenario ended in a way that
// no target can cause.
func (o outcome) suiteErr() error {
	for _, known := range []error{steps.ErrBroken, steps.ErrSetup, steps.ErrInconclusive, errInterrupted} {
		if o.err == nil || errors.Is(o.err, known) {
			return nil
		}
	}
	return fmt.Errorf("%w: %s %q: %w", ErrSuite, o.At, o.Name, o.err)
}

var errInterrupted = errors.New("interrupted")
