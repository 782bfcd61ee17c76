package reassess

import (
	"fmt"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// question is all that a verdict rests on.
type question struct {
	today  *record.ReportAllowance // nil: unknown
	whatIf *record.ReportWhatIf    // nil: no traffic was recorded
	next   *subject                // the plan above; nil: none is known
}

// judge decides: the smallest allowance on the ladder, with the burst in today's
// proportion to the rate, under which enough users are OK; today's if it is
// enough, and no answer where something is missing that an answer needs.
func judge(q question, rules record.ReportRules) record.ReportVerdict {
	v := record.ReportVerdict{Word: record.NotEnoughEvidence, Because: []string{}, Missing: lacking(q, rules)}
	if q.whatIf == nil || q.today == nil || q.whatIf.Refused != "" {
		return v
	}
	v.Today = cellAt(q.whatIf, *q.today)
	if len(v.Missing) > 0 {
		return v
	}
	with := func(c record.Cell) bool { return rules.Meets(c.Rejections) }
	without := func(c record.Cell) bool {
		return c.WithoutRefused == nil && with(c) || c.WithoutRefused != nil && rules.Meets(*c.WithoutRefused)
	}
	line := policyLine(q.whatIf)
	if with(*v.Today) != without(*v.Today) {
		v.Missing = append(v.Missing, fmt.Sprintf(
			"it is unknown whether the %s refused at the time would have been made anyway: with them %s of the %ss are OK, without them %s, and the goal of %s lies between",
			figure.Count(q.whatIf.AlreadyRefused, "attempt"), figure.Short(v.Today.UsersOKShare), who(q.whatIf), figure.Short(v.Today.WithoutRefused.UsersOKShare), figure.Short(rules.UsersOK)))
		return v
	}
	if with(*v.Today) {
		v.Word, v.Keep = record.Keep, record.KeepGoalMet
		v.LookAt = smaller(line, *q.today, func(c record.Cell) bool { return with(c) && without(c) })
		return v
	}
	target := larger(line, *q.today, with)
	if target == nil {
		v.Word, v.Keep = record.Keep, record.KeepBeyond
		return v
	}
	v.Target, v.Moved = target, v.Today.UsersAffected-target.UsersAffected
	switch {
	case q.next != nil && target.Rate >= q.next.allowance.RequestsPerMinute:
		v.Word, v.Keep, v.NextPlan = record.Keep, record.KeepNextPlan, q.next.plan
	case v.Moved < rules.MinMoved:
		v.Word, v.Keep = record.Keep, record.KeepTooFew
	default:
		v.Word = record.Raise
		if c := larger(line, *q.today, without); c != nil && c.Rate < target.Rate {
			v.WithoutRefused = c
		}
		for _, other := range q.whatIf.Lines {
			if c := larger(other.Cells, *q.today, with); c != nil && other.Divisor != q.whatIf.Policy {
				v.Alternatives = append(v.Alternatives, *c)
			}
		}
	}
	return v
}

// lacking lists what an answer needs and the inputs do not have.
func lacking(q question, rules record.ReportRules) []string {
	list := []string{}
	if q.whatIf == nil {
		return append(list, "no recorded traffic: a load run shows what the server does, not what users need")
	}
	if q.whatIf.Refused != "" {
		return append(list, q.whatIf.Refused)
	}
	if q.today == nil {
		list = append(list, "today's allowance is unknown: the log does not name it, --allowance RATE/BURST does")
	}
	if q.whatIf.Users < rules.MinUsers {
		list = append(list, fmt.Sprintf("%s, where %d are needed", figure.Count(int64(q.whatIf.Users), who(q.whatIf)), rules.MinUsers))
	}
	if q.whatIf.Days < rules.MinDays {
		list = append(list, fmt.Sprintf("%s of traffic, where %d days are needed", length(q.whatIf), rules.MinDays))
	}
	return list
}

// larger is the smallest cell above today's that will do: no less in either
// dimension. Nil: none.
func larger(line []record.Cell, today record.ReportAllowance, will func(record.Cell) bool) *record.Cell {
	for i, c := range line {
		if c.Rate > today.RequestsPerMinute && c.Burst >= today.Burst && will(c) {
			return &line[i]
		}
	}
	return nil
}

// smaller is the smallest cell below today's from which on every one will do.
func smaller(line []record.Cell, today record.ReportAllowance, will func(record.Cell) bool) (least *record.Cell) {
	for i := len(line) - 1; i >= 0; i-- {
		c := &line[i]
		if c.Rate >= today.RequestsPerMinute || c.Burst > today.Burst {
			continue
		}
		if !will(*c) {
			break
		}
		least = c
	}
	return least
}

// gates lists the conditions and how they came out.
func gates(q question, v record.ReportVerdict, rules record.ReportRules) []record.ReportGate {
	list := []record.ReportGate{}
	add := func(name, need, found string, state record.GateState) {
		list = append(list, record.ReportGate{Name: name, Need: need, Found: found, State: state})
	}
	holds := func(ok bool) record.GateState {
		if ok {
			return record.GateHolds
		}
		return record.GateFails
	}
	if q.today == nil {
		add("today's allowance", "known", "unknown", record.GateMissing)
	} else {
		add("today's allowance", "known", pair(q.today.RequestsPerMinute, q.today.Burst), record.GateHolds)
	}
	if w := q.whatIf; w == nil {
		add("recorded traffic", "there is some", "none", record.GateMissing)
	} else {
		add("users", fmt.Sprintf("at least %d", rules.MinUsers), figure.Grouped(int64(w.Users)), holds(w.Users >= rules.MinUsers))
		add("days with traffic", fmt.Sprintf("at least %d", rules.MinDays), length(w), holds(w.Days >= rules.MinDays))
	}
	goal := fmt.Sprintf("%s, by the lower bound too", figure.Short(rules.UsersOK))
	for _, c := range []struct {
		name string
		cell *record.Cell
	}{{"today", v.Today}, {"after the raise", v.Target}} {
		if c.cell != nil {
			add("users OK "+c.name+", "+pair(c.cell.Rate, c.cell.Burst), goal,
				fmt.Sprintf("%s, at least %s", figure.Percent(c.cell.UsersOKShare), figure.Percent(c.cell.UsersOK95[0])), holds(rules.Meets(c.cell.Rejections)))
		}
	}
	if v.Target != nil {
		add("users spared by a raise", fmt.Sprintf("at least %d", rules.MinMoved), figure.Grouped(int64(v.Moved)), holds(v.Moved >= rules.MinMoved))
	}
	if v.Today != nil && v.Today.Rejected > 0 {
		add("rejections that are one user's", "below "+figure.Short(rules.TopShare), figure.Short(v.Today.TopShare), holds(v.Today.TopShare < rules.TopShare))
	}
	add("engine at the peak", "70 % of its capacity at most", "not measured", record.GateMissing)
	return list
}

func pair(rate, burst int64) string {
	return figure.Grouped(rate) + "/" + figure.Grouped(burst)
}
