package render

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// Text is how a result is written for a terminal. The zero value is what
// somebody wants who has not asked for anything.
type Text struct {
	Detail Detail
	Colour bool   // for a terminal that has some
	Report string // where the result was left as well; empty: nowhere
}

// Detail is how much of a result is written.
type Detail int

// The details.
const (
	Usual   Detail = iota // a mark per clause, and every clause that is no pass
	Quiet                 // what is not kept, and the last line
	Verbose               // every scenario with its time as well
)

// Conformance writes a run of the suite for a terminal: a mark per clause, then
// every clause that is no pass with what was expected and what came, then what
// has changed, and in the last line what was judged and what not.
func Conformance(w io.Writer, c record.Conformance, t Text) error {
	b := &page{colour: t.Colour}
	if t.Detail != Quiet {
		b.line("%s", Visible(c.Target.Description))
		b.line("%s", reach(c))
		b.line("")
		b.groups(c)
	}
	if t.Detail == Verbose {
		b.scenarios(c)
	}
	for _, cl := range c.Clauses {
		if t.Detail != Quiet || unkept(cl.Verdict) {
			b.clause(cl)
		}
	}
	b.known(c)
	if t.Detail != Quiet {
		b.changes(c.Changes)
	}
	if p := c.Power; p.Detectable < p.Known && t.Detail != Quiet {
		b.line("\npower: %s", PowerText(p))
	}
	if t.Report != "" {
		b.line("\nreport: %s", t.Report)
	}
	if b.Len() > 0 {
		b.line("")
	}
	b.line("%s", lastLine(c))
	_, err := io.WriteString(w, b.String())
	return err
}

// page is a text while it is written.
type page struct {
	strings.Builder
	colour bool
}

func (b *page) line(format string, args ...any) { fmt.Fprintf(b, format+"\n", args...) }

// paint gives text the colour of a verdict, where there is colour.
func (b *page) paint(v record.Verdict, text string) string {
	if !b.colour {
		return text
	}
	return "\x1b[" + wordsOf(v).colour + "m" + text + "\x1b[0m"
}

// reach says how much of the contract the run could see.
func reach(c record.Conformance) string {
	asked := len(c.Clauses) - len(nobodyAsked(c))
	text := fmt.Sprintf("%d of %s judged, %s charged at most", len(c.Clauses)-c.Counts.NotRun, figure.Count(int64(asked), "clause"), figure.Count(c.Charged, "operation"))
	if c.WaitedMS >= 1000 {
		text += fmt.Sprintf(", scenarios waited %s in all, side by side", tookText(c.WaitedMS))
	}
	if len(c.Selected) > 0 {
		text = strings.Join(c.Selected, ", ") + ": " + text
	}
	return text
}

// groups writes a line per group: its name, a mark per clause, and
// why some were not run. Clauses that nobody asked for are left out, and groups
// that no scenario looks at share one line.
func (b *page) groups(c record.Conformance) {
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
		g.marks += b.paint(cl.Verdict, mark(cl.Verdict))
		g.looked = g.looked || len(cl.Scenarios) > 0
		if cl.Verdict == record.NotRun {
			g.reasons = append(g.reasons, strings.Split(cl.Reason, "; ")...)
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
		text := fmt.Sprintf("  %-*s  %s", width, g.name, g.marks)
		if len(g.reasons) > 0 {
			text += "  not run: " + gathered(g.reasons)
		}
		b.line("%s", text)
	}
	if len(unseen) > 0 {
		b.line("  no scenario looks yet at: %s", strings.Join(unseen, ", "))
	}
}

// gathered is why clauses were not run, what they need named once for all.
func gathered(reasons []string) string {
	var needs, all []string
	add := func(list []string, text string) []string {
		if slices.Contains(list, text) {
			return list
		}
		return append(list, text)
	}
	for _, r := range reasons {
		list, ok := strings.CutPrefix(r, "needs ")
		if !ok {
			all = add(all, r)
			continue
		}
		for n := range strings.SplitSeq(list, ", ") {
			needs = add(needs, n)
		}
	}
	if len(needs) > 0 {
		all = append([]string{"needs " + strings.Join(needs, ", ")}, all...)
	}
	return strings.Join(all, "; ")
}

// scenarios writes every clause that was looked at with all its scenarios.
func (b *page) scenarios(c record.Conformance) {
	group := ""
	for _, cl := range c.Clauses {
		if len(cl.Scenarios) == 0 || len(c.Selected) > 0 && cl.Verdict == record.NotRun {
			continue
		}
		if cl.Group != group {
			group = cl.Group
			b.line("\n%s", group)
		}
		b.line("  %s %-9s %s", b.paint(cl.Verdict, mark(cl.Verdict)), cl.ID, Visible(cl.Sentence))
		for _, s := range cl.Scenarios {
			took, why := briefly(s.DurationMS), ""
			if s.Verdict == record.NotRun {
				took = ""
			}
			if s.Reason != "" {
				why = "  " + word(s.Verdict) + ": " + Visible(s.Reason)
			}
			b.line("      %s %8s  %s  %s%s", b.paint(s.Verdict, mark(s.Verdict)), took, s.Name, s.At, why)
		}
	}
}

// clause writes a clause that was run and is no plain pass.
func (b *page) clause(c record.Clause) {
	switch c.Verdict {
	case record.Pass, record.NotRun, record.KnownFails:
		return
	}
	b.line("\n%s  %s", b.paint(c.Verdict, mark(c.Verdict)+" "+c.ID), Visible(c.Sentence))
	if c.Verdict == record.Stale {
		b.line("  %s", c.Reason)
		return
	}
	worst := worstOf(c)
	where := worst.Name
	if worst.InPassing {
		where += " (about another clause)"
	}
	b.line("  %-60s  %s", where, worst.At)
	if len(worst.Findings) == 0 {
		b.line("  %s: %s", word(worst.Verdict), Visible(worst.Reason))
		return
	}
	f := worst.Findings[0]
	expected, got := f.Field+": "+Visible(f.Expected), f.Field+": "+Visible(f.Got)
	width := max(utf8.RuneCountInString(expected), utf8.RuneCountInString(got))
	say := func(name, text string) {
		if text != "" {
			b.line("  %-9s %s", name, text)
		}
	}
	say("when", f.Step)
	say("expected", beside(expected, Visible(f.Ground), width))
	say("got", beside(got, Visible(f.Consequence), width))
	say("exchange", Visible(f.Exchange))
	say("also", also(c, worst))
	if c.Verdict == record.Differs {
		say("decided", c.Decision)
	}
}

// known writes what became of the clauses that are known to fail.
func (b *page) known(c record.Conformance) {
	if len(c.KnownFailing) == 0 {
		return
	}
	b.line("")
	for _, cl := range c.Clauses {
		if cl.Verdict == record.KnownFails {
			b.line("%s  %s", b.paint(cl.Verdict, fmt.Sprintf("%s %-9s", mark(cl.Verdict), cl.ID)), remark("known to fail", cl.Reason))
		}
	}
	for _, cl := range c.UntoldKnown() {
		b.line("%s  %s", b.paint(cl.Verdict, fmt.Sprintf("%s %-9s", mark(cl.Verdict), cl.ID)), untoldKnown(cl))
	}
}

// changes writes what is not as it was.
func (b *page) changes(c *record.Changes) {
	if c == nil {
		return
	}
	b.line("\nsince %s: %s", day(c.Against.Started), changesInAll(c))
	for _, x := range inOrder(c.List) {
		b.line("  %s  %s", b.paint(x.Is, fmt.Sprintf("%-9s  %-16s", x.Clause, kindWord(x.Kind))), remark(fromTo(x), x.Reason))
	}
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
		case s.Verdict != seen(c.Verdict):
		case !s.InPassing:
			return s
		case in.Name == "":
			in = s
		}
	}
	return in
}

// seen is the verdict of a scenario that gave a clause its own.
func seen(v record.Verdict) record.Verdict {
	switch v {
	case record.KnownFails:
		return record.Fail
	case record.Stale:
		return record.Pass
	}
	return v
}

// also says where else a clause got its verdict.
func also(c record.Clause, shown record.Scenario) string {
	var at []string
	for _, s := range c.Scenarios {
		if s.Verdict == seen(c.Verdict) && s.At != shown.At {
			at = append(at, s.At)
		}
	}
	if len(at) > 3 {
		at = append(at[:3:3], fmt.Sprintf("and %d more", len(at)-3))
	}
	return strings.Join(at, ", ")
}
