package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reference/fault"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reports/record"
)

// options are those of a run that is shown by c.
func (f checkFlags) options(c *counter) conformance.Options {
	o := conformance.Options{
		Clauses: f.clauses, Features: f.features, Strict: f.strict, Budget: f.budget,
		Rehearse: rehearsal, Progress: c.show, Waits: c.wait, Notice: c.line,
	}
	if f.quiet {
		o.Progress, o.Waits = nil, nil
	}
	return o
}

// rehearsal opens the reference with the plans of another target.
func rehearsal(ctx context.Context, like *target.Target) (*target.Target, func() error, error) {
	plans := map[string]policy.Plan{}
	for _, name := range like.Plans() {
		a, _ := like.Allowance(name)
		number := func(n int64) string { return strconv.FormatInt(n, 10) }
		plans[name] = policy.Plan{Name: name, Operations: manyOperations, Entitlements: map[policy.Dimension]string{
			policy.RequestsPerMinute: number(a.RequestsPerMinute), policy.Burst: number(a.Burst), policy.Concurrency: number(a.Concurrency),
		}}
	}
	return openReference(ctx, record.MovedClock, plans, fault.Fault{}, nil)
}

// manyOperations is more than a rehearsal charges.
const manyOperations = 1_000_000_000

// showPlan prints what would be run against t, and what that takes.
func (f checkFlags) showPlan(ctx context.Context, t *target.Target, w world) error {
	p, err := conformance.NewPlan(t, f.features, f.clauses)
	if err != nil {
		return err
	}
	o := f.options(newCounter(w.stderr, "scenarios"))
	if p, err = conformance.Rehearse(ctx, t, p, rehearsal, o); err != nil {
		return checkError(err)
	}
	p = p.Fit(t, f.budget, o)
	if f.asJSON {
		return printJSON(w.stdout, p)
	}
	fmt.Fprintf(w.stdout, "%s\n%d of %d scenarios would be run, for %d clauses\n%s\n", t.Describe(), len(p.Running()), len(p.Scenarios), len(p.Reached()), tellEstimate(*p.Estimate))
	for _, c := range conformance.Clauses(f.features) {
		for _, s := range p.Running() {
			if s.Clauses[0] == c.ID {
				fmt.Fprintln(w.stdout, planLine(t, s))
			}
		}
	}
	fmt.Fprint(w.stdout, f.notRun(p))
	return nil
}

// planLine is a scenario that would be run, and what it takes.
func planLine(t *target.Target, s conformance.Planned) string {
	line := fmt.Sprintf("  %-9s %s", s.Clauses[0], s.Name)
	if s.Cost == nil {
		return line
	}
	line = fmt.Sprintf("%-80s  %3d charged", line, s.Cost.Operations+s.Cost.Held*(t.HoldPrice(1)-1))
	if s.Cost.Waits >= time.Second && !t.Movable() {
		line += fmt.Sprintf(", waits %s", s.Cost.Waits.Round(time.Second))
	}
	return line
}

// notRun sums up what would not be run by what stands in its way; with --verbose
// each scenario has a line.
func (f checkFlags) notRun(p conformance.Plan) string {
	var b strings.Builder
	var reasons []string
	why := map[string][]conformance.Planned{}
	for _, s := range p.Scenarios {
		if s.NotRun == "" {
			continue
		}
		if why[s.NotRun] == nil {
			reasons = append(reasons, s.NotRun)
		}
		why[s.NotRun] = append(why[s.NotRun], s)
	}
	if len(reasons) > 0 {
		fmt.Fprintln(&b, "not run:")
	}
	slices.SortStableFunc(reasons, func(x, y string) int { return len(why[y]) - len(why[x]) })
	for _, reason := range reasons {
		fmt.Fprintf(&b, "  %s  %s\n", figure.Count(int64(len(why[reason])), "scenario"), reason)
		if !f.verbose {
			continue
		}
		for _, s := range why[reason] {
			fmt.Fprintf(&b, "    %-9s %s\n", s.Clauses[0], s.Name)
		}
	}
	return b.String()
}

// tellEstimate says in a few lines what a plan takes.
func tellEstimate(e conformance.Estimate) string {
	var b strings.Builder
	if e.Unrehearsed != "" {
		return "what it takes is not known: " + e.Unrehearsed
	}
	fmt.Fprintf(&b, "about %s, and at most %d operations charged of the %d that limits.max-operations allows", max(time.Second, e.Time.Round(time.Second)), e.Operations, e.MaxOperations)
	if e.Unknown > 0 {
		fmt.Fprintf(&b, "; what %d scenarios take is not known", e.Unknown)
	}
	var users []string
	for _, plan := range slices.Sorted(maps.Keys(e.Users)) {
		n := e.Users[plan]
		there := fmt.Sprintf(" (there are %d)", n.There)
		if n.There < 0 {
			there = ""
		}
		users = append(users, fmt.Sprintf("%s %d%s", plan, n.Users, there))
	}
	if len(users) > 0 {
		fmt.Fprintf(&b, "\nusers at once: %s", strings.Join(users, ", "))
	}
	return b.String()
}

// line says something once, before the run begins.
func (c *counter) line(text string) { fmt.Fprintln(c.w, text) }
