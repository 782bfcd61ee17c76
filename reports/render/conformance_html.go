package render

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

//go:embed conformance.html.tmpl
var conformancePage string

//go:embed conformance.css
var conformanceStyle string

var conformanceTemplate = pageTemplate("conformance", conformancePage, conformanceFuncs())

// ConformanceHTML writes a run of the suite as one page that asks the network
// for nothing and runs no script: each clause with its sentence, its verdict,
// its scenarios and what was not as it has to be. It can be sifted by verdict,
// and each clause has an address of its own: its id.
func ConformanceHTML(w io.Writer, c record.Conformance) error {
	return conformanceTemplate.Execute(w, struct {
		record.Conformance
		Page htmlPage
	}{c, newPage("Rate limits: "+string(c.Result), conformanceStyle, sieve())})
}

// sieve is the style that hides what was not asked for. A clause that a link
// leads to is shown all the same.
func sieve() string {
	var b strings.Builder
	for _, v := range record.Verdicts() {
		fmt.Fprintf(&b, "main:has(#show-%s:checked) :is(.clause:not(.is-%[1]s, :target), .group:not(:has(> .clause.is-%[1]s, > .clause:target))) { display: none; }\n", v)
	}
	return b.String()
}

func conformanceFuncs() template.FuncMap {
	return template.FuncMap{
		"visible": Visible, "capital": capital, "mark": mark, "word": word, "power": PowerText, "day": day,
		"describe": func(text string) []string { return strings.Split(text, "  ") },
		"headline": headline, "told": toldAll, "counts": countsOf, "groups": clauseGroups, "unjudged": unjudgedGroups, "facts": facts,
		"allChanges": changesInAll, "inOrder": inOrder, "kind": kindWord, "fromTo": fromTo,
		"broken": brokenIn, "also": alsoLine, "shown": shownFindings, "hidden": func(list []record.Finding) int { return len(list) - len(shownFindings(list)) },
		"scenarios": scenariosLine, "took": briefly, "lines": visibleLines,
	}
}

// brokenIn is the scenarios that found a clause broken, those that are about it
// first.
func brokenIn(c record.Clause) (list []record.Scenario) {
	for _, passing := range []bool{false, true} {
		for _, s := range c.Scenarios {
			if len(s.Findings) > 0 && s.InPassing == passing {
				list = append(list, s)
			}
		}
	}
	return list
}

func alsoLine(list []record.Scenario) string {
	return "found by " + figure.Count(int64(len(list)), "more scenario")
}

// maxShownFindings is how many findings of one scenario a page shows.
const maxShownFindings = 3

func shownFindings(list []record.Finding) []record.Finding {
	return list[:min(len(list), maxShownFindings)]
}

// headline says in a sentence what was found.
func headline(c record.Conformance) string {
	n := c.Counts
	judged := n.Pass + n.Fail + n.Stale + n.KnownFails + n.Differs
	all := figure.Count(int64(len(c.Clauses)-len(nobodyAsked(c))), "clause")
	switch {
	case n.Fail > 0:
		return fmt.Sprintf("Of %s judged, %d %s not kept", figure.Count(int64(judged), "clause"), n.Fail, isOrAre(n.Fail))
	case n.Stale > 0:
		return "The list of known failures is out of date"
	case judged == 0:
		return "Nothing could be judged"
	case c.Result == record.ResultSuccess && n.Differs == 0:
		return "All of " + all + " kept"
	case c.Result == record.ResultSuccess:
		return fmt.Sprintf("All of %s judged and none failed", all)
	}
	return fmt.Sprintf("None failed; %d of %s judged", judged, all)
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// toldOf is the clauses of one verdict that a reader is told of first.
type toldOf struct {
	Verdict record.Verdict
	Says    string
	Clauses []string
}

func toldAll(c record.Conformance) (list []toldOf) {
	says := map[record.Verdict]string{
		record.Fail: "Not kept", record.Stale: "Kept, though listed as known to fail", record.KnownFails: "Known to fail",
		record.Differs: "Differs from the reference, which the contract leaves open", record.Untrue: "Declared in the target file, and not so",
	}
	for _, v := range record.Verdicts() {
		t := toldOf{Verdict: v, Says: says[v]}
		for _, cl := range c.Clauses {
			if cl.Verdict == v {
				t.Clauses = append(t.Clauses, cl.ID)
			}
		}
		if t.Says != "" && len(t.Clauses) > 0 {
			list = append(list, t)
		}
	}
	return list
}

// countOf is how many clauses have a verdict.
type countOf struct {
	Verdict record.Verdict
	N       int
	Label   string
}

// countsOf counts the clauses that were asked for.
func countsOf(c record.Conformance) (list []countOf) {
	for _, v := range record.Verdicts() {
		n := c.Counts.Get(v)
		if v == record.NotRun {
			n -= len(nobodyAsked(c))
		}
		if n > 0 {
			list = append(list, countOf{v, n, wordsOf(v).counts})
		}
	}
	return list
}

// scenariosLine sums up the scenarios of a clause.
func scenariosLine(list []record.Scenario) string {
	run, ms := 0, int64(0)
	for _, s := range list {
		if s.Verdict != record.NotRun {
			run, ms = run+1, ms+s.DurationMS
		}
	}
	text := figure.Count(int64(len(list)), "scenario")
	switch {
	case run == 0:
		return text + ", not run"
	case run < len(list):
		text += fmt.Sprintf(", %d run", run)
	}
	return text + ", " + briefly(ms)
}

// visibleLines is Visible for a text of several lines.
func visibleLines(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := range lines {
		lines[i] = Visible(lines[i])
	}
	return strings.Join(lines, "\n")
}
