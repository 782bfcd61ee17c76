package render

import (
	_ "embed"
	"fmt"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// reportScript moves the sliders; without it the tables tell the same.
//
//go:embed report.js
var reportScript string

// whatIfView is the grid of one plan: a table with a shade for each share, the
// sliders over it, and what they say.
type whatIfView struct {
	Plan, Noun string
	Place      int
	Cap        int64 // of the table; 0: concurrency was not replayed
	Bursts     []int64
	Rows       []gridRow
	Sliders    []slider
	Data       gridData
	sheet
}

// slider is a limit to be moved; the values are those of the grid.
type slider struct {
	Name, Label string
	At, Last    int
}

// gridData is what the page's script reads. Figures are written as on the rest
// of the page, so that the script only picks them.
type gridData struct {
	Noun   string     `json:"noun"`
	Users  string     `json:"users"`
	Rates  []int64    `json:"rates"`
	Bursts []int64    `json:"bursts"`
	Caps   []int64    `json:"caps"`
	Cells  []gridCell `json:"cells"`
}

// gridCell is a cell's figures in words.
type gridCell struct {
	Shade       int    `json:"shade"`
	Goal        bool   `json:"goal"`
	N           string `json:"n"`
	Share       string `json:"share"`
	Interval    string `json:"interval"`
	OK          string `json:"ok"`
	OKInterval  string `json:"ok_interval"`
	Rejected    string `json:"rejected"`
	Rate        string `json:"rate"`
	Concurrency string `json:"concurrency"`
}

// gridRow is a rate of the grid with a cell for each burst.
type gridRow struct {
	Rate  int64
	Cells []heatCell
}

type heatCell struct {
	gridCell
	Class, Title string
	Mark         string // today, or what was recommended
}

func newWhatIfView(p record.ReportPlan, place int, rules record.ReportRules) *whatIfView {
	w := p.WhatIf
	v := &whatIfView{Plan: p.Plan, Place: place + 1, Noun: poolNoun(w.Pool), Bursts: w.Bursts}
	_, v.sheet = named("what-if-grid", "rate and burst together", p, place)
	v.Columns = []column{
		{"rate", "rate", asCount}, {"burst", "burst", asCount}, {"concurrency", "concurrency", asCount}, {"users_affected", "affected", asCount}, {"users_affected_share", "share", asShare},
		{"users_affected_95_low", "from", asShare}, {"users_affected_95_high", "to", asShare}, {"users_ok", "OK", asCount}, {"users_ok_share", "share", asShare}, {"users_ok_95_low", "from", asShare}, {"users_ok_95_high", "to", asShare},
		{"rejected_rate", "rejected for the rate", asCount}, {"rejected_concurrency", "for concurrency", asCount}, {"rejected_share", "share", asShare}, {"goal", "goal met", asText},
	}
	v.Data = gridData{Noun: v.Noun, Users: grouped(w.Users), Rates: w.Rates, Bursts: w.Bursts, Caps: append([]int64{}, w.Caps...)}
	rate, burst, limit := w.Rates[0], w.Bursts[0], int64(0)
	if a := p.Allowance; a != nil {
		rate, burst, limit = a.RequestsPerMinute, a.Burst, a.Concurrency
	}
	shown, deep := nearest(w.Caps, limit), max(1, len(w.Caps))
	v.Sliders = []slider{{"rate", "requests a minute", nearest(w.Rates, rate), len(w.Rates) - 1}, {"burst", "burst", nearest(w.Bursts, burst), len(w.Bursts) - 1}}
	if len(w.Caps) > 0 {
		v.Cap = w.Caps[shown]
		v.Sliders = append(v.Sliders, slider{"concurrency", "at once", shown, len(w.Caps) - 1})
	}
	for i, c := range w.Grid {
		cell := words(c, w.Attempts, rules)
		v.Data.Cells = append(v.Data.Cells, cell)
		var places any
		if c.Concurrency > 0 {
			places = c.Concurrency
		}
		v.sheet.Rows = append(v.sheet.Rows, []any{c.Rate, c.Burst, places, c.UsersAffected, c.UsersAffectedShare, c.UsersAffected95[0], c.UsersAffected95[1],
			c.UsersOK, c.UsersOKShare, c.UsersOK95[0], c.UsersOK95[1], c.RejectedRate, c.RejectedConcurrency, c.RejectedShare, cell.Goal})
		if i%deep != shown {
			continue
		}
		if i/deep%len(w.Bursts) == 0 {
			v.Rows = append(v.Rows, gridRow{Rate: c.Rate})
		}
		row := &v.Rows[len(v.Rows)-1]
		row.Cells = append(row.Cells, heatCell{gridCell: cell, Mark: cellMark(p.Verdict, c), Title: fmt.Sprintf("%s a minute, burst %s: %s of %s %ss affected, %s of the requests rejected",
			figure.Grouped(c.Rate), figure.Grouped(c.Burst), cell.N, grouped(w.Users), v.Noun, cell.Rejected)})
	}
	v.drawGoal()
	return v
}

func words(c record.Cell, attempts int64, rules record.ReportRules) gridCell {
	return gridCell{
		Shade: shade(c.UsersAffectedShare), Goal: rules.Meets(c.Rejections), N: grouped(c.UsersAffected),
		Share: figure.Percent(c.UsersAffectedShare), Interval: figure.Interval(c.UsersAffected95) + " %",
		OK: figure.Percent(c.UsersOKShare), OKInterval: figure.Interval(c.UsersOK95) + " %",
		Rejected: figure.Percent(c.RejectedShare), Rate: figure.Percent(share(c.RejectedRate, attempts)), Concurrency: figure.Percent(share(c.RejectedConcurrency, attempts)),
	}
}

func cellMark(v record.ReportVerdict, c record.Cell) string {
	switch {
	case same(v.Today, c):
		return "today"
	case same(v.Target, c) && v.Word == record.Raise:
		return "raise"
	case same(v.Uncapped, c):
		return "goal"
	}
	return ""
}

// drawGoal puts a line between the cells that meet the goal and those that do not.
func (v *whatIfView) drawGoal() {
	for i, row := range v.Rows {
		for j := range row.Cells {
			c := &row.Cells[j]
			c.Class = fmt.Sprintf("h%d", c.Shade)
			if j > 0 && row.Cells[j-1].Goal != c.Goal {
				c.Class += " gl"
			}
			if i > 0 && v.Rows[i-1].Cells[j].Goal != c.Goal {
				c.Class += " gt"
			}
			if c.Mark != "" {
				c.Class += " marked"
			}
		}
	}
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
