// Package conformance judges whether a deployment keeps the limiting contract:
// it plans which scenarios of the features can be run against a target, runs
// them, and gives every clause of the contract a verdict.
//
// Most callers want [Run] with a target from package target: target.ReadFile and
// target.Open, or a target.File composed in code with its keys in memory. In a Go
// test, package conformancetest starts the handler and reports subtests. [NewPlan]
// says what would be run, [SelfTest] whether the suite would notice known faults.
// What was found is a record.Conformance, from which package render makes text,
// HTML, Markdown and JUnit.
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
	Features fs.FS         // nil: the contract's; [ReadOwn] adds somebody's own
	Budget   time.Duration // run what fits, most telling first; 0: everything
	Rehearse OpenRehearsal // where to find out what fits; nil: what is over the budget is found out by the clock
	Notice   func(string)  // called before the first request with what will be left out, and why; nil: nobody
	Waits    func(Wait)    // called as a wait begins that takes more than a few seconds, one call at a time; nil: nobody
}

// Wait is a scenario that waits.
type Wait struct {
	Scenario string
	steps.Wait
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
func Run(ctx context.Context, t *target.Target, o Options) (_ record.Conformance, err error) {
	defer func() { err = t.Conceal(err) }()
	o.Features = o.featuresOrOurs()
	plan, err := NewPlan(t, o.Features, o.Clauses)
	if err != nil {
		return record.Conformance{}, err
	}
	if plan, err = o.fit(ctx, t, plan); err != nil {
		return record.Conformance{}, err
	}
	if o.Budget > 0 {
		var over context.CancelFunc
		ctx, over = context.WithTimeoutCause(ctx, o.Budget, leftOut(leftOutMark+"the budget of "+tellTime(o.Budget)+" is over"))
		defer over()
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
		WaitedMS:   r.waited().Milliseconds(),
		Selected:   o.Clauses,
		Clauses:    judge(Clauses(o.Features), r.results(), o.Strict),
	}
	c.Power = power(kills(), c, r.results())
	return c.Retold(func(text string) string { return t.Excerpt(text, mostText) }).Summed(), nil
}

// mostText bounds every single text of a result, in bytes.
const mostText = 4 << 10

// fit leaves out of a plan what is over the budget, or over max-operations where
// the target file sets a bound of its own.
func (o Options) fit(ctx context.Context, t *target.Target, p Plan) (Plan, error) {
	bounded := o.Budget > 0 || t.BoundsOperations()
	if o.Rehearse != nil && bounded {
		var err error
		if p, err = Rehearse(ctx, t, p, o.Rehearse, o); err != nil {
			return p, err
		}
	}
	if bounded {
		whole := p
		p = p.Fit(t, o.Budget, o)
		if left := len(whole.Running()) - len(p.Running()); left > 0 && o.Notice != nil {
			o.Notice(p.tellLeft(whole, left))
		}
	}
	if len(p.Running()) == 0 {
		return p, fmt.Errorf("%w: %s", ErrSelection, p.whyEmpty())
	}
	return p, nil
}

func (o Options) featuresOrOurs() fs.FS {
	if o.Features == nil {
		return features.FS
	}
	return o.Features
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
	waited   time.Duration
	cost     Cost
	reached  bool // false: it was planned and never begun
}

// suiteErr is what is wrong with the suite where a scenario ended in a way that
// no target can cause.
func (o outcome) suiteErr() error {
	for _, known := range []error{steps.ErrBroken, steps.ErrSetup, steps.ErrRoom, steps.ErrInconclusive, errInterrupted} {
		if o.err == nil || errors.Is(o.err, known) {
			return nil
		}
	}
	return fmt.Errorf("%w: %s %q: %w", ErrSuite, o.At, o.Name, o.err)
}

// leftOut is why what a run did not get to was left out, where that is no mishap.
type leftOut string

func (l leftOut) Error() string { return string(l) }

var errInterrupted = errors.New("interrupted")
