package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reports/record"
)

// Test runs the suite in a Go test and reports it as one subtest per clause with
// one per scenario below it. What the target does not offer is skipped, with the
// reason; what could not be told fails, since a test has no third way to end.
func Test(t *testing.T, tgt *target.Target, o Options) record.Conformance {
	t.Helper()
	c, err := Run(t.Context(), tgt, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, clause := range c.Clauses {
		t.Run(clause.ID, func(t *testing.T) {
			if clause.Verdict == record.NotRun {
				t.Skipf("not run: %s", clause.Reason)
			}
			for _, s := range clause.Scenarios {
				t.Run(s.Name, func(t *testing.T) { tell(t, clause, s) })
			}
		})
	}
	return c
}

// tell ends a subtest as its scenario ended.
func tell(t *testing.T, c record.Clause, s record.Scenario) {
	t.Helper()
	switch s.Verdict {
	case record.Pass:
	case record.NotRun:
		t.Skipf("not run: %s", s.Reason)
	case record.Differs:
		t.Logf("differs from the reference: %s", c.Sentence)
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
