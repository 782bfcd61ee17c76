package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reports/record"
)

// looked is a scenario of a clause that came to a verdict.
func looked(clause, name string, v record.Verdict, needs ...contract.Need) (record.Clause, outcome) {
	o := outcome{Planned: Planned{Name: name, Clauses: []string{clause}, Needs: needs}}
	return record.Clause{ID: clause, Scenarios: []record.Scenario{{Name: name, Verdict: v}}}, o
}

func TestPowerIsOfThisRun(t *testing.T) {
	caught := func(setting record.Setting, names ...string) map[record.Setting][]string {
		return map[record.Setting][]string{setting: names}
	}
	const moved, plain = record.MovedClock, record.PlainHTTP
	clock := []string{"http", "clock"}
	for name, tc := range map[string]struct {
		offers  []string
		verdict record.Verdict
		notRun  string
		lacks   string
		needs   []contract.Need
		by      map[record.Setting][]string
		want    record.Power
	}{
		"a pass":              {offers: clock, verdict: record.Pass, by: caught(moved, "s"), want: record.Power{Detectable: 1}},
		"a failure":           {offers: clock, verdict: record.Fail, by: caught(moved, "s"), want: record.Power{Detectable: 1}},
		"a difference":        {offers: clock, verdict: record.Differs, by: caught(moved, "s"), want: record.Power{Detectable: 1}},
		"no answer":           {offers: clock, verdict: record.Inconclusive, by: caught(moved, "s"), want: record.Power{Unanswered: 1}},
		"not set up":          {offers: clock, verdict: record.SetupFailed, by: caught(moved, "s"), want: record.Power{Unanswered: 1}},
		"interrupted":         {offers: clock, verdict: record.NotRun, notRun: "interrupted", by: caught(moved, "s"), want: record.Power{Unanswered: 1}},
		"nobody asked":        {offers: clock, verdict: record.NotRun, notRun: notSelected, by: caught(moved, "s"), want: record.Power{Unselected: 1}},
		"a pass of another":   {offers: clock, verdict: record.Pass, by: caught(moved, "another"), want: record.Power{Unseen: 1}},
		"out of reach":        {offers: clock, verdict: record.NotRun, notRun: "needs hold", lacks: "needs hold", needs: []contract.Need{contract.NeedHold}, by: caught(moved, "s"), want: record.Power{Further: []record.Further{{Needs: []string{"hold"}, Faults: 1}}}},
		"nobody on the plan":  {offers: clock, verdict: record.NotRun, notRun: "no user", lacks: "no user", by: caught(moved, "s"), want: record.Power{Further: []record.Further{{Needs: []string{"plans"}, Faults: 1}}}},
		"seen elsewhere only": {offers: []string{"http"}, verdict: record.Pass, by: caught(moved, "s"), want: record.Power{Further: []record.Further{{Needs: []string{"clock"}, Faults: 1}}}},
		"a pass over HTTP":    {offers: []string{"http"}, verdict: record.Pass, by: caught(plain, "s"), want: record.Power{Detectable: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c, o := looked("HDR-5", "s", tc.verdict, tc.needs...)
			o.NotRun, o.lacks = tc.notRun, tc.lacks
			run := record.Conformance{Target: record.Target{Offers: tc.offers}, Clauses: []record.Clause{c}}
			got := power([]Kill{{Fault: "f", Clause: "HDR-5", By: tc.by}}, run, []outcome{o})
			tc.want.Known, tc.want.Measured = 1, settingOf(tc.offers)
			if tc.want.Further == nil {
				tc.want.Further = []record.Further{}
			}
			require.Equal(t, tc.want, got)
		})
	}
}

// What a scenario about another clause saw in passing is nothing that it looks for.
func TestPowerDoesNotRestOnWhatWasSeenInPassing(t *testing.T) {
	c, o := looked("HDR-5", "s", record.Fail)
	c.Scenarios[0].InPassing = true
	run := record.Conformance{Target: record.Target{Offers: []string{"clock"}}, Clauses: []record.Clause{c}}
	o.Clauses = []string{"RATE-1"}
	require.Zero(t, power([]Kill{{Fault: "f", Clause: "HDR-5", By: map[record.Setting][]string{record.MovedClock: {"s"}}}}, run, []outcome{o}).Detectable)
}

// The means that tell most come first, and each fault is counted once.
func TestPowerNamesTheMostTellingMeansFirst(t *testing.T) {
	known := []Kill{}
	var run record.Conformance
	run.Target.Offers = []string{"clock"}
	var outcomes []outcome
	for i, needs := range [][]contract.Need{{contract.NeedHold}, {contract.NeedAudit}, {contract.NeedAudit}, {contract.NeedAudit, contract.NeedHold}} {
		clause := contract.Clauses()[i].ID
		c, o := looked(clause, "s", record.NotRun, needs...)
		o.NotRun, o.lacks = "needs", "needs"
		run.Clauses, outcomes = append(run.Clauses, c), append(outcomes, o)
		known = append(known, Kill{Fault: clause, Clause: clause, By: map[record.Setting][]string{record.MovedClock: {"s"}}})
	}
	p := power(known, run, outcomes)
	require.Equal(t, []record.Further{{Needs: []string{"audit"}, Faults: 2}, {Needs: []string{"hold"}, Faults: 1}, {Needs: []string{"hold", "audit"}, Faults: 1}}, p.Further)
	require.Equal(t, 4, p.Known)
}
