package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/features"
	"github.com/invoicespec/brimline/internal/build"
	"github.com/invoicespec/brimline/reports/record"
)

// Fault is a server that is wrong in one way, against one clause.
type Fault struct {
	Name   string
	Clause string
}

// OpenFault opens a target that has a fault; no name: one that has none. The
// function it returns ends the target and the server behind it.
type OpenFault func(ctx context.Context, name string) (*target.Target, func() error, error)

// Meeting says which clauses' scenarios a wrong server meets; none: all.
type Meeting func(Fault) []string

// ItsClause has a fault meet the scenarios that can catch it, and no others.
func ItsClause(f Fault) []string { return []string{f.Clause} }

// EveryClause has it meet the whole suite, so that it shows who else notices.
func EveryClause(Fault) []string { return nil }

// sideBySide is how many servers are judged at a time: most of a scenario's time
// is waiting.
const sideBySide = 16

// SelfTest runs the suite against a correct server, and against one wrong server
// per fault as much of it as meets says. A fault counts as caught only by a
// scenario that carries its clause and found that clause broken. Several servers
// are judged side by side, o.Workers of them. A cancelled ctx ends it with what
// it has: the faults that were not reached say so.
func SelfTest(ctx context.Context, faults []Fault, open OpenFault, meets Meeting, o Options) (record.SelfTest, error) {
	if len(faults) == 0 {
		return record.SelfTest{}, fmt.Errorf("%w: no fault to look for", ErrSelection)
	}
	if o.Features == nil {
		o.Features = features.FS
	}
	needs, err := needsOf(o.Features)
	if err != nil {
		return record.SelfTest{}, err
	}
	t := selfTest{open: open, meets: meets, options: o, needs: needs, done: make([]record.Fault, len(faults)), started: time.Now()}
	for i, f := range faults {
		t.done[i] = record.Fault{Name: f.Name, Clause: f.Clause, By: []record.CaughtBy{}, Reason: "not run: interrupted"}
	}
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(cmp.Or(o.Workers, sideBySide))
	group.Go(func() error { return t.correct(gctx) })
	for _, i := range longestFirst(faults) {
		group.Go(func() error { return t.wrong(gctx, i, faults[i]) })
	}
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		return record.SelfTest{}, err
	}
	return t.result(ctx), nil
}

// selfTest is a self-test under way.
type selfTest struct {
	open    OpenFault
	meets   Meeting
	options Options
	needs   map[string][]string // of a scenario, by where it stands
	started time.Time

	mu      sync.Mutex
	alarms  []record.CaughtBy // of the correct server
	setting record.Setting
	done    []record.Fault // as the faults are ordered
	ended   int
}

// correct judges the correct server.
func (t *selfTest) correct(ctx context.Context) error {
	c, err := t.against(ctx, "", t.options.Clauses)
	if err != nil {
		return fmt.Errorf("the correct server: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.alarms, t.setting = t.caughtBy(c), settingOf(c.Target.Offers)
	return nil
}

// wrong judges the server of one fault.
func (t *selfTest) wrong(ctx context.Context, i int, f Fault) error {
	c, err := t.against(ctx, f.Name, t.meets(f))
	if err != nil && !errors.Is(err, ErrSelection) {
		return fmt.Errorf("fault %s: %w", f.Name, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done[i] = t.verdictOn(f, c)
	if err != nil { // on such a target nobody can look
		t.done[i].Reason = err.Error()
	}
	t.ended++
	if t.options.Progress != nil {
		t.options.Progress(Event{Done: t.ended, Of: len(t.done), Name: f.Name})
	}
	return nil
}

// against runs the suite against one server, from start to end.
func (t *selfTest) against(ctx context.Context, fault string, clauses []string) (c record.Conformance, err error) {
	if err := ctx.Err(); err != nil {
		return c, err
	}
	tgt, end, err := t.open(ctx, fault)
	for range 3 { // where many servers keep one machine busy, one may seem to be away
		if !errors.Is(err, target.ErrAway) {
			break
		}
		tgt, end, err = t.open(ctx, fault)
	}
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, end()) }()
	c, err = Run(ctx, tgt, Options{Clauses: clauses, Features: t.options.Features, Deadline: t.options.Deadline})
	if err == nil && c.Aborted != "" {
		err = errors.New(c.Aborted)
	}
	return c, err
}

// verdictOn is what gave a fault away, or why nothing did.
func (t *selfTest) verdictOn(f Fault, c record.Conformance) record.Fault {
	out := record.Fault{Name: f.Name, Clause: f.Clause, DurationMS: c.DurationMS, By: t.caughtBy(c)}
	if len(out.Catchers()) > 0 {
		return out
	}
	for _, cl := range c.Clauses {
		if cl.ID == f.Clause {
			out.Reason = strings.TrimSuffix(fmt.Sprintf("%s was found %s: %s", cl.ID, cl.Verdict, cl.Reason), ": ")
		}
	}
	return out
}

// caughtBy lists every scenario that found a clause broken.
func (t *selfTest) caughtBy(c record.Conformance) []record.CaughtBy {
	all := []record.CaughtBy{}
	for _, cl := range c.Clauses {
		for _, s := range cl.Scenarios {
			if s.Verdict == record.Fail || s.Verdict == record.Differs {
				all = append(all, record.CaughtBy{Clause: cl.ID, Scenario: s.Name, At: s.At, Carries: !s.InPassing, Needs: t.needs[s.At]})
			}
		}
	}
	return all
}

// result sums up what there is.
func (t *selfTest) result(ctx context.Context) record.SelfTest {
	st := record.KillTable(t.setting, t.done)
	st.Brimline, st.DurationMS = build.Version(), time.Since(t.started).Milliseconds()
	st.Correct = append(st.Correct, t.alarms...)
	switch {
	case ctx.Err() != nil:
		st.Aborted, st.Result = "interrupted", record.ResultPartial
	case len(st.Correct) > 0:
		st.Result = record.ResultFailure
	}
	return st
}

// needsOf is what each scenario asks of a target, by where it stands.
func needsOf(features fs.FS) (map[string][]string, error) {
	all, err := scenarios(features)
	if err != nil {
		return nil, err
	}
	needs := map[string][]string{}
	for _, s := range all {
		needs[s.At] = []string{}
		for _, n := range s.Needs {
			needs[s.At] = append(needs[s.At], string(n))
		}
	}
	return needs, nil
}

// longestFirst is the order in which faults are begun: what asks much of a target
// takes long, servers that are processes above all, and would be waited for alone
// at the end.
func longestFirst(faults []Fault) []int {
	order := make([]int, len(faults))
	weight := make([]int, len(faults))
	for i, f := range faults {
		c, _ := contract.FindClause(f.Clause)
		order[i], weight[i] = i, len(c.Needs)
		if slices.Contains(c.Needs, contract.NeedProcess) {
			weight[i] += len(contract.Needs())
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weight[b], weight[a]) })
	return order
}
