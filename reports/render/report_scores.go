package render

import (
	"fmt"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// scoreRow is a row of the scoreboard: every cell a figure and, smaller, what
// belongs to it.
type scoreRow struct {
	Plan  string
	First bool // of its plan
	Cells []scoreCell
}

type scoreCell struct {
	Main  string
	Notes []string
	Bad   bool // something that should not be
}

// scoreColumns names the cells of a [scoreRow].
func scoreColumns() []string {
	return []string{"by", "users affected", "users OK", "attempts", "429 rate", "429 conc.", "due / undue", "top user", "p50 / p99"}
}

const unknown = "n/a"

// scoreRows is the scoreboard, plan by plan.
func scoreRows(plans []record.ReportPlan) (rows []scoreRow) {
	for _, p := range plans {
		for i, s := range p.Scores {
			rows = append(rows, scoreRow{Plan: p.Plan, First: i == 0, Cells: scoreCells(s)})
		}
	}
	return rows
}

func scoreCells(s record.ReportScore) []scoreCell {
	top := scoreCell{Main: unknown, Notes: []string{fmt.Sprintf("%.3g effective", s.EffectiveUsers)}}
	if s.TopShare != nil {
		top.Main = figure.Percent(*s.TopShare)
	}
	took := scoreCell{Main: unknown}
	if l := s.Latency; l != nil {
		took.Main = figure.Micros(l.P50US) + " / " + figure.Micros(l.P99US)
		took.Notes = []string{map[string]string{"due": "from when due", "received": "in the server"}[l.From]}
	}
	return []scoreCell{
		{Main: basisWord(s), Notes: []string{s.Source}},
		userCell(s.UsersAffected, s.Users), userCell(s.UsersOK, s.Users),
		{Main: figure.Grouped(s.Attempts), Notes: []string{grouped(s.Admitted) + " admitted"}},
		causeCell(s.RejectedRate, s), causeCell(s.RejectedConcurrency, s),
		judgedCell(s), top, took,
	}
}

func userCell(u record.UserShare, of int) scoreCell {
	return scoreCell{
		Main: figure.Percent(u.Share),
		Notes: []string{
			figure.Grouped(int64(u.N)) + " of " + figure.Grouped(int64(of)),
			figure.Interval(u.Share95) + " %",
		},
	}
}

func causeCell(n *int64, s record.ReportScore) scoreCell {
	switch {
	case n != nil && s.Attempts > 0:
		return scoreCell{Main: figure.Grouped(*n), Notes: []string{figure.Percent(float64(*n) / float64(s.Attempts))}}
	case s.Basis != record.BasisReplayed && s.Rejected > 0:
		return scoreCell{Main: unknown, Notes: []string{figure.Grouped(s.Rejected) + " of any cause"}}
	}
	return scoreCell{Main: unknown}
}

func judgedCell(s record.ReportScore) scoreCell {
	if s.RateJudged == nil {
		return scoreCell{Main: unknown}
	}
	j := s.RateJudged.Plus(*s.ConcurrencyJudged)
	unjudged := s.Rejected - j.Sum()
	if j.Sum() == 0 && unjudged > 0 && s.Wrong() == 0 {
		return scoreCell{Main: unknown, Notes: []string{figure.Grouped(unjudged) + " not judged"}}
	}
	c := scoreCell{
		Main: figure.Grouped(j.Due) + " / " + figure.Grouped(j.Undue), Notes: []string{figure.Grouped(j.Undecided) + " undecided"}, Bad: s.Wrong() > 0,
	}
	if s.WithoutToken != nil && *s.WithoutToken > 0 {
		c.Notes = append(c.Notes, figure.Grouped(*s.WithoutToken)+" without a token")
	}
	if unjudged > 0 {
		c.Notes = append(c.Notes, figure.Grouped(unjudged)+" not judged")
	}
	return c
}
