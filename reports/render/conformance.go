package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// Conformance writes a run of the suite for a terminal: a mark per clause, then
// every clause that is no pass with what was expected and what came, then the
// sum.
func Conformance(w io.Writer, c record.Conformance) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", plainText(c.Target.Description))
	fmt.Fprintf(&b, "%s\n\n", reach(c))
	conformanceGroups(&b, c)
	for _, cl := range c.Clauses {
		conformanceClause(&b, cl)
	}
	fmt.Fprintf(&b, "\n%s\n", sumLine(c))
	if c.Aborted != "" {
		fmt.Fprintf(&b, "ended early: %s\n", c.Aborted)
	}
	if power := PowerText(c.Power); power != "" {
		fmt.Fprintf(&b, "power: %s\n", power)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// reach says how much of the contract the run could see.
func reach(c record.Conformance) string {
	seen := len(c.Clauses) - c.Counts.NotRun
	text := fmt.Sprintf("%d of %d clauses judged, %s charged at most", seen, len(c.Clauses), figure.Count(c.Charged, "operation"))
	if len(c.Selected) > 0 {
		text = strings.Join(c.Selected, ", ") + ": " + text
	}
	return text
}

// mark is a verdict in one character.
func mark(v record.Verdict) string {
	return map[record.Verdict]string{
		record.Pass: "✓", record.Fail: "✗", record.Untrue: "‡", record.Differs: "≠",
		record.Inconclusive: "?", record.SetupFailed: "!", record.NotRun: "·",
	}[v]
}

// word is a verdict as the sum counts it.
func word(v record.Verdict) string {
	return map[record.Verdict]string{
		record.Pass: "pass", record.Fail: "fail", record.Untrue: "declared and untrue", record.Differs: "differ",
		record.Inconclusive: "inconclusive", record.SetupFailed: "not set up", record.NotRun: "not run",
	}[v]
}

// conformanceGroups writes a line per group: its name, a mark per clause, and
// why some were not run. Clauses that nobody asked for are left out, and groups
// that no scenario looks at share one line.
func conformanceGroups(b *strings.Builder, c record.Conformance) {
	type group struct {
		name, marks string
		looked      bool
		reasons     []string
	}
	var groups []*group
	width := 0
	for _, cl := range c.Clauses {
		if len(c.Selected) > 0 && !slices.Contains(c.Selected, cl.ID) {
			continue
		}
		if len(groups) == 0 || groups[len(groups)-1].name != cl.Group {
			groups = append(groups, &group{name: cl.Group})
		}
		g := groups[len(groups)-1]
		g.marks += mark(cl.Verdict)
		g.looked = g.looked || len(cl.Scenarios) > 0
		if cl.Verdict == record.NotRun && !strings.Contains(strings.Join(g.reasons, "; "), cl.Reason) {
			g.reasons = append(g.reasons, cl.Reason)
		}
		if g.looked {
			width = max(width, utf8.RuneCountInString(cl.Group))
		}
	}
	var unseen []string
	for _, g := range groups {
		if !g.looked {
			unseen = append(unseen, g.name)
			continue
		}
		fmt.Fprintf(b, "  %-*s  %s", width, g.name, g.marks)
		if len(g.reasons) > 0 {
			fmt.Fprintf(b, "  not run: %s", strings.Join(g.reasons, "; "))
		}
		b.WriteString("\n")
	}
	if len(unseen) > 0 {
		fmt.Fprintf(b, "  no scenario looks yet at: %s\n", strings.Join(unseen, ", "))
	}
}

// conformanceClause writes a clause that was run and is no plain pass.
func conformanceClause(b *strings.Builder, c record.Clause) {
	if c.Verdict == record.Pass || c.Verdict == record.NotRun {
		return
	}
	fmt.Fprintf(b, "\n%s %s  %s\n", mark(c.Verdict), c.ID, c.Sentence)
	worst := worstOf(c)
	where := worst.Name
	if worst.InPassing {
		where += " (about another clause)"
	}
	fmt.Fprintf(b, "  %-60s  %s\n", where, worst.At)
	if len(worst.Findings) == 0 {
		fmt.Fprintf(b, "  %s: %s\n", word(worst.Verdict), plainText(worst.Reason))
		return
	}
	f := worst.Findings[0]
	expected, got := f.Field+": "+plainText(f.Expected), f.Field+": "+plainText(f.Got)
	width := max(utf8.RuneCountInString(expected), utf8.RuneCountInString(got))
	fmt.Fprintf(b, "  %-9s %s\n", "when", f.Step)
	fmt.Fprintf(b, "  %-9s %s\n", "expected", beside(expected, f.Ground, width))
	fmt.Fprintf(b, "  %-9s %s\n", "got", beside(got, f.Consequence, width))
	if f.Exchange != "" {
		fmt.Fprintf(b, "  %-9s %s\n", "exchange", printable(f.Exchange))
	}
	if more := also(c, worst); more != "" {
		fmt.Fprintf(b, "  %-9s %s\n", "also", more)
	}
}

// printable is s as it is, to be pasted, unless something in it does not print.
func printable(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// beside puts a remark beside a value.
func beside(value, remark string, width int) string {
	if remark == "" {
		return value
	}
	return fmt.Sprintf("%-*s  %s", width, value, remark)
}

// worstOf is the scenario that gave a clause its verdict: rather one that is
// about the clause than one that broke it in passing.
func worstOf(c record.Clause) record.Scenario {
	var in record.Scenario
	for _, s := range c.Scenarios {
		switch {
		case s.Verdict != c.Verdict:
		case !s.InPassing:
			return s
		case in.Name == "":
			in = s
		}
	}
	return in
}

// also says where else a clause got its verdict.
func also(c record.Clause, shown record.Scenario) string {
	var at []string
	for _, s := range c.Scenarios {
		if s.Verdict == c.Verdict && s.At != shown.At {
			at = append(at, s.At)
		}
	}
	if len(at) > 3 {
		at = append(at[:3:3], fmt.Sprintf("and %d more", len(at)-3))
	}
	return strings.Join(at, ", ")
}

func sumLine(c record.Conformance) string {
	var parts []string
	for _, v := range []record.Verdict{record.Pass, record.Fail, record.Untrue, record.Differs, record.Inconclusive, record.SetupFailed, record.NotRun} {
		if n := c.Counts.Get(v); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word(v)))
		}
	}
	return fmt.Sprintf("%-60s  %s", fmt.Sprintf("%s: %s", c.Result, strings.Join(parts, ", ")), tookText(c.DurationMS))
}

// tookText is a duration for people.
func tookText(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}
