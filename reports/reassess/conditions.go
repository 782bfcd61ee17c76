package reassess

import (
	"fmt"
	"slices"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// The conditions of S0 and S13, and how each came out.

type conditions []record.ReportGate

func (l *conditions) add(name, need, found string, state record.GateState) {
	*l = append(*l, record.ReportGate{Name: name, Need: need, Found: found, State: state})
}

// holds is a condition of which everything is known.
func holds(ok bool) record.GateState {
	if ok {
		return record.GateHolds
	}
	return record.GateFails
}

// or is state unless ok.
func or(ok bool, state record.GateState) record.GateState {
	if ok {
		return record.GateHolds
	}
	return state
}

// conditions lists those of one plan.
func (c claim) conditions(p record.ReportPlan, x candidate, rules record.ReportRules) conditions {
	l, v := conditions{}, p.Verdict
	if c.today == nil {
		l.add("today's allowance", "known", "unknown", record.GateMissing)
	} else {
		l.add("today's allowance", "known", pair(c.today.RequestsPerMinute, c.today.Burst), record.GateHolds)
	}
	if w := c.whatIf; w == nil {
		l.add("recorded traffic", "there is some", "none", record.GateMissing)
	} else {
		l.add("users", fmt.Sprintf("at least %d", rules.MinUsers), figure.Grouped(int64(w.Users)), or(w.Users >= rules.MinUsers, record.GateMissing))
		l.add("days with traffic", fmt.Sprintf("at least %d", rules.MinDays), length(w), or(w.Days >= rules.MinDays, record.GateMissing))
	}
	for _, kind := range rules.Required {
		i := slices.IndexFunc(c.evidence, func(e record.ReportEvidence) bool { return e.Kind == kind })
		found, state := "filled", record.GateHolds
		if i < 0 || c.evidence[i].Missing != "" {
			found, state = "missing", record.GateMissing
		}
		l.add("evidence: "+string(kind), "filled", found, state)
	}
	if n, judged := wrong(p.Scores); judged {
		l.add("wrong decisions in load runs", "none", figure.Grouped(n), holds(n == 0))
	}
	goal := fmt.Sprintf("%s, by the lower bound too", figure.Short(rules.UsersOK))
	ok := func(name string, x *record.Cell) {
		if x != nil {
			l.add("users OK "+name+", "+pair(x.Rate, x.Burst), goal,
				fmt.Sprintf("%s, at least %s", figure.Percent(x.UsersOKShare), figure.Percent(x.UsersOK95[0])), holds(rules.Meets(x.Rejections)))
		}
	}
	ok("today", v.Today)
	if v.Word == record.Raise || v.Word == record.Lower {
		ok("after the change", v.Target)
	}
	if v.Uncapped != nil && v.Word != record.Lower {
		l.add("users spared by a raise", fmt.Sprintf("at least %d", rules.MinMoved), figure.Grouped(int64(v.Moved)), holds(v.Moved >= rules.MinMoved))
		if x.moved != nil {
			l.add("reports and days that agree", fmt.Sprintf("%d reports or %s", rules.AgreeReports, figure.Count(int64(rules.AgreeDays), "day")),
				fmt.Sprintf("%s, %s", figure.Count(int64(c.earlier+1), "report"), figure.Count(int64(x.moved.Days), "day")), holds(c.agreed(c.earlier, x.moved.Days, rules)))
		}
	}
	if v.Today != nil && v.Today.Rejected > 0 {
		l.add("rejections that are one user's", "below "+figure.Short(rules.TopShare), figure.Short(v.Today.TopShare), or(v.Today.TopShare < rules.TopShare, record.GateNoted))
	}
	return l
}

// wrong is how many decisions of load runs surely were none of the plan's
// limiter; judged: a run tells of it.
func wrong(scores []record.ReportScore) (n int64, judged bool) {
	for _, s := range scores {
		if s.Basis == record.BasisMeasured {
			n, judged = n+s.Wrong(), true
		}
	}
	return n, judged
}

func pair(rate, burst int64) string {
	return figure.Grouped(rate) + "/" + figure.Grouped(burst)
}
