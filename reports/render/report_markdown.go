package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// ReportMarkdown writes a report for a pull request or a wiki.
func ReportMarkdown(w io.Writer, r record.Report) error {
	m := &markdown{}
	m.line("# Rate limits, reassessed")
	m.line("")
	m.line("%s.", escaped(strings.Join(lede(r), "; ")))
	m.line("")
	m.line("%s", escaped(goal(r.Rules)))
	for _, p := range r.Plans {
		m.line("")
		m.line("**%s: %s.** %s", escaped(capital(p.Plan)), escaped(p.Verdict.Headline), escaped(strings.Join(p.Verdict.Because, " ")))
	}
	if d := decisionSheet(r); len(d.Rows) > 0 {
		m.line("")
		m.line("## The decision, limit by limit")
		m.sheet(d)
	}
	for _, x := range reportSections(r) {
		m.section(x, r)
	}
	m.line("")
	m.line("brimline %s. Every number is in report.json, and those of each chart in a file of CSV.", escaped(r.Brimline))
	_, err := io.WriteString(w, m.text.String())
	return err
}

// markdown is a page while it is written. What it is given is escaped already.
type markdown struct{ text strings.Builder }

func (m *markdown) line(format string, args ...any) {
	fmt.Fprintf(&m.text, format+"\n", args...)
}

// table writes a head and rows; columns from the given one on are figures.
func (m *markdown) table(figures int, head []string, rows [][]string) {
	m.line("")
	m.line("| %s |", strings.Join(head, " | "))
	rule := make([]string, len(head))
	for i := range rule {
		if rule[i] = "---"; i >= figures {
			rule[i] = "---:"
		}
	}
	m.line("|%s|", strings.Join(rule, "|"))
	for _, row := range rows {
		m.line("| %s |", strings.Join(row, " | "))
	}
}

// sheet writes a table; text first, figures to the right.
func (m *markdown) sheet(s sheet) {
	head, words := make([]string, len(s.Columns)), 0
	for i, c := range s.Columns {
		head[i] = escaped(c.Head)
		if c.Words() && words == i {
			words++
		}
	}
	rows := s.Cells()
	for _, row := range rows {
		for i := range row {
			row[i] = escaped(row[i])
		}
	}
	m.table(max(1, words), head, rows)
}

func (m *markdown) scoreboard(plans []record.ReportPlan) {
	var rows [][]string
	for _, r := range scoreRows(plans) {
		row := []string{escaped(capital(r.Plan))}
		for _, c := range r.Cells {
			text := escaped(c.Main)
			if len(c.Notes) > 0 {
				text += " (" + escaped(strings.Join(c.Notes, "; ")) + ")"
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	m.table(2, append([]string{"plan"}, scoreColumns()...), rows)
}

// section writes what the page shows but for charts, whose numbers are in files.
func (m *markdown) section(s section, r record.Report) {
	m.line("")
	m.line("## %s", escaped(s.Title))
	if s.Note != "" {
		m.line("")
		m.line("%s", escaped(s.Note))
	}
	if s.ID == "scoreboard" {
		m.scoreboard(r.Plans)
	}
	for _, b := range s.Blocks {
		if b.Plan != "" {
			m.line("")
			m.line("### %s", escaped(capital(b.Plan)))
		}
		for _, text := range b.Said {
			m.line("")
			m.line("%s", escaped(text))
		}
		for _, text := range b.Missing {
			m.line("")
			m.line("*Missing:* %s", escaped(text))
		}
		if b.WhatIf != nil {
			m.grid(b.WhatIf)
		}
		for _, t := range b.Tables {
			if t.Title != "" {
				m.line("")
				m.line("**%s**", escaped(t.Title))
			}
			m.sheet(t)
		}
		for _, f := range b.Facts {
			m.facts(f)
		}
	}
}

func (m *markdown) facts(f factList) {
	m.line("")
	m.line("**%s**", escaped(f.Name))
	m.line("")
	for _, x := range f.Facts {
		for _, text := range x.Lines {
			m.line("- **%s**: %s", escaped(x.Name), escaped(text))
		}
	}
}

// grid writes what the page shows as a table with shades.
func (m *markdown) grid(v *whatIfView) {
	m.line("")
	m.line("%ss who meet a 429 (and the share of requests rejected); ✓ meets the goal.", capital(v.Noun))
	head := []string{"a minute"}
	for _, b := range v.Bursts {
		head = append(head, "burst "+figure.Grouped(b))
	}
	var rows [][]string
	for _, r := range v.Rows {
		row := []string{figure.Grouped(r.Rate)}
		for _, c := range r.Cells {
			text := c.Share + " (" + c.Rejected + ")"
			if c.Goal {
				text = "✓ " + text
			}
			if c.Mark != "" {
				text = "**" + text + "** " + c.Mark
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	m.table(0, head, rows)
}

// escaped makes text stand for itself in Markdown, in a table's cell too.
func escaped(s string) string {
	var b strings.Builder
	for _, r := range Visible(s) {
		switch r {
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '&':
			b.WriteString("&amp;")
		case '\\', '`', '*', '_', '[', ']', '|', '#', '~', '!', '$':
			b.WriteRune('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
