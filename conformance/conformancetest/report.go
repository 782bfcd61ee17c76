package conformancetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reports/record"
)

// Target judges a target that is open already and reports it as [Report] does.
func Target(t *testing.T, tgt *target.Target, o conformance.Options) record.Conformance {
	t.Helper()
	c, err := conformance.Run(t.Context(), tgt, o)
	if err != nil {
		t.Fatal(err)
	}
	Report(t, c)
	return c
}

// Report tells a result as one subtest per clause with one per scenario below it;
// clauses that nobody asked for are left out. What the target does not offer is
// skipped, with the reason. What could not be told fails, since a test has no
// third way to end, and so does a run in which nothing was told at all.
func Report(t *testing.T, c record.Conformance) {
	t.Helper()
	told := 0
	for _, clause := range c.Clauses {
		if len(c.Selected) > 0 && !slices.Contains(c.Selected, clause.ID) && clause.Verdict == record.NotRun {
			continue
		}
		if clause.Verdict != record.NotRun {
			told++
		}
		t.Run(clause.ID, func(t *testing.T) {
			if clause.Verdict == record.NotRun {
				t.Skipf("not run: %s", clause.Reason)
			}
			for _, s := range clause.Scenarios {
				t.Run(s.Name, func(t *testing.T) { tell(t, clause, s) })
			}
		})
	}
	if told == 0 {
		t.Error("nothing was run: this says nothing of the service")
	}
	if c.Aborted != "" {
		t.Errorf("the run ended early: %s", c.Aborted)
	}
}

// tell ends a subtest as its scenario ended.
func tell(t *testing.T, c record.Clause, s record.Scenario) {
	t.Helper()
	switch s.Verdict {
	case record.Pass:
	case record.NotRun:
		t.Skipf("not run: %s", s.Reason)
	case record.KnownFails:
		t.Skipf("known to fail: %s\n%s", c.Reason, findings(s))
	case record.Differs:
		t.Logf("differs from the reference: %s\n%s", c.Sentence, findings(s))
	case record.Fail:
		t.Errorf("%s %s\n%s", c.ID, c.Sentence, findings(s))
	default:
		t.Errorf("%s: %s", s.Verdict, s.Reason)
	}
}

func findings(s record.Scenario) string {
	var b strings.Builder
	for _, f := range s.Findings {
		fmt.Fprintf(&b, "%s\n  %s: expected %s (%s), got %s\n  %s\n", f.Step, f.Field, f.Expected, f.Ground, f.Got, f.Exchange)
	}
	return b.String()
}
