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
	m.scoreboard(r.Plans)
	for _, p := range r.Plans {
		m.plan(p, r.Rules)
	}
	m.provenance(r)
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

func (m *markdown) scoreboard(plans []record.ReportPlan) {
	m.line("")
	m.line("## Scoreboard")
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

func (m *markdown) plan(p record.ReportPlan, rules record.ReportRules) {
	m.line("")
	m.line("## %s", escaped(capital(p.Plan)))
	m.line("")
	if text := noWhatIf(p); text != "" {
		m.line("%s", escaped(text))
	} else {
		w := p.WhatIf
		m.line("%ss with at least one 429 (and the share of requests rejected); ✓ meets the goal.", capital(poolNoun(w.Pool)))
		head := []string{"a minute"}
		for _, b := range w.Bursts {
			head = append(head, "burst "+figure.Grouped(b))
		}
		var rows [][]string
		for _, r := range heatRows(p, rules) {
			row := []string{figure.Grouped(r.Rate)}
			for _, c := range r.Cells {
				text := c.Affected + " (" + c.Rejected + ")"
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
	m.line("")
	for _, e := range p.Evidence {
		text := escaped(strings.Join(e.Found, " "))
		if e.Missing != "" {
			text = "missing: " + escaped(e.Missing)
		}
		m.line("- **%s**: %s", escaped(string(e.Kind)), text)
	}
	var rows [][]string
	for _, g := range p.Gates {
		rows = append(rows, []string{escaped(g.Name), escaped(g.Need), escaped(g.Found), gateState(g.State)})
	}
	m.table(1, []string{"gate", "needs", "found", "holds"}, rows)
}

func (m *markdown) provenance(r record.Report) {
	m.line("")
	m.line("## Where this comes from")
	var rows [][]string
	for _, in := range r.Inputs {
		rows = append(rows, []string{escaped(in.Name), inputKind(in.Kind), figure.Bytes(in.Bytes), in.SHA256})
	}
	m.table(2, []string{"input", "kind", "size", "SHA-256"}, rows)
	facts := func(list []fact) {
		m.line("")
		for _, f := range list {
			for _, text := range f.Lines {
				m.line("- **%s**: %s", escaped(f.Name), escaped(text))
			}
		}
	}
	for _, l := range r.Logs {
		facts(logFacts(l))
	}
	for _, n := range r.Runs {
		m.line("")
		m.line("### %s", escaped(n.Name))
		facts(runFacts(n))
	}
	m.line("")
	m.line("brimline %s. Every number is in report.json.", escaped(r.Brimline))
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
