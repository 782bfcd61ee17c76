package conformance

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/steps"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reports/record"
)

func about(clauses ...string) Planned {
	return Planned{Name: "of " + clauses[0], At: "features/f.feature:1", Clauses: clauses}
}

func found(clauses ...string) []record.Finding {
	var all []record.Finding
	for _, c := range clauses {
		all = append(all, record.Finding{Clause: c, Field: "x"})
	}
	return all
}

func broken(clause string) error { return fmt.Errorf("%w: %s", steps.ErrBroken, clause) }

// clause is the verdict on one clause, and why.
func clause(t *testing.T, id string, strict bool, outcomes ...outcome) record.Clause {
	t.Helper()
	for _, c := range judge(contract.Clauses(), outcomes, strict) {
		if c.ID == id {
			return c
		}
	}
	t.Fatalf("no clause %s", id)
	return record.Clause{}
}

func TestVerdictOfOneScenario(t *testing.T) {
	for name, tc := range map[string]struct {
		outcome outcome
		strict  bool
		id      string
		verdict record.Verdict
		reason  string
	}{
		"kept":                          {outcome{Planned: about("RATE-1")}, false, "RATE-1", record.Pass, ""},
		"broken":                        {outcome{Planned: about("RATE-1"), err: broken("RATE-1"), findings: found("RATE-1")}, false, "RATE-1", record.Fail, ""},
		"broken and carried to its end": {outcome{Planned: about("HDR-5"), findings: found("HDR-5")}, false, "HDR-5", record.Fail, ""},
		"decided":                       {outcome{Planned: about("RATE-8"), err: broken("RATE-8"), findings: found("RATE-8")}, false, "RATE-8", record.Differs, ""},
		"decided, strictly":             {outcome{Planned: about("RATE-8"), findings: found("RATE-8")}, true, "RATE-8", record.Fail, ""},
		"must, strictly":                {outcome{Planned: about("RATE-1")}, true, "RATE-1", record.Pass, ""},
		"another broken on the way":     {outcome{Planned: about("RATE-1"), findings: found("HDR-5")}, false, "RATE-1", record.Pass, ""},
		"broke off over another":        {outcome{Planned: about("RATE-1"), err: broken("HDR-5"), findings: found("HDR-5")}, false, "RATE-1", record.Inconclusive, "broke off: HDR-5 not kept"},
		"broke off over two":            {outcome{Planned: about("RATE-1"), err: broken("HDR-5"), findings: found("HDR-5", "ERR-1", "HDR-5")}, false, "RATE-1", record.Inconclusive, "broke off: HDR-5, ERR-1 not kept"},
		"not set up":                    {outcome{Planned: about("RATE-1"), err: fmt.Errorf("%w: no user", steps.ErrSetup)}, false, "RATE-1", record.SetupFailed, "no user"},
		"not answered":                  {outcome{Planned: about("RATE-1"), err: fmt.Errorf("%w: timeout", steps.ErrInconclusive)}, false, "RATE-1", record.Inconclusive, "timeout"},
		"not run":                       {outcome{Planned: Planned{Name: "n", Clauses: []string{"RATE-1"}, NotRun: "needs hold"}}, false, "RATE-1", record.NotRun, "needs hold"},
		"declared and untrue":           {outcome{Planned: Planned{Name: "n", Clauses: []string{"RATE-1"}, NotRun: "declared, but untrue: x", Untrue: true}}, false, "RATE-1", record.Untrue, "declared, but untrue: x"},
		"found to be out of reach":      {outcome{Planned: about("RATE-1"), err: fmt.Errorf("%w: %w: a page", steps.ErrSetup, target.ErrUnsupported)}, false, "RATE-1", record.NotRun, "the target does not offer this: a page"},
		"found untrue on its way":       {outcome{Planned: about("RATE-1"), err: fmt.Errorf("%w: %w: x", steps.ErrSetup, target.ErrUntrue)}, false, "RATE-1", record.Untrue, "declared, but untrue: x"},
		"interrupted":                   {outcome{Planned: Planned{Name: "n", Clauses: []string{"RATE-1"}, NotRun: "interrupted"}, err: errInterrupted}, false, "RATE-1", record.NotRun, "interrupted"},
		"interrupted with a finding":    {outcome{Planned: Planned{Name: "n", Clauses: []string{"RATE-1"}, NotRun: "interrupted"}, err: errInterrupted, findings: found("RATE-1")}, false, "RATE-1", record.Fail, ""},
		"nobody's":                      {outcome{Planned: about("RATE-1")}, false, "RATE-2", record.NotRun, "no scenario sees it yet"},
	} {
		t.Run(name, func(t *testing.T) {
			c := clause(t, tc.id, tc.strict, tc.outcome)
			require.Equal(t, tc.verdict, c.Verdict)
			require.Equal(t, tc.reason, c.Reason)
		})
	}
}

// A finding breaks the clause it names, whichever scenario made it.
func TestFindingOfAnotherClauseFailsThatClauseInPassing(t *testing.T) {
	o := outcome{Planned: about("RATE-1"), findings: found("HDR-5")}
	c := clause(t, "HDR-5", false, o)
	require.Equal(t, record.Fail, c.Verdict)
	require.Len(t, c.Scenarios, 1)
	require.True(t, c.Scenarios[0].InPassing)
	require.Equal(t, found("HDR-5"), c.Scenarios[0].Findings)

	own := outcome{Planned: about("HDR-5")}
	c = clause(t, "HDR-5", false, own, o)
	require.Equal(t, record.Fail, c.Verdict, "its own scenario saw nothing, another did")
	require.Len(t, c.Scenarios, 2)
}

// A clause that the target is out of reach for is not judged by what came up
// elsewhere: it stays open, with what was found.
func TestFindingOfAClauseOutOfReachIsInconclusive(t *testing.T) {
	out := Planned{Name: "n", Clauses: []string{"CONC-1"}, NotRun: "needs hold", lacks: "needs hold"}
	o := outcome{Planned: about("RATE-1"), findings: found("CONC-1")}
	c := clause(t, "CONC-1", false, outcome{Planned: out}, o)
	require.Equal(t, record.Inconclusive, c.Verdict)
	require.Equal(t, "seems not to be kept; to tell for sure needs hold", c.Reason)

	out.lacks, out.NotRun = "", notSelected
	require.Equal(t, record.Fail, clause(t, "CONC-1", false, outcome{Planned: out}, o).Verdict, "in reach, though nobody asked for it")
}

func TestScenarioOfTwoClausesSpeaksForBoth(t *testing.T) {
	o := outcome{Planned: about("RATE-2", "HDR-6"), err: broken("HDR-6"), findings: found("HDR-6")}
	require.Equal(t, record.Fail, clause(t, "HDR-6", false, o).Verdict)
	require.Equal(t, record.Inconclusive, clause(t, "RATE-2", false, o).Verdict)
}

func TestVerdictOfSeveralScenarios(t *testing.T) {
	pass := outcome{Planned: about("RATE-1")}
	out := outcome{Planned: Planned{Name: "n", Clauses: []string{"RATE-1"}, NotRun: "needs hold"}}
	out2 := outcome{Planned: Planned{Name: "n", Clauses: []string{"RATE-1"}, NotRun: "needs audit"}}
	fail := outcome{Planned: about("RATE-1"), findings: found("RATE-1")}
	unsure := outcome{Planned: about("RATE-1"), err: steps.ErrInconclusive}
	unset := outcome{Planned: about("RATE-1"), err: steps.ErrSetup}
	lie := outcome{Planned: Planned{Name: "n", Clauses: []string{"RATE-1"}, NotRun: "declared, but untrue: x", Untrue: true}}
	for name, tc := range map[string]struct {
		outcomes []outcome
		verdict  record.Verdict
		reason   string
	}{
		"all pass":            {[]outcome{pass, pass}, record.Pass, ""},
		"some not run":        {[]outcome{pass, out, out, out2}, record.Pass, "partly: 3 of 4 scenarios not run: needs hold; needs audit"},
		"none run":            {[]outcome{out, out2, out}, record.NotRun, "needs hold; needs audit"},
		"one fails":           {[]outcome{pass, fail, unsure, out}, record.Fail, ""},
		"one is inconclusive": {[]outcome{pass, unsure}, record.Inconclusive, steps.ErrInconclusive.Error()},
		"one is untrue":       {[]outcome{pass, unsure, unset, lie}, record.Untrue, "declared, but untrue: x"},
		"one is not set up":   {[]outcome{pass, unsure, unset}, record.SetupFailed, steps.ErrSetup.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			c := clause(t, "RATE-1", false, tc.outcomes...)
			require.Equal(t, tc.verdict, c.Verdict)
			require.Equal(t, tc.reason, c.Reason)
		})
	}
}

func TestUnknownEndsAreMistakesOfTheSuite(t *testing.T) {
	for _, err := range []error{nil, broken("X"), steps.ErrSetup, fmt.Errorf("x: %w", steps.ErrInconclusive), errInterrupted} {
		require.NoError(t, outcome{err: err}.suiteErr())
	}
	require.ErrorIs(t, outcome{err: errors.New("panic")}.suiteErr(), ErrSuite)
}

func TestFaultIsCaughtOnlyByItsOwnClause(t *testing.T) {
	c := func(outcomes ...outcome) record.Conformance {
		return record.Conformance{Clauses: judge(contract.Clauses(), outcomes, false)}
	}
	f := Fault{Name: "retry-after-zero", Clause: "HDR-5"}

	own := (&selfTest{}).verdictOn(f, c(outcome{Planned: about("HDR-5"), findings: found("HDR-5")}))
	require.NotEmpty(t, own.Catchers())
	require.Equal(t, []record.CaughtBy{{Clause: "HDR-5", Scenario: "of HDR-5", At: "features/f.feature:1", Carries: true}}, own.By)

	passing := (&selfTest{}).verdictOn(f, c(outcome{Planned: about("RATE-1"), findings: found("HDR-5")}, outcome{Planned: about("HDR-5")}))
	require.Empty(t, passing.Catchers(), "a scenario about another clause is no proof that this one is watched")
	require.Len(t, passing.By, 1)

	blamed := (&selfTest{}).verdictOn(f, c(outcome{Planned: about("HDR-5"), findings: found("HDR-6"), err: broken("HDR-6")}))
	require.Empty(t, blamed.Catchers(), "the blame fell on another clause")
	require.Equal(t, "HDR-5 was found inconclusive: broke off: HDR-6 not kept", blamed.Reason)

	nothing := (&selfTest{}).verdictOn(f, c(outcome{Planned: about("HDR-5")}))
	require.Empty(t, nothing.Catchers())
	require.NotNil(t, nothing.By)

	decided := (&selfTest{}).verdictOn(Fault{Name: "cacheable", Clause: "ERR-4"}, c(outcome{Planned: about("ERR-4"), findings: found("ERR-4")}))
	require.NotEmpty(t, decided.Catchers(), "to differ is to be noticed")
}
