package reassess

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// What holds the aim of S0, one after the other, and what is left of it.

// candidate is what became of an aim under the caps.
type candidate struct {
	below *record.Cell // the largest step up to the aim that takes nothing from the next plan; nil: none
	fits  *record.Cell // the largest up to that for which the engine has room, or below, where that is not known; nil: none
	room  string       // why the engine has no room for more
	moved *record.ReportMoved
	peaks *record.ReportPeaks // of all plans together, with this change made
}

// settle is the verdict once the candidate was replayed.
func (c claim) settle(a aim, x candidate, rules record.ReportRules) record.ReportVerdict {
	v := a.verdict
	if v.Uncapped == nil {
		return c.relief(v, rules)
	}
	keep := func(why record.KeepReason, by string) record.ReportVerdict {
		v.Word, v.Keep, v.HeldBy = record.Keep, why, by
		return v
	}
	if x.moved != nil {
		v.Moved = x.moved.Out
	}
	v.Target = x.below
	switch {
	case c.binding != nil && c.binding.NotTheRateLimit:
		return keep(record.KeepOther, "paid operations")
	case x.below == nil:
		v.NextPlan = c.next.plan
		return keep(record.KeepNextPlan, "the plan "+c.next.plan)
	case v.Moved < rules.MinMoved:
		return keep(record.KeepTooFew, "users spared by a raise")
	}
	if list := c.unfilled(rules); len(list) > 0 {
		v.HeldBy = string(list[0].Kind)
		for _, e := range list {
			v.Missing = append(v.Missing, fmt.Sprintf("no evidence on %s: %s", e.Kind, e.Missing))
		}
		return v
	}
	v.Target = x.fits
	switch {
	case x.fits == nil:
		return keep(record.KeepCapacity, "the engine: "+x.room)
	case !c.agreed(c.earlier, x.moved.Days, rules):
		return keep(record.KeepUnagreed, "reports and days that agree")
	}
	v.Word = record.Raise
	switch {
	case *x.fits != *x.below:
		v.HeldBy = "the engine: " + x.room
	case *x.below != *v.Uncapped:
		v.NextPlan = c.next.plan
		v.HeldBy = "the plan " + c.next.plan
	}
	return v
}

// agreed reports whether enough reports, this one among them, or enough days ask
// for a change.
func (c claim) agreed(earlier, days int, rules record.ReportRules) bool {
	return earlier+1 >= rules.AgreeReports || days >= rules.AgreeDays
}

// relief lowers the allowance of a plan that is surely not paid, where the engine
// is over what it may be asked for and the plan's users would be no worse off by
// the goal. A paid plan's stays, and the smaller one is something to look at.
func (c claim) relief(v record.ReportVerdict, rules record.ReportRules) record.ReportVerdict {
	if v.LookAt == nil || !c.unpaid || !c.engine.over || len(c.unfilled(rules)) > 0 {
		return v
	}
	if !c.agreed(c.relieved, c.whatIf.Days, rules) {
		v.HeldBy = "reports and days that agree"
		return v
	}
	v.Word, v.Keep, v.Target, v.Uncapped = record.Lower, "", v.LookAt, v.LookAt
	v.LookAt = nil
	return v
}

// rows is the decision by dimension.
func (c claim) rows(a aim, v record.ReportVerdict, rules record.ReportRules) []record.ReportDimension {
	of := []struct {
		dimension record.Dimension
		today     func() *int64
		cell      func(record.Cell) int64
		unit      string
	}{
		{record.DimensionRate, func() *int64 { return &c.today.RequestsPerMinute }, func(x record.Cell) int64 { return x.Rate }, "a minute"},
		{record.DimensionBurst, func() *int64 { return &c.today.Burst }, func(x record.Cell) int64 { return x.Burst }, "of burst"},
		{record.DimensionConcurrency, c.cap, func(x record.Cell) int64 { return x.Concurrency }, "at a time"},
	}
	list := []record.ReportDimension{}
	for _, d := range of {
		row := record.ReportDimension{Dimension: d.dimension, Word: record.NotEnoughEvidence, HeldBy: v.HeldBy}
		if c.today != nil {
			row.Today = copied(d.today())
		}
		if d.dimension == record.DimensionConcurrency {
			if why := c.noPlaces(); why != "" {
				row.HeldBy, row.Why = "durations", why
				list = append(list, row)
				continue
			}
		}
		at := func(x *record.Cell) *int64 {
			if x == nil {
				return nil
			}
			n := d.cell(*x)
			return &n
		}
		row.Uncapped = at(v.Uncapped)
		if row.Uncapped == nil && v.Keep == record.KeepGoalMet {
			row.Uncapped = copied(row.Today)
		}
		if row.Target = at(v.Target); v.Word == record.Keep {
			row.Target = copied(row.Today)
		}
		if len(a.course) > 0 && *row.Uncapped > *row.Today {
			r := widened(max(*row.Today, d.cell(c.least(a.course, rules))), *row.Uncapped, c.whatIf.Days)
			r[0] = max(r[0], *row.Today)
			row.Range = &r
		}
		row.Word, row.Why = c.word(row, v)
		if row.Word == record.Keep && row.Uncapped != nil && *row.Uncapped == *row.Today {
			row.HeldBy = ""
		}
		if row.Range != nil {
			row.Why += fmt.Sprintf(" After %s of traffic the goal alone may take anything from %s to %s %s.",
				length(c.whatIf), figure.Grouped(row.Range[0]), figure.Grouped(row.Range[1]), d.unit)
		}
		list = append(list, row)
	}
	return list
}

// least is the first cell of a course whose share of users is enough by itself,
// whatever its interval.
func (c claim) least(course []record.Cell, rules record.ReportRules) record.Cell {
	for _, x := range course {
		if x.UsersOKShare >= rules.UsersOK {
			return x
		}
	}
	return course[len(course)-1]
}

// word is what is said of one dimension, and why.
func (c claim) word(row record.ReportDimension, v record.ReportVerdict) (record.Reassessment, string) {
	if v.Word == record.NotEnoughEvidence {
		return v.Word, capital(strings.Join(v.Missing, "; ")) + "."
	}
	switch {
	case row.Uncapped != nil && *row.Uncapped == *row.Today:
		why := "It is enough as it is."
		if v.Keep != record.KeepGoalMet {
			why = "The goal takes no more of it."
		}
		return record.Keep, why
	case v.Word == record.Raise && *row.Target > *row.Today:
		why := "It is the smallest with which enough users are OK"
		if v.HeldBy != "" {
			why += ", as far as " + v.HeldBy + " allows"
		}
		return record.Raise, why + "."
	case v.Word == record.Lower && *row.Target < *row.Today:
		return record.Lower, "The engine is over what it may be asked for, and enough users are OK with less."
	}
	return record.Keep, cmp.Or(map[record.KeepReason]string{
		record.KeepGoalMet:  "It is enough as it is.",
		record.KeepTooFew:   "More would spare too few users.",
		record.KeepNextPlan: "More is what the plan " + v.NextPlan + " is for.",
		record.KeepBeyond:   "No allowance that was tried is enough.",
		record.KeepCapacity: "The engine has no room for more.",
		record.KeepUnagreed: "Too few reports and days ask for more.",
		record.KeepOther:    "Paid operations run out first.",
	}[v.Keep], "It stays.")
}

// cap is today's concurrency; nil: unknown.
func (c claim) cap() *int64 {
	if c.today.Concurrency == 0 {
		return nil
	}
	return &c.today.Concurrency
}

// noPlaces says why nothing can be said on concurrency.
func (c claim) noPlaces() string {
	switch {
	case c.today == nil || c.today.Concurrency == 0:
		return "Today's concurrency is unknown: a plan map or brimline's API log names it."
	case c.whatIf == nil:
		return "There is no recorded traffic."
	case len(c.whatIf.Caps) == 0:
		return "The traffic has no durations that show which requests were in flight together: a log with durations in milliseconds does."
	}
	return ""
}

func copied(n *int64) *int64 {
	if n == nil {
		return nil
	}
	m := *n
	return &m
}
