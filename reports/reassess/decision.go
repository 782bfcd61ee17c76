package reassess

import (
	"fmt"
	"math"
	"slices"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// S0, the decision. First the aim: the smallest allowance on the ladder that is
// enough for the plan's users, whatever else may be said. Then what holds it: the
// next plan, the engine, too little evidence, too few users, too few reports.

// claim is all that the decision on one plan rests on.
type claim struct {
	plan     string
	today    *record.ReportAllowance // nil: unknown
	unpaid   bool                    // surely so
	next     *neighbour              // the plan above; nil: none is known
	whatIf   *record.ReportWhatIf    // nil: no traffic was recorded
	evidence []record.ReportEvidence
	binding  *record.ReportBinding
	earlier  int // reports that asked for a raise from today's allowance
	relieved int // and that asked for less
	engine   engineToday
}

// neighbour is another plan and what it allows.
type neighbour struct {
	plan      string
	allowance record.ReportAllowance
}

// engineToday is whether the engine holds today's peak.
type engineToday struct {
	known, over bool
	found       string
}

// aim is what the users' goal alone asks for.
type aim struct {
	verdict record.ReportVerdict
	course  []record.Cell // from the smallest raise up to the uncapped target; none: no raise is asked for
}

// aim finds the uncapped target: the first cell of the first course on which
// enough users are surely OK.
func (c claim) aim(rules record.ReportRules) aim {
	v := record.ReportVerdict{Word: record.NotEnoughEvidence, Because: []string{}, Missing: c.lacking(rules)}
	if c.whatIf == nil || c.today == nil || c.whatIf.Refused != "" {
		v.HeldBy = "recorded traffic"
		if c.whatIf != nil && c.whatIf.Refused == "" {
			v.HeldBy = "today's allowance"
		}
		return aim{verdict: v}
	}
	v.Today = cellAt(c.whatIf, *c.today)
	if len(v.Missing) > 0 {
		v.HeldBy = "too little traffic"
		return aim{verdict: v}
	}
	with := func(x record.Cell) bool { return rules.Meets(x.Rejections) }
	without := func(x record.Cell) bool {
		return x.WithoutRefused == nil && with(x) || x.WithoutRefused != nil && rules.Meets(*x.WithoutRefused)
	}
	if with(*v.Today) != without(*v.Today) {
		v.HeldBy = "attempts refused at the time"
		v.Missing = append(v.Missing, fmt.Sprintf(
			"it is unknown whether the %s refused at the time would have been made anyway: with them %s of the %ss are OK, without them %s, and the goal of %s lies between",
			figure.Count(c.whatIf.AlreadyRefused, "attempt"), figure.Short(v.Today.UsersOKShare), who(c.whatIf), figure.Short(v.Today.WithoutRefused.UsersOKShare), figure.Short(rules.UsersOK)))
		return aim{verdict: v}
	}
	if with(*v.Today) {
		v.Word, v.Keep = record.Keep, record.KeepGoalMet
		v.LookAt = smaller(policyLine(c.whatIf, rules.Burst), *c.today, func(x record.Cell) bool { return with(x) && without(x) })
		return aim{verdict: v}
	}
	for _, course := range c.courses(rules) {
		i := slices.IndexFunc(course, with)
		if i < 0 {
			continue
		}
		v.Uncapped = &course[i]
		if j := slices.IndexFunc(course[:i], without); j >= 0 {
			v.WithoutRefused = &course[j]
		}
		v.Alternatives = c.alternatives(*v.Uncapped, rules, with)
		return aim{v, course[:i+1]}
	}
	v.Word, v.Keep, v.HeldBy = record.Keep, record.KeepBeyond, "the largest allowance that was tried"
	return aim{verdict: v}
}

// courses are the ways up from today's allowance, each from the smallest raise
// on: rate and burst together, concurrency alone, all three. What most rejections
// are for comes first.
func (c claim) courses(rules record.ReportRules) (list [][]record.Cell) {
	up := func(cells []record.Cell, will func(record.Cell) bool) []record.Cell {
		cells = slices.DeleteFunc(slices.Clone(cells), func(x record.Cell) bool {
			return x.Rate < c.today.RequestsPerMinute || x.Burst < c.today.Burst || x.Concurrency < c.concurrency() || !will(x)
		})
		slices.SortStableFunc(cells, smallestFirst)
		return cells
	}
	today := cellAt(c.whatIf, *c.today)
	line := up(policyLine(c.whatIf, rules.Burst), func(x record.Cell) bool {
		return x.Concurrency == c.concurrency() && x.Rate > c.today.RequestsPerMinute
	})
	if rules.Burst == record.BurstFree {
		line = up(c.whatIf.Grid, func(x record.Cell) bool {
			return x.Concurrency == c.concurrency() && (x.Rate != today.Rate || x.Burst != today.Burst)
		})
	}
	places := up(c.whatIf.Grid, func(x record.Cell) bool {
		return x.Rate == today.Rate && x.Burst == today.Burst && x.Concurrency > c.concurrency()
	})
	all := up(c.whatIf.Grid, func(x record.Cell) bool {
		return x.Concurrency > c.concurrency() && x.Rate > today.Rate && (rules.Burst == record.BurstFree || x.Burst == burstOf(x.Rate, divisor(rules.Burst, c.whatIf)))
	})
	if today.RejectedConcurrency > today.RejectedRate {
		return [][]record.Cell{places, line, all}
	}
	return [][]record.Cell{line, places, all}
}

// concurrency is today's cap as the what-if replayed it; 0: it was not.
func (c claim) concurrency() int64 {
	if len(c.whatIf.Caps) == 0 {
		return 0
	}
	return c.today.Concurrency
}

// alternatives are targets whose burst follows the rate otherwise.
func (c claim) alternatives(target record.Cell, rules record.ReportRules, will func(record.Cell) bool) (list []record.Cell) {
	for _, other := range c.whatIf.Lines {
		if x := larger(other.Cells, *c.today, will); x != nil && other.Divisor != divisor(rules.Burst, c.whatIf) &&
			(x.Rate != target.Rate || x.Burst != target.Burst) && target.Rate > c.today.RequestsPerMinute {
			list = append(list, *x)
		}
	}
	return list
}

// lacking lists what an answer needs and the inputs do not have.
func (c claim) lacking(rules record.ReportRules) []string {
	list, w := []string{}, c.whatIf
	if w == nil {
		return append(list, "no recorded traffic: a load run shows what the server does, not what users need")
	}
	if w.Refused != "" {
		return append(list, w.Refused)
	}
	if c.today == nil {
		list = append(list, "today's allowance is unknown: the log does not name it, --allowance RATE/BURST or --plan-map does")
	}
	if w.Users < rules.MinUsers {
		list = append(list, fmt.Sprintf("%s, where %d are needed", figure.Count(int64(w.Users), who(w)), rules.MinUsers))
	}
	if w.Days < rules.MinDays {
		list = append(list, fmt.Sprintf("%s of traffic, where %d days are needed", length(w), rules.MinDays))
	}
	return list
}

// unfilled is the required kinds of evidence that nothing fills.
func (c claim) unfilled(rules record.ReportRules) (list []record.ReportEvidence) {
	for _, e := range c.evidence {
		if e.Missing != "" && slices.Contains(rules.Required, e.Kind) {
			list = append(list, e)
		}
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

// below is the cells of a course that take nothing from the next plan: fewer
// requests a minute than it, and no more of the rest.
func (c claim) below(course []record.Cell) []record.Cell {
	if c.next == nil {
		return course
	}
	a := c.next.allowance
	return slices.DeleteFunc(slices.Clone(course), func(x record.Cell) bool {
		return x.Rate >= a.RequestsPerMinute || x.Burst > max(a.Burst, c.today.Burst) || a.Concurrency > 0 && x.Concurrency > a.Concurrency
	})
}

// widened is where the uncapped target may be: what the share itself would take,
// without its interval, up to the target and a day's worth more, as a history of
// so many days widens it (the rule of the vertical pod autoscaler).
func widened(low, high int64, days int) [2]int64 {
	d := float64(max(days, 1))
	return [2]int64{
		int64(math.Floor(float64(low) * math.Pow(1+0.001/d, -2))),
		int64(math.Ceil(float64(high) * (1 + 1/d))),
	}
}
