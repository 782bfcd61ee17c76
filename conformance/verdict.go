package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/steps"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reports/record"
)

// judge gives every clause its verdict.
//
// A finding breaks the clause that it names, whichever scenario it was made in.
// Where the target is out of reach for all scenarios of that clause, it is not
// known whether that clause's state of affairs was there at all: such a finding
// leaves the clause inconclusive.
// A scenario that found its own clause kept and another broken is a pass for
// the one and, in passing, a failure for the other. A scenario that broke off
// over another clause tells nothing of its own.
func judge(clauses []contract.Clause, outcomes []outcome, strict bool) []record.Clause {
	var all []record.Clause
	for _, c := range clauses {
		rc := record.Clause{ID: c.ID, Level: string(c.Level), Group: c.Group, Sentence: c.Sentence, Decision: c.Decision, Scenarios: []record.Scenario{}}
		for _, o := range outcomes {
			if s, concerned := o.of(c, strict); concerned {
				if lacks := outOfReach(c, outcomes); lacks != "" && len(s.Findings) > 0 {
					s.Verdict, s.Reason = record.Inconclusive, "seems not to be kept; to tell for sure "+lacks
				}
				rc.Scenarios = append(rc.Scenarios, s)
			}
		}
		rc.Verdict, rc.Reason = sum(rc.Scenarios)
		if slices.Contains(c.Needs, contract.NeedReference) && len(rc.Scenarios) == 0 {
			rc.Reason = "not to be seen from outside"
		}
		all = append(all, rc)
	}
	return all
}

// outOfReach says why none of a clause's scenarios can be run on this target;
// empty: one can, or there is none.
func outOfReach(c contract.Clause, outcomes []outcome) string {
	var why []string
	for _, o := range outcomes {
		switch {
		case !slices.Contains(o.Clauses, c.ID):
		case o.lacks == "":
			return ""
		case !slices.Contains(why, o.lacks):
			why = append(why, o.lacks)
		}
	}
	return strings.Join(why, "; ")
}

// of is what the scenario says of a clause; false: nothing.
func (o outcome) of(c contract.Clause, strict bool) (record.Scenario, bool) {
	s := record.Scenario{Name: o.Name, At: o.At, DurationMS: o.took.Milliseconds(), InPassing: !slices.Contains(o.Clauses, c.ID)}
	for _, f := range o.findings {
		if f.Clause == c.ID {
			s.Findings = append(s.Findings, f)
		}
	}
	switch {
	case len(s.Findings) > 0 && c.Level == contract.Decided && !strict:
		s.Verdict = record.Differs
	case len(s.Findings) > 0:
		s.Verdict = record.Fail
	case s.InPassing:
		return s, false
	case o.Untrue:
		s.Verdict, s.Reason = record.Untrue, o.NotRun
	case o.NotRun != "":
		s.Verdict, s.Reason, s.OutOfReach = record.NotRun, o.NotRun, o.lacks != ""
	case o.err == nil:
		s.Verdict = record.Pass
	case errors.Is(o.err, steps.ErrBroken):
		s.Verdict, s.Reason = record.Inconclusive, "broke off: "+o.others()
	case errors.Is(o.err, target.ErrUntrue):
		s.Verdict, s.Reason = record.Untrue, reason(o.err, steps.ErrSetup)
	case errors.Is(o.err, steps.ErrRoom):
		s.Verdict, s.Reason = record.NotRun, reason(o.err, steps.ErrRoom)
	case errors.Is(o.err, target.ErrUnsupported):
		s.Verdict, s.Reason = record.NotRun, reason(o.err, steps.ErrSetup)
	case errors.Is(o.err, steps.ErrSetup):
		s.Verdict, s.Reason = record.SetupFailed, reason(o.err, steps.ErrSetup)
	default:
		s.Verdict, s.Reason = record.Inconclusive, reason(o.err, steps.ErrInconclusive)
	}
	return s, true
}

// others says which clauses were found broken.
func (o outcome) others() string {
	var ids []string
	for _, f := range o.findings {
		if !slices.Contains(ids, f.Clause) {
			ids = append(ids, f.Clause)
		}
	}
	if len(ids) == 0 {
		return reason(o.err, steps.ErrBroken)
	}
	return strings.Join(ids, ", ") + " not kept"
}

// reason is err without the kind of error that the verdict says anyway.
func reason(err, kind error) string { return strings.TrimPrefix(err.Error(), kind.Error()+": ") }

// sum makes one verdict of a clause's scenarios: the worst there is, except that
// what was not run is only a remark beside what was.
func sum(scenarios []record.Scenario) (record.Verdict, string) {
	if len(scenarios) == 0 {
		return record.NotRun, "no scenario sees it yet"
	}
	for _, v := range record.Verdicts() {
		i := slices.IndexFunc(scenarios, func(s record.Scenario) bool { return s.Verdict == v })
		if i < 0 {
			continue
		}
		switch v {
		case record.Pass:
			return v, partly(scenarios)
		case record.NotRun:
			return v, strings.Join(reasons(scenarios), "; ")
		}
		return v, scenarios[i].Reason
	}
	return record.NotRun, ""
}

// partly says what keeps a clause from having been judged in full.
func partly(scenarios []record.Scenario) string {
	out := 0
	for _, s := range scenarios {
		if s.Verdict == record.NotRun {
			out++
		}
	}
	if out == 0 {
		return ""
	}
	return fmt.Sprintf("partly: %d of %d scenarios not run: %s", out, len(scenarios), strings.Join(reasons(scenarios), "; "))
}

// reasons lists why scenarios were not run, each reason once.
func reasons(scenarios []record.Scenario) []string {
	var all []string
	for _, s := range scenarios {
		if s.Verdict == record.NotRun && !slices.Contains(all, s.Reason) {
			all = append(all, s.Reason)
		}
	}
	return all
}
