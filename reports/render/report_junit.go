package render

import (
	"io"

	"github.com/invoicespec/brimline/reports/record"
)

// ReportJUnit writes the gates of a report as JUnit XML: a suite for each plan
// and one for all of them, a case for each gate. A gate that could not be told
// is skipped and says what was found.
func ReportJUnit(w io.Writer, r record.Report) error {
	doc := junitSuites{Name: "brimline report", Time: junitTime(0)}
	add := func(name, class string, gates []record.ReportGate, properties ...junitProperty) {
		if len(gates) == 0 && len(properties) == 0 {
			return
		}
		suite := junitSuite{Name: name, Time: junitTime(0), Timestamp: r.Date + "T00:00:00Z", Properties: properties}
		for _, g := range gates {
			suite.add(gateCase(class, g))
		}
		doc.Tests += suite.Tests
		doc.Failures += suite.Failures
		doc.Suites = append(doc.Suites, suite)
	}
	for _, p := range r.Plans {
		add(Visible(p.Plan), "brimline.report."+junitWord(p.Plan), p.Gates,
			junitProperty{"verdict", string(p.Verdict.Word)}, junitProperty{"headline", Visible(p.Verdict.Headline)})
	}
	add("all plans", "brimline.report", r.Gates)
	return doc.write(w)
}

func gateCase(class string, g record.ReportGate) junitCase {
	k := junitCase{Class: class, Name: Visible(g.Name), Time: junitTime(0)}
	said := Visible("needed: " + g.Need + "; found: " + g.Found)
	switch g.State {
	case record.GateFails:
		k.Failure = &junitMessage{Type: string(g.State), Message: said}
	case record.GateMissing:
		k.Skipped = &junitMessage{Type: string(g.State), Message: said}
	case record.GateHolds:
		k.Output = said
	}
	return k
}
