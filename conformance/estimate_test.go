package conformance_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/features"
	"github.com/invoicespec/brimline/reports/record"
)

// stage opens the reference to rehearse on: its plans are those of start.
func stage(ctx context.Context, _ *target.Target) (*target.Target, func() error, error) {
	return openFault(ctx, "")
}

// bounded is the reference over plain HTTP on a real clock, with a bound.
func bounded(t *testing.T, operations int64) *target.Target {
	t.Helper()
	r := start(t, "", nil)
	r.file.Limits.MaxOperations = operations
	return r.open(t)
}

func TestWhatARunTakesIsKnownBefore(t *testing.T) {
	t.Parallel()
	clauses := []string{"RATE-4", "HDR-1", "HDR-5", "CONC-1", "POOL-1", "ERR-2"}
	tgt := bounded(t, 0)
	p, err := conformance.NewPlan(tgt, features.FS, clauses)
	require.NoError(t, err)
	before := tgt.Sent()
	p, err = conformance.Rehearse(t.Context(), tgt, p, stage, conformance.Options{})
	require.NoError(t, err)
	require.Equal(t, before, tgt.Sent(), "a rehearsal asks the target nothing")
	require.Zero(t, p.Estimate.Unknown)
	require.Positive(t, p.Estimate.Time)
	require.Equal(t, conformance.Need{Users: 1, There: 20}, p.Estimate.Users["free"])
	for _, s := range p.Running() {
		require.Positive(t, s.Cost.Requests, s.At)
	}
	c, err := conformance.Run(t.Context(), tgt, conformance.Options{Clauses: clauses})
	require.NoError(t, err)
	requireKept(t, c)
	require.LessOrEqual(t, c.Charged, p.Estimate.Operations)
	require.Greater(t, 3*c.Charged, p.Estimate.Operations, "at most is not a guess at the worst")
}

// Where all scenarios share one address, those that begin with its whole pool wait
// for one another, and a plan says so.
func TestOneAddressTakesItsTime(t *testing.T) {
	t.Parallel()
	plan := func(addresses bool) conformance.Plan {
		r := start(t, "", nil)
		if !addresses {
			r.file.Can.Addresses = nil
		}
		tgt := r.open(t)
		p, err := conformance.NewPlan(tgt, features.FS, []string{"AUTH-1", "ANON-1"})
		require.NoError(t, err)
		p, err = conformance.Rehearse(t.Context(), tgt, p, stage, conformance.Options{})
		require.NoError(t, err)
		return p
	}
	own, shared := plan(true), plan(false)
	require.NotEmpty(t, shared.Running())
	require.Greater(t, shared.Estimate.Time, own.Estimate.Time+20*time.Second, "ten attempts come back in twenty seconds")
}

func TestNothingIsKnownWithoutAStage(t *testing.T) {
	tgt := start(t, control.ClockFrozen, nil).open(t)
	p, err := conformance.NewPlan(tgt, features.FS, []string{"RATE-1"})
	require.NoError(t, err)
	p, err = conformance.Rehearse(t.Context(), tgt, p, func(context.Context, *target.Target) (*target.Target, func() error, error) {
		return nil, nil, errors.New("no stage here")
	}, conformance.Options{})
	require.NoError(t, err)
	require.Equal(t, "no stage here", p.Estimate.Unrehearsed)
	require.Equal(t, len(p.Running()), p.Estimate.Unknown)
}

// several clauses cost enough for something to be left out.
func several() []string {
	return []string{"RATE-1", "RATE-4", "RATE-8", "HDR-1", "HDR-3", "HDR-5", "HDR-6", "CONC-1", "CONC-2", "ERR-1", "ERR-2", "POOL-1"}
}

func TestWhatDoesNotFitIsLeftOut(t *testing.T) {
	t.Parallel()
	tgt := bounded(t, 60)
	var said []string
	c, err := conformance.Run(t.Context(), tgt, conformance.Options{
		Clauses: several(), Rehearse: stage, Notice: func(text string) { said = append(said, text) },
	})
	require.NoError(t, err)
	requireKept(t, c)
	require.LessOrEqual(t, c.Charged, int64(60))
	require.Len(t, said, 1)
	require.Contains(t, said[0], "of 60 that limits.max-operations allows")
	require.Zero(t, c.Counts.SetupFailed, "what is begun has its operations")
	require.Greater(t, c.Counts.Pass, 3)
	require.Contains(t, reasonsOf(c), "left out: limits.max-operations of 60 goes to what tells more")
	require.Empty(t, c.Aborted)
	require.Equal(t, record.ResultPartial, c.Result)
}

func TestMostTellingFirst(t *testing.T) {
	tgt := bounded(t, 0)
	all, err := conformance.NewPlan(tgt, features.FS, several())
	require.NoError(t, err)
	for i := range all.Scenarios { // eight at a time
		all.Scenarios[i].Cost = &conformance.Cost{Waits: 10 * time.Second}
	}
	const budget = 25 * time.Second
	p := all.Fit(tgt, budget, conformance.Options{})
	require.LessOrEqual(t, p.Estimate.Time, budget)
	require.Less(t, len(p.Running()), len(all.Running()))
	require.ElementsMatch(t, all.Reached(), p.Reached(), "a first look at everything comes before a second one")
	require.Len(t, p.Left(), len(all.Running())-len(p.Running()))
	require.Equal(t, "left out: the budget of 25s goes to what tells more", p.Left()[0].NotRun)

	slow := slices.IndexFunc(p.Scenarios, func(s conformance.Planned) bool { return s.NotRun == "" })
	all.Scenarios[slow].Cost = &conformance.Cost{Waits: time.Hour}
	require.NotEmpty(t, all.Fit(tgt, budget, conformance.Options{}).Scenarios[slow].NotRun)
	require.Empty(t, all.Fit(tgt, 24*time.Hour, conformance.Options{}).Left(), "everything fits into a day")
}

func TestABudgetThatIsOverEndsTheRun(t *testing.T) {
	t.Parallel()
	c, err := conformance.Run(t.Context(), bounded(t, 0), conformance.Options{Budget: 2 * time.Second, Clauses: []string{"RATE-2", "RATE-10", "ERR-3"}})
	require.NoError(t, err)
	require.Empty(t, c.Aborted, "that is no mishap")
	require.Zero(t, c.Counts.Inconclusive, reasonsOf(c))
	require.Contains(t, reasonsOf(c), "left out: the budget of 2s is over")
}

func TestWaitsAreTold(t *testing.T) {
	t.Parallel()
	var told atomic.Int32
	c, err := conformance.Run(t.Context(), bounded(t, 0), conformance.Options{Clauses: []string{"HDR-6", "CONC-1"}, Waits: func(w conformance.Wait) {
		told.Add(1)
		if w.Scenario == "" || w.What == "" {
			t.Errorf("a wait that says too little: %+v", w)
		}
	}})
	require.NoError(t, err)
	requireKept(t, c)
	require.Positive(t, told.Load())
	require.Positive(t, c.WaitedMS)
}

func reasonsOf(c record.Conformance) string {
	var all []string
	for _, cl := range c.Clauses {
		all = append(all, cl.Reason)
	}
	return strings.Join(all, "\n")
}
