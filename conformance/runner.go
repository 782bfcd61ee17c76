package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cucumber/godog"

	"github.com/invoicespec/brimline/conformance/steps"
	"github.com/invoicespec/brimline/conformance/target"
)

// runner carries out a plan. godog matches sentences and runs them; which
// scenarios, how many at a time, and what became of them is decided here.
type runner struct {
	target  *target.Target
	suite   *steps.Suite
	options Options
	planned map[string]Planned // those to be run, by where they stand
	turns   *turns
	measure func(*steps.Scenario) func() Cost // what a scenario takes; nil: nobody asks

	mu       sync.Mutex
	outcomes map[string]outcome
	away     int    // scenarios in a row that the target was away from
	reason   string // why no more are begun
	mishap   bool   // nobody had planned for that
	order    []Planned
	begun    map[*steps.Scenario]string // the names of those that have
}

func newRunner(t *target.Target, p Plan, o Options) *runner {
	o.Workers = o.workers(t)
	o.Deadline = cmp.Or(o.Deadline, t.Patience(15*time.Minute))
	r := &runner{
		target: t, options: o,
		planned: map[string]Planned{}, outcomes: map[string]outcome{}, order: p.Scenarios,
		begun: map[*steps.Scenario]string{}, mishap: true,
	}
	r.suite = steps.NewSuite(t, r.waits)
	var order []string
	for _, s := range p.Running() {
		r.planned[s.At], order = s, append(order, s.At)
	}
	if p.order != nil {
		order = p.order
	}
	r.turns = newTurns(order, o.Workers)
	return r
}

// workers is how many scenarios run at a time.
func (o Options) workers(t *target.Target) int {
	if t.Movable() {
		return 1 // the clock is everybody's
	}
	return cmp.Or(o.Workers, 8)
}

// run runs the plan. Its error is the suite's own.
func (r *runner) run(ctx context.Context) error {
	suite := godog.TestSuite{
		Name:                "brimline",
		ScenarioInitializer: func(sc *godog.ScenarioContext) { r.scenario(ctx, sc) },
		Options: &godog.Options{
			FS: r.options.Features, Paths: r.files(),
			Format: "progress", Output: io.Discard, NoColors: true,
			Strict:      true, // as many as there are: turns says whose it is
			Concurrency: len(r.planned) + 1, DefaultContext: ctx,
		},
	}
	suite.Run() // its exit code knows less than the outcomes
	for _, s := range r.planned {
		o, ok := r.outcomes[s.At]
		if !ok {
			return fmt.Errorf("%w: %s %q was planned and not run", ErrSuite, s.At, s.Name)
		}
		if err := o.suiteErr(); err != nil {
			return err
		}
	}
	return nil
}

// files lists the feature files that hold something to be run.
func (r *runner) files() []string {
	var all []string
	for _, s := range r.order {
		name, _, _ := strings.Cut(strings.TrimPrefix(s.At, "features/"), ":")
		if s.NotRun == "" && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// scenario prepares godog for one scenario; which one shows in Before.
func (r *runner) scenario(run context.Context, sc *godog.ScenarioContext) {
	s := r.suite.New()
	s.Register(sc)
	var planned *Planned
	var started time.Time
	gone := int64(0)
	cancel, end, measured := func() {}, func() {}, func() Cost { return Cost{} }
	sc.Before(func(ctx context.Context, p *godog.Scenario) (context.Context, error) {
		item, ok := r.planned[at(p)]
		if !ok {
			return ctx, godog.ErrSkip
		}
		planned = &item
		if r.turns.begin(run, item.At) == nil {
			end = r.turns.end
		}
		started, gone = time.Now(), r.target.Gone()
		if r.measure != nil {
			measured = r.measure(s)
		}
		if err := r.stop(run); err != nil {
			return ctx, err
		}
		r.mu.Lock()
		r.begun[s] = item.Name
		r.mu.Unlock()
		clause, _ := find(Clauses(r.options.Features), item.Clauses[0])
		s.About(clause, item.rows)
		ctx, cancel = context.WithTimeout(ctx, r.options.Deadline)
		return ctx, nil
	})
	sc.After(func(ctx context.Context, _ *godog.Scenario, err error) (_ context.Context, failure error) {
		defer cancel()
		if planned == nil {
			return ctx, nil
		}
		defer end()
		defer func() { // a panic here would end the process
			if v := recover(); v != nil {
				failure = fmt.Errorf("panic: %v", v)
				r.end(outcome{Planned: *planned, err: failure})
			}
		}()
		cost := measured()
		closing, done := context.WithTimeout(context.WithoutCancel(ctx), r.target.Patience(30*time.Second))
		defer done()
		if cerr := s.Close(closing); cerr != nil && err == nil {
			err = fmt.Errorf("%w: %w", steps.ErrInconclusive, cerr)
		}
		if key := s.Refused(); key != "" && err != nil && !errors.Is(err, steps.ErrBroken) {
			err = fmt.Errorf("%w: %s is refused", err, key)
		}
		findings := s.Findings()
		if r.target.Gone() != gone && len(findings) > 0 { // whoever answered may not have been the same
			err, findings = fmt.Errorf("%w: nobody was listening for a while", steps.ErrInconclusive), nil
		}
		if over(run) && err != nil && !errors.Is(err, steps.ErrBroken) {
			err = r.stop(run)
		}
		r.end(outcome{Planned: *planned, err: err, findings: findings, took: time.Since(started), waited: s.Waited(), cost: cost, reached: !errors.Is(err, errInterrupted)})
		return ctx, nil
	})
}

// over reports whether a run is to end. What it was doing may notice that the time
// is up, and break off, a moment before its context says so.
func over(run context.Context) bool {
	if end, ok := run.Deadline(); ok && !time.Now().Before(end) {
		<-run.Done()
	}
	return run.Err() != nil
}

// stop says why no further scenario is begun.
func (r *runner) stop(run context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reason == "" && over(run) {
		r.reason = "interrupted"
		if why := leftOut(""); errors.As(context.Cause(run), &why) {
			r.reason, r.mishap = why.Error(), false
		}
		if n := r.target.Unanswered(); n > 0 {
			r.reason += fmt.Sprintf("; the latest %d requests went unanswered", n)
		}
	}
	if r.reason == "" && r.away >= 3 {
		r.reason = "the target is away"
	}
	if r.reason == "" {
		return nil
	}
	return errInterrupted
}

// end keeps what became of a scenario.
func (r *runner) end(o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.Is(o.err, target.ErrAway) {
		r.away++
	} else if o.reached {
		r.away = 0
	}
	r.outcomes[o.At] = o
	if r.options.Progress != nil {
		r.options.Progress(Event{Done: len(r.outcomes), Of: len(r.planned), Name: o.Name})
	}
}

// waits hands on that a scenario waits.
func (r *runner) waits(s *steps.Scenario, w steps.Wait) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.options.Waits != nil {
		r.options.Waits(Wait{Scenario: r.begun[s], Wait: w})
	}
}

// waited is how much of the scenarios' time was waiting.
func (r *runner) waited() (sum time.Duration) {
	for _, o := range r.outcomes {
		sum += o.waited
	}
	return sum
}

// aborted says why the run ended before its end; empty: it did not.
func (r *runner) aborted() string {
	if !r.mishap {
		return ""
	}
	return r.reason
}

// results is every scenario of the plan in its order, run or not.
func (r *runner) results() []outcome {
	var all []outcome
	for _, s := range r.order {
		if o, ok := r.outcomes[s.At]; ok {
			if errors.Is(o.err, errInterrupted) {
				o.NotRun = r.reason
			}
			all = append(all, o)
			continue
		}
		all = append(all, outcome{Planned: s})
	}
	return all
}
