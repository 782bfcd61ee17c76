package render

import (
	"fmt"
	"html/template"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render/chart"
)

// noWhatIf says why there is no what-if, or nothing.
func noWhatIf(p record.ReportPlan) string {
	switch {
	case p.WhatIf == nil:
		return "What other allowances would do cannot be said: a run folder holds what its users met, second by second and in sum, not each request. Add the API log that the run left, or an access log."
	case p.WhatIf.Refused != "":
		return "What other allowances would do cannot be said: " + p.WhatIf.Refused + "."
	}
	return ""
}

// whatIfChart draws users affected over the rate, a line for each way in which
// the burst follows it.
func whatIfChart(p record.ReportPlan, place int, rules record.ReportRules) (template.HTML, error) {
	w := p.WhatIf
	c := chart.Shares{
		ID:     fmt.Sprintf("what-if-%d", place),
		Title:  fmt.Sprintf("%s: %ss affected over the rate", capital(Visible(p.Plan)), poolNoun(w.Pool)),
		XLabel: "requests per minute",
	}
	for _, l := range w.Lines {
		line := chart.Line{Label: lineName(l.Divisor), Short: shortLineName(l.Divisor), Band: l.Divisor == w.Policy}
		for _, cell := range l.Cells {
			line.Points = append(line.Points, chart.Point{
				X: float64(cell.Rate), Y: cell.UsersAffectedShare, Low: cell.UsersAffected95[0], High: cell.UsersAffected95[1],
				Filled: rules.Meets(cell.Rejections),
				Title: fmt.Sprintf("%s a minute, burst %s: %s of %ss affected (%s)", figure.Grouped(cell.Rate), figure.Grouped(cell.Burst),
					figure.Percent(cell.UsersAffectedShare), poolNoun(w.Pool), figure.Grouped(int64(cell.UsersAffected))),
			})
		}
		if c.Lines = append(c.Lines, line); line.Band { // it is the one to look at: first, and solid
			c.Lines = append(c.Lines[len(c.Lines)-1:], c.Lines[:len(c.Lines)-1]...)
		}
	}
	c.Desc = whatIfDescription(p)
	if t := p.Verdict.Today; t != nil {
		c.Marks = append(c.Marks, chart.Mark{X: float64(t.Rate), Label: "today " + slashed(t.Rate, t.Burst)})
	}
	if t := p.Verdict.Target; t != nil {
		label := "raise to "
		if p.Verdict.Word != record.Raise {
			label = "goal "
		}
		c.Marks = append(c.Marks, chart.Mark{X: float64(t.Rate), Label: label + slashed(t.Rate, t.Burst)})
	}
	return c.Figure()
}

func whatIfDescription(p record.ReportPlan) string {
	for _, l := range p.WhatIf.Lines {
		if l.Divisor != p.WhatIf.Policy {
			continue
		}
		first, last := l.Cells[0], l.Cells[len(l.Cells)-1]
		return fmt.Sprintf("With %s, the share of %ss with at least one 429 goes from %s at %s a minute to %s at %s a minute. The table below has every value.",
			lineName(l.Divisor), poolNoun(p.WhatIf.Pool), figure.Percent(first.UsersAffectedShare), figure.Grouped(first.Rate),
			figure.Percent(last.UsersAffectedShare), figure.Grouped(last.Rate))
	}
	return ""
}

func lineName(divisor int64) string {
	if divisor == 1 {
		return "burst = rate"
	}
	return fmt.Sprintf("burst = rate ÷ %d", divisor)
}

func shortLineName(divisor int64) string {
	if divisor == 1 {
		return "÷ 1"
	}
	return fmt.Sprintf("÷ %d", divisor)
}

func slashed(rate, burst int64) string { return figure.Grouped(rate) + "/" + figure.Grouped(burst) }

// heatRow is a rate of the grid with a cell for each burst.
type heatRow struct {
	Rate  int64
	Cells []heatCell
}

type heatCell struct {
	Class, Affected, Rejected, Title string
	Goal                             bool
	Mark                             string // today, or what was recommended
}

// heatRows is the grid, each cell in a shade that its share of users affected
// falls in.
func heatRows(p record.ReportPlan, rules record.ReportRules) (rows []heatRow) {
	w := p.WhatIf
	for i, c := range w.Grid {
		if i%len(w.Bursts) == 0 {
			rows = append(rows, heatRow{Rate: c.Rate})
		}
		cell := heatCell{
			Class: fmt.Sprintf("h%d", shade(c.UsersAffectedShare)), Goal: rules.Meets(c.Rejections),
			Affected: figure.Percent(c.UsersAffectedShare), Rejected: figure.Percent(c.RejectedShare),
			Title: fmt.Sprintf("%s a minute, burst %s: %s of %s %ss affected, %s of %s rejected", figure.Grouped(c.Rate), figure.Grouped(c.Burst),
				figure.Grouped(int64(c.UsersAffected)), figure.Grouped(int64(w.Users)), poolNoun(w.Pool),
				figure.Grouped(c.Rejected), figure.Count(w.Attempts, "attempt")),
		}
		switch {
		case same(p.Verdict.Today, c):
			cell.Mark = "today"
		case same(p.Verdict.Target, c) && p.Verdict.Word == record.Raise:
			cell.Mark = "raise"
		}
		row := &rows[len(rows)-1]
		row.Cells = append(row.Cells, cell)
	}
	return rows
}

func same(a *record.Cell, b record.Cell) bool {
	return a != nil && a.Rate == b.Rate && a.Burst == b.Burst
}

// shade is one of seven, by a scale that is finest around the goal.
func shade(share float64) int {
	for i, most := range [...]float64{0, 0.0025, 0.005, 0.01, 0.02, 0.05} {
		if share <= most {
			return i
		}
	}
	return 6
}
