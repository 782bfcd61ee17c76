package render

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render/chart"
)

//go:embed report.html.tmpl
var reportPage string

//go:embed report.css
var reportStyle string

var reportTemplate = pageTemplate("report", reportPage, reportFuncs())

// ReportHTML writes a report as one page that asks the network for nothing.
func ReportHTML(w io.Writer, r record.Report) error {
	page := newPage("Rate limits, reassessed", reportStyle, chart.CSS)
	if slices.ContainsFunc(r.Plans, func(p record.ReportPlan) bool { return noWhatIf(p) == "" && len(p.WhatIf.Grid) > 0 }) {
		page = page.with(reportScript)
	}
	var decision *sheet
	if s := decisionSheet(r); len(s.Rows) > 0 {
		decision = &s
	}
	return reportTemplate.Execute(w, struct {
		record.Report
		Page     htmlPage
		Decision *sheet
		Sections []section
	}{r, page, decision, reportSections(r)})
}

// Report writes the verdicts of a report for a terminal, and what was read.
func Report(w io.Writer, r record.Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", goal(r.Rules))
	for _, p := range r.Plans {
		fmt.Fprintf(&b, "\n%s: %s\n", capital(Visible(p.Plan)), Visible(p.Verdict.Headline))
		for _, s := range p.Verdict.Because {
			fmt.Fprintf(&b, "  %s\n", Visible(s))
		}
		for _, d := range p.Decision {
			fmt.Fprintf(&b, "  %-12s %s\n", d.Dimension, Visible(dimensionText(d)))
		}
	}
	for i, l := range r.Logs {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "read: %s\n", Visible(fmt.Sprintf("%s: %s: %s entries%s", fileNames(l.Log), figure.Count(l.Log.Lines, "line"), figure.Grouped(l.Log.Entries), dropped(l.Log))))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// dimensionText is a row of the decision in a line.
func dimensionText(d record.ReportDimension) string {
	value := func(v *int64) string {
		if v == nil {
			return "–"
		}
		return figure.Grouped(*v)
	}
	text := fmt.Sprintf("%s, today %s", answer(d.Word), value(d.Today))
	if d.Uncapped != nil {
		text += " → the goal alone " + value(d.Uncapped)
	}
	if d.Target != nil {
		text += " → capped " + value(d.Target)
	}
	if d.HeldBy != "" {
		text += "; held by " + d.HeldBy
	}
	return text
}

// reportFuncs is what the page says of figures. Text that came out of an input
// goes through Visible.
func reportFuncs() template.FuncMap {
	return template.FuncMap{
		"visible": Visible, "capital": capital, "grouped": grouped, "short": figure.Short, "lede": lede, "prose": prose, "path": path,
		"rows": scoreRows, "columns": scoreColumns, "glance": glance, "wrong": wrong, "goal": goal,
	}
}

// goal says what an allowance is measured by.
func goal(rules record.ReportRules) string {
	return fmt.Sprintf("The goal: %s of a plan's users are OK, and by the lower end of the 95 %% interval too. A user is OK if fewer than one in a thousand of their requests is rejected.",
		figure.Short(rules.UsersOK))
}

func fileNames(l record.LogQuality) string {
	names := make([]string, len(l.Files))
	for i, f := range l.Files {
		names[i] = f.Name
	}
	return strings.Join(names, ", ")
}

// grouped takes what a template has.
func grouped(n any) string {
	switch n := n.(type) {
	case int:
		return figure.Grouped(int64(n))
	case int64:
		return figure.Grouped(n)
	case *int64:
		if n != nil {
			return figure.Grouped(*n)
		}
	}
	return "n/a"
}

// Visible writes out what would not print, or would change how its neighbours
// print.
func Visible(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// prose keeps a number and its sign on one line.
func prose(s string) string { return strings.ReplaceAll(Visible(s), " %", "\u00a0%") }

// path may be broken after a slash.
func path(s string) template.HTML {
	return template.HTML(strings.ReplaceAll(template.HTMLEscapeString(Visible(s)), "/", "/<wbr>"))
}

func capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if size == 0 {
		return s
	}
	return string(unicode.ToUpper(first)) + s[size:]
}

// lede says in a line each what the report rests on.
func lede(r record.Report) (lines []string) {
	const date = "2 January 2006"
	for _, l := range r.Logs {
		first, last := l.Log.First.Format(date), l.Log.Last.Format(date)
		span := first + " to " + last
		if first == last {
			span = first
		}
		lines = append(lines, fmt.Sprintf("%s of %s, %s", figure.Count(l.Attempts, "request"), figure.Count(int64(l.Users), poolNoun(l.Pool)), span))
	}
	switch n := len(r.Runs); {
	case n == 1:
		lines = append(lines, fmt.Sprintf("a load run of %s, %s", tookText(r.Runs[0].ActualMS), r.Runs[0].Started.UTC().Format(date)))
	case n > 1:
		lines = append(lines, fmt.Sprintf("%d load runs, the first on %s", n, slices.MinFunc(r.Runs, func(a, b record.ReportRun) int {
			return a.Started.Compare(b.Started)
		}).Started.UTC().Format(date)))
	}
	return lines
}

func poolNoun(p record.Pool) string {
	if p == record.PoolClient {
		return "client"
	}
	return "user"
}

// figureOf is a number to be seen at a glance.
type figureOf struct {
	Value, Label string
	Bad          bool // something that should not be
}

// glance is the numbers that a verdict turns on.
func glance(p record.ReportPlan, rules record.ReportRules) (list []figureOf) {
	v, w := p.Verdict, p.WhatIf
	if n := wrong(p); n > 0 {
		list = append(list, figureOf{Value: figure.Grouped(n), Label: "wrong decisions in a load run", Bad: true})
	}
	if w != nil && v.Word == record.NotEnoughEvidence {
		if w.Users < rules.MinUsers {
			list = append(list, figureOf{Value: fmt.Sprintf("%s of %s", grouped(w.Users), grouped(rules.MinUsers)), Label: poolNoun(w.Pool) + "s needed"})
		}
		if w.Days < rules.MinDays {
			list = append(list, figureOf{Value: fmt.Sprintf("%d of %d", w.Days, rules.MinDays), Label: "days with traffic needed"})
		}
	}
	if v.Today == nil || w == nil || len(list) > 1 {
		return list
	}
	then := v.Target
	if then == nil {
		then = v.Uncapped
	}
	if then == nil || v.Word == record.Keep {
		return append(list,
			figureOf{Value: figure.Short(v.Today.UsersAffectedShare), Label: "of its " + poolNoun(w.Pool) + "s meet a 429"},
			figureOf{Value: figure.Short(v.Today.RejectedShare), Label: "of its requests are rejected"})
	}
	list = append(list,
		figureOf{Value: figure.Short(v.Today.UsersAffectedShare) + " → " + figure.Short(then.UsersAffectedShare), Label: fmt.Sprintf("of its %ss would meet a 429 at %s", poolNoun(w.Pool), slashed(then.Rate, then.Burst))},
		figureOf{Value: figure.Short(v.Today.RejectedShare) + " → " + figure.Short(then.RejectedShare), Label: "of its requests would be rejected"},
		costAtAGlance(p))
	return list
}

// leastWorkers is the share of a worker below which the figure says no more.
const leastWorkers = 0.01

// costAtAGlance is what a raise costs the engine.
func costAtAGlance(p record.ReportPlan) figureOf {
	if p.Cost == nil || p.Cost.Workers == nil {
		return figureOf{Value: "not known", Label: "what it costs the engine"}
	}
	f := figureOf{Value: amount(*p.Cost.Workers), Label: "more engine workers kept busy at the peak"}
	if *p.Cost.Workers < leastWorkers {
		f.Value = "under " + amount(leastWorkers)
	}
	return f
}

// wrong is how many wrong decisions runs saw.
func wrong(p record.ReportPlan) (n int64) {
	for _, s := range p.Scores {
		n += s.Wrong()
	}
	return n
}

func inputKind(k record.InputKind) string {
	switch k {
	case record.InputRun:
		return "load run"
	case record.InputAPILog:
		return "API log"
	case record.InputCapacity:
		return "capacity search"
	case record.InputReport:
		return "earlier report"
	case record.InputMetrics:
		return "Prometheus"
	}
	return strings.ReplaceAll(string(k), "-", " ")
}

func gateState(s record.GateState) string {
	return map[record.GateState]string{record.GateHolds: "✓ yes", record.GateFails: "✗ no", record.GateMissing: "? unknown"}[s]
}

// fact is a name and what there is to say.
type fact struct {
	Name  string
	Lines []string
}

// logFacts is what was read of a log and how far it can be trusted.
func logFacts(r record.Replay) (list []fact) {
	l := r.Log
	add := func(name string, lines ...string) {
		if len(lines) > 0 {
			list = append(list, fact{name, lines})
		}
	}
	const stamp = "2006-01-02 15:04:05"
	add("format", formatName(l.Format, false))
	add("lines", fmt.Sprintf("%s: %s entries%s", figure.Grouped(l.Lines), figure.Grouped(l.Entries), dropped(l)))
	if kept := keptOddly(l); kept != "" {
		add("kept", kept)
	}
	add("attempts", attempts(r))
	add("clients", fmt.Sprintf("%s, worth %.2f equal ones (Kish); the busiest made %s of the entries",
		figure.Grouped(int64(l.Clients)), l.EffectiveClients, percent(share(l.BusiestEntries, l.Entries))))
	add("span", fmt.Sprintf("%s to %s UTC; largest gap %s", l.First.Format(stamp), l.Last.Format(stamp), length(l.LargestGap)))
	add("stamps", fmt.Sprintf("of %s, %s back in time; %s share their second with another, at most %d in one; %s in the fullest minute of the hour",
		resolution(l.ResolutionMicros), figure.Count(l.BackwardSteps, "step"), percent(l.TieShare), l.MostPerSecond, percent(l.ConstantMinute)))
	add("status", countList(l.Statuses))
	if a := r.Agreement; a != nil {
		text := fmt.Sprintf("%s of %s come out as recorded when they are taken again", figure.Grouped(a.Agreed), figure.Count(a.Compared, "decision"))
		if a.Disagreed+a.Untold+a.Missing > 0 {
			text += fmt.Sprintf("; %s differ, %s cannot be told, %s are not in the log",
				figure.Grouped(a.Disagreed), figure.Grouped(a.Untold), figure.Grouped(a.Missing))
		}
		add("decisions", text)
	}
	add("assumed", r.Assumed...)
	add("missing", r.Missing...)
	add("warning", r.Warnings...)
	if r.Refused != "" {
		add("refused", r.Refused)
	}
	return list
}

// runFacts is what a run was and how far it can be trusted.
func runFacts(n record.ReportRun) []fact {
	took := tookText(n.ActualMS)
	if n.Interrupted {
		took += ", interrupted"
	}
	list := []fact{
		{"target", []string{n.Target}},
		{"started", []string{fmt.Sprintf("%s, %s, seed %d", n.Started.UTC().Format("2006-01-02 15:04:05 UTC"), took, n.Seed)}},
		{"made by", []string{"brimline " + n.Brimline}},
	}
	var who []string
	for _, p := range n.Populations {
		who = append(who, fmt.Sprintf("%s on %s, %s, %.4g a minute each, on a 429: %s",
			figure.Count(p.Users, "user"), p.Plan, p.Arrival, p.PerMinute, strings.ReplaceAll(p.On429, "-", " ")))
	}
	if len(who) > 0 {
		list = append(list, fact{"load", who})
	}
	list = append(list, fact{"lag", []string{figure.Micros(n.LagP99US) + " behind its schedule at the 99th percentile"}})
	if len(n.Limits) > 0 {
		list = append(list, fact{"limits", n.Limits})
	}
	var doubts []string
	for _, d := range n.Untold {
		doubts = append(doubts, LoadDoubt(d))
	}
	if len(doubts) > 0 {
		list = append(list, fact{"untold", doubts})
	}
	return list
}
