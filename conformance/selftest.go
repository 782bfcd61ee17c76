package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/invoicespec/brimline/conformance/target"
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

// SelfTest runs the suite against a correct server and against one wrong server
// per fault. A fault counts as caught only by a scenario that carries its clause
// and found that clause broken. Several servers are run side by side, o.Workers
// of them. A cancelled ctx ends it with what it has: the faults that were not
// reached say so.
func SelfTest(ctx context.Context, faults []Fault, open OpenFault, o Options) (record.SelfTest, error) {
	if len(faults) == 0 {
		return record.SelfTest{}, fmt.Errorf("%w: no fault to look for", ErrSelection)
	}
	started := time.Now()
	st := record.SelfTest{Schema: record.SelfTestSchema, Brimline: build.Version(), Faults: make([]record.Fault, len(faults)), Correct: []record.CaughtBy{}}
	correct, err := against(ctx, "", open, o)
	if err != nil {
		return st, fmt.Errorf("the correct server: %w", err)
	}
	st.Correct = append(st.Correct, caughtBy(correct)...)

	var mu sync.Mutex
	done := 0
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(cmp.Or(o.Workers, 4))
	for i, f := range faults {
		group.Go(func() error {
			c, err := against(gctx, f.Name, open, o)
			mu.Lock()
			defer mu.Unlock()
			if ctx.Err() != nil {
				st.Faults[i] = record.Fault{Name: f.Name, Clause: f.Clause, By: []record.CaughtBy{}, Reason: "not run: interrupted"}
				st.Aborted = "interrupted"
				return nil
			}
			if err != nil {
				return fmt.Errorf("fault %s: %w", f.Name, err)
			}
			st.Faults[i] = verdictOn(f, c)
			if done++; o.Progress != nil {
				o.Progress(Event{Done: done, Of: len(faults), Name: f.Name})
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return st, err
	}
	st.Result = record.ResultSuccess
	for _, f := range st.Faults {
		if f.Caught {
			st.Caught++
		}
	}
	switch {
	case st.Aborted != "":
		st.Result = record.ResultPartial
	case st.Caught < len(faults) || len(st.Correct) > 0:
		st.Result = record.ResultFailure
	}
	st.DurationMS = time.Since(started).Milliseconds()
	return st, nil
}

// against runs the suite against one server, from start to end.
func against(ctx context.Context, fault string, open OpenFault, o Options) (c record.Conformance, err error) {
	t, end, err := open(ctx, fault)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, end()) }()
	c, err = Run(ctx, t, Options{Clauses: o.Clauses, Features: o.Features, Deadline: o.Deadline})
	if err == nil && c.Aborted != "" {
		err = errors.New(c.Aborted)
	}
	return c, err
}

// verdictOn says whether a fault was caught.
func verdictOn(f Fault, c record.Conformance) record.Fault {
	out := record.Fault{Name: f.Name, Clause: f.Clause, By: append([]record.CaughtBy{}, caughtBy(c)...)}
	for _, by := range out.By {
		out.Caught = out.Caught || by.Carries && by.Clause == f.Clause
	}
	if out.Caught {
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
func caughtBy(c record.Conformance) []record.CaughtBy {
	var all []record.CaughtBy
	for _, cl := range c.Clauses {
		for _, s := range cl.Scenarios {
			if s.Verdict == record.Fail || s.Verdict == record.Differs {
				all = append(all, record.CaughtBy{Clause: cl.ID, Scenario: s.Name, At: s.At, Carries: !s.InPassing})
			}
		}
	}
	return all
}
