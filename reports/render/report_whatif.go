package render

import (
	"fmt"
	"slices"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render/chart"
)

// noWhatIf says why there is no what-if, or nothing.
func noWhatIf(p record.ReportPlan) string {
	switch {
	case p.WhatIf == nil:
		return "what other allowances would do: a run folder holds what its users met, second by second and in sum, not each request. Add the API log that the run left, or an access log"
	case p.WhatIf.Refused != "":
		return "what other allowances would do: " + p.WhatIf.Refused
	}
	return ""
}

// whatIfBlock is S5.
func whatIfBlock(r record.Report, p record.ReportPlan, place int) (b block) {
	if text := noWhatIf(p); text != "" {
		return block{Missing: []string{text}}
	}
	w := p.WhatIf
	if len(w.Lines) > 0 {
		b.Figures = append(b.Figures, affectedDrawing(p, place, r.Rules))
		if d := rejectedDrawing(p, place); len(d.Rows) > 0 {
			b.Figures = append(b.Figures, d)
		}
	}
	if len(w.Grid) > 0 {
		b.WhatIf = newWhatIfView(p, place, r.Rules)
	}
	if m := w.Moved; m != nil {
		noun := poolNoun(w.Pool)
		b.Said = append(b.Said, fmt.Sprintf("From today’s allowance to %s: %s met a 429 and meet none any more (95 %% interval %s–%s), %s the other way round (%s–%s); %s fewer of the requests are rejected (%s %%). The same traffic on both sides, %s of %s.",
			slashed(m.Rate, m.Burst), figure.Count(int64(m.Out), noun), amount(m.Out95[0]), amount(m.Out95[1]), grouped(m.In), amount(m.In95[0]), amount(m.In95[1]),
			figure.Short(m.Share), figure.Interval(m.Share95), figure.Count(int64(m.Draws), "draw"), m.Clusters))
	}
	for _, s := range []sheet{needsSheet(w), closedSheet(w)} {
		if len(s.Rows) > 0 {
			b.Tables = append(b.Tables, s)
		}
	}
	return b
}

// affectedDrawing is users affected over the rate, a line for each way in which
// the burst follows it.
func affectedDrawing(p record.ReportPlan, place int, rules record.ReportRules) drawing {
	w := p.WhatIf
	c := chart.Curves{XLabel: "requests per minute", X: chart.Rate, Y: chart.Share, Marks: allowanceMarks(p)}
	var s sheet
	c.Named, s = named("what-if-users", poolNoun(w.Pool)+"s who meet a 429, over the rate", p, place)
	s.Columns = []column{
		{"rate", "rate", asCount}, {"burst", "burst", asCount}, {"users_affected", poolNoun(w.Pool) + "s affected", asCount}, {"users_affected_share", "share", asShare},
		{"users_affected_95_low", "from", asShare}, {"users_affected_95_high", "to", asShare}, {"users_ok_share", "OK", asShare}, {"users_ok_95_low", "from", asShare}, {"users_ok_95_high", "to", asShare}, {"goal", "goal met", asText},
	}
	for _, l := range w.Lines {
		line := chart.Line{Label: lineName(l.Divisor), Short: shortLineName(l.Divisor), Band: l.Divisor == w.Policy}
		for _, cell := range l.Cells {
			line.Points = append(line.Points, chart.Point{
				X: float64(cell.Rate), Y: cell.UsersAffectedShare, Low: cell.UsersAffected95[0], High: cell.UsersAffected95[1], Filled: rules.Meets(cell.Rejections),
				Title: fmt.Sprintf("%s a minute, burst %s: %s of %ss affected (%s)", figure.Grouped(cell.Rate), figure.Grouped(cell.Burst), figure.Percent(cell.UsersAffectedShare), poolNoun(w.Pool), grouped(cell.UsersAffected)),
			})
			s.Rows = append(s.Rows, []any{cell.Rate, cell.Burst, cell.UsersAffected, cell.UsersAffectedShare, cell.UsersAffected95[0], cell.UsersAffected95[1], cell.UsersOKShare, cell.UsersOK95[0], cell.UsersOK95[1], rules.Meets(cell.Rejections)})
		}
		if c.Lines = append(c.Lines, line); line.Band { // it is the one to look at: first, and solid
			c.Lines = append(c.Lines[len(c.Lines)-1:], c.Lines[:len(c.Lines)-1]...)
		}
	}
	if first := c.Lines[0].Points; len(first) > 0 {
		c.Desc = fmt.Sprintf("With %s, the share goes from %s at %s a minute to %s at %s. The table below has every value.", c.Lines[0].Label,
			figure.Percent(first[0].Y), amount(first[0].X), figure.Percent(first[len(first)-1].Y), amount(first[len(first)-1].X))
	}
	return drawing{Figure: c.Figure(), Note: "The band is the 95 % interval; a filled point meets the goal that " + figure.Short(rules.UsersOK) + " of them are OK.", sheet: s}
}

// rejectedDrawing is the share of requests rejected: as recorded, without those
// that were refused at the time, and with clients that obey Retry-After.
func rejectedDrawing(p record.ReportPlan, place int) drawing {
	w := p.WhatIf
	c := chart.Curves{XLabel: "requests per minute", X: chart.Rate, Y: chart.Share, Marks: allowanceMarks(p)}
	var s sheet
	c.Named, s = named("what-if-requests", "requests rejected, over the rate", p, place)
	s.Columns = []column{{"demand", "demand", asText}, {"rate", "rate", asCount}, {"burst", "burst", asCount}, {"rejected", "rejected", asCount}, {"rejected_share", "share", asShare}}
	add := func(label, short string, line *chart.Line, rate, burst, rejected int64, part float64) {
		line.Label, line.Short = label, short
		line.Points = append(line.Points, chart.Point{X: float64(rate), Y: part, Filled: true, Title: fmt.Sprintf("%s, %s a minute, burst %s: %s rejected", label, figure.Grouped(rate), figure.Grouped(burst), figure.Percent(part))})
		s.Rows = append(s.Rows, []any{label, rate, burst, rejected, part})
	}
	var recorded, without, closed chart.Line
	for _, l := range w.Lines {
		if l.Divisor != w.Policy {
			continue
		}
		for _, cell := range l.Cells {
			add("as recorded", "recorded", &recorded, cell.Rate, cell.Burst, cell.Rejected, cell.RejectedShare)
		}
		for _, cell := range l.Cells {
			if x := cell.WithoutRefused; x != nil {
				add("without the refused", "without", &without, cell.Rate, cell.Burst, x.Rejected, x.RejectedShare)
			}
		}
	}
	for _, x := range w.Closed {
		add("obeying clients", "obeying", &closed, x.Rate, x.Burst, x.Rejected, share(x.Rejected, x.Sendings))
	}
	c.Lines = []chart.Line{recorded, without, closed}
	c.Desc = "The share of requests that meet a 429, falling with the rate. The table below has every value."
	note := "Obeying clients wait for Retry-After and send again; their share is of all sendings."
	if len(without.Points) > 0 {
		note += " Demand lies between as recorded and without the attempts that were refused at the time."
	}
	return drawing{Figure: c.Figure(), Note: note, sheet: s}
}

func allowanceMarks(p record.ReportPlan) (marks []chart.Mark) {
	v := p.Verdict
	if t := v.Today; t != nil {
		marks = append(marks, chart.Mark{X: float64(t.Rate), Label: "today " + slashed(t.Rate, t.Burst)})
	}
	goal := v.Uncapped
	if t := v.Target; t != nil && v.Word == record.Raise {
		marks = append(marks, chart.Mark{X: float64(t.Rate), Label: "raise to " + slashed(t.Rate, t.Burst)})
		if goal != nil && same(goal, *t) {
			goal = nil
		}
	} else if goal == nil {
		goal = t
	}
	if goal != nil {
		marks = append(marks, chart.Mark{X: float64(goal.Rate), Label: "goal alone " + slashed(goal.Rate, goal.Burst)})
	}
	return marks
}

func lineName(divisor int64) string {
	if divisor == 1 {
		return "burst = rate"
	}
	return fmt.Sprintf("burst = rate ÷ %d", divisor)
}

func shortLineName(divisor int64) string { return fmt.Sprintf("÷ %d", divisor) }

func slashed(rate, burst int64) string { return figure.Grouped(rate) + "/" + figure.Grouped(burst) }

func same(a *record.Cell, b record.Cell) bool {
	return a != nil && a.Rate == b.Rate && a.Burst == b.Burst
}

// nearest is the place of a value in a list, or of the last one.
func nearest(list []int64, v int64) int {
	if i := slices.Index(list, v); i >= 0 {
		return i
	}
	return max(0, len(list)-1)
}
