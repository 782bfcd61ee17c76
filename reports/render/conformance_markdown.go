package render

import (
	"io"
	"strings"

	"github.com/invoicespec/brimline/reports/record"
)

// MarkdownLimit is the most that [ConformanceMarkdown] writes, in bytes. A CI
// server that shows summaries takes 1 MiB of them, and ours may not be alone.
const MarkdownLimit = 900_000

// ConformanceMarkdown writes a run of the suite as the summary of a CI server:
// what was found, what has changed, each clause that is not kept with a command
// that repeats it, and what was not judged. Where that would be too much, it
// says how much it has left out.
func ConformanceMarkdown(w io.Writer, c record.Conformance) error {
	m := &markdown{}
	m.line("# %s Rate limits: %s", resultMark(c.Result), c.Result)
	m.line("")
	m.line("%s", escaped(lastLine(c)))
	m.changes(c.Changes)
	m.groups(c)
	end := &markdown{}
	end.unjudged(c)
	end.origin(c)

	left := 0
	for i, cl := range worthTelling(c) {
		one := &markdown{}
		if i == 0 {
			one.line("\n## Not kept")
		}
		one.clause(cl)
		if left > 0 || m.text.Len()+one.text.Len()+end.text.Len() > MarkdownLimit-200 {
			left++
			continue
		}
		m.text.WriteString(one.text.String())
	}
	if left > 0 {
		m.line("\n**Cut: %d more clauses that are not kept would not fit in here.** All of them are in conformance.json and in index.html.", left)
	}
	_, err := io.WriteString(w, m.text.String()+end.text.String())
	return err
}

func resultMark(r record.Result) string {
	return map[record.Result]string{record.ResultSuccess: "✓", record.ResultPartial: "◐", record.ResultFailure: "✗"}[r]
}

// worthTelling is the clauses that a reader has to be told of, worst first.
func worthTelling(c record.Conformance) (list []record.Clause) {
	for _, v := range record.Verdicts() {
		for _, cl := range c.Clauses {
			if cl.Verdict == v && (unkept(v) || v == record.KnownFails) {
				list = append(list, cl)
			}
		}
	}
	return list
}

func (m *markdown) changes(c *record.Changes) {
	if c == nil {
		return
	}
	m.line("\n## Since %s: %s", day(c.Against.Started), changesInAll(c))
	var rows [][]string
	for _, x := range inOrder(c.List) {
		rows = append(rows, []string{x.Clause, kindWord(x.Kind), fromTo(x), escaped(x.Reason)})
	}
	if len(rows) > 0 {
		m.table(4, []string{"clause", "change", "verdict", "reason"}, rows)
	}
}

func (m *markdown) groups(c record.Conformance) {
	var rows [][]string
	for _, g := range clauseGroups(c) {
		marks := ""
		for _, cl := range g.Clauses {
			marks += mark(cl.Verdict)
		}
		rows = append(rows, []string{escaped(g.Name), "`" + marks + "`"})
	}
	m.table(2, []string{"group", "clauses"}, rows)
	m.line("\n%s", legend(c))
}

func (m *markdown) unjudged(c record.Conformance) {
	var rows [][]string
	for _, g := range unjudgedGroups(c) {
		rows = append(rows, []string{word(g.Verdict), escaped(g.Reason), strings.Join(g.Clauses, ", ")})
	}
	if len(rows) > 0 {
		m.line("\n## Not judged")
		m.table(3, []string{"verdict", "why", "clauses"}, rows)
	}
}

func (m *markdown) clause(c record.Clause) {
	m.line("\n### %s %s: %s", mark(c.Verdict), c.ID, word(c.Verdict))
	m.line("")
	m.line("%s (%s)", escaped(c.Sentence), c.Level)
	if c.Reason != "" {
		m.line("")
		m.line("%s", escaped(c.Reason))
	}
	if c.Verdict == record.Differs {
		m.line("")
		m.line("%s", escaped(c.Decision))
	}
	worst := worstOf(c)
	if len(worst.Findings) == 0 {
		return
	}
	f := worst.Findings[0]
	m.line("")
	m.line("In *%s* (%s), when %s:", escaped(worst.Name), worst.At, escaped(f.Step))
	m.table(3, []string{"", escaped(f.Field), ""}, [][]string{
		{"expected", escaped(f.Expected), escaped(f.Ground)}, {"got", escaped(f.Got), escaped(f.Consequence)},
	})
	if f.Exchange != "" {
		m.line("")
		m.fenced(f.Exchange)
	}
	if more := also(c, worst); more != "" {
		m.line("")
		m.line("Also: %s", more)
	}
}

func (m *markdown) origin(c record.Conformance) {
	m.line("\n## Where this comes from")
	m.line("")
	for _, f := range facts(c) {
		m.line("- **%s**: %s", f.Name, escaped(strings.Join(f.Lines, "; ")))
	}
	if power := PowerText(c.Power); power != "" {
		m.line("- **power**: %s", escaped(power))
	}
	if c.Reproduce.Command != "" {
		m.line("")
		m.fenced(c.Reproduce.Command)
	}
}

// fenced writes text that stands for itself, behind a fence longer than any in
// it.
func (m *markdown) fenced(text string) {
	text = Visible(text)
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	m.line("%s\n%s\n%s", fence, text, fence)
}
