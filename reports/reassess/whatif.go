package reassess

import (
	"cmp"
	"slices"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/replay"
)

// divisors are the ways in which a burst follows its rate.
var divisors = [...]int64{1, 2, 3}

// ladder is the rates and bursts that are tried, each a round number some half
// above the one before.
func ladder() []int64 {
	steps := []int64{1, 2, 3, 5, 7}
	for decade := int64(1); decade < 100_000; decade *= 10 {
		for _, n := range [...]int64{10, 15, 20, 30, 45, 60, 75, 90} {
			steps = append(steps, n*decade)
		}
	}
	return append(steps, 1_000_000)
}

// window is the steps of the ladder within the bounds, and n itself.
func window(n, least, most int64) []int64 {
	steps := slices.DeleteFunc(ladder(), func(step int64) bool { return step < least || step > most })
	if n > 0 && !slices.Contains(steps, n) {
		steps = append(steps, n)
		slices.Sort(steps)
	}
	return steps
}

// How far around today's allowance is looked. The curve goes far enough up for a
// plan that is much too tight; the grid stays small enough to be read.
const (
	below     = 4
	curveUp   = 20
	gridBelow = 2
	gridUp    = 6
)

// Without today's allowance, what small plans allow.
const (
	usualLeast, usualMost         = 5, 300
	usualGridLeast, usualGridMost = 10, 100
)

func burstOf(rate, divisor int64) int64 { return max(1, rate/divisor) }

// tried is what is asked of one plan, and where its answers belong.
type tried struct {
	rates, gridRates, bursts, caps []int64
	grid, lines                    []record.ReportAllowance
}

// try lays the ladder around a plan's allowance of today.
func (s *subject) try() tried {
	t := tried{rates: window(0, usualLeast, usualMost), gridRates: window(0, usualGridLeast, usualGridMost), bursts: window(0, usualGridLeast, usualGridMost), caps: []int64{0}}
	today := s.told()
	var places int64
	if today != nil {
		t.rates = window(today.RequestsPerMinute, ceil(today.RequestsPerMinute, below), today.RequestsPerMinute*curveUp)
		t.gridRates = window(today.RequestsPerMinute, ceil(today.RequestsPerMinute, gridBelow), today.RequestsPerMinute*gridUp)
		t.bursts = window(today.Burst, ceil(today.Burst, gridBelow), today.Burst*gridUp)
		if places = today.Concurrency; places > 0 {
			t.caps = slices.Compact([]int64{ceil(places, 2), places, places + ceil(places, 2), 2 * places, 4 * places})
		}
	}
	for _, r := range t.gridRates {
		for _, b := range t.bursts {
			for _, c := range t.caps {
				t.grid = append(t.grid, record.ReportAllowance{RequestsPerMinute: r, Burst: b, Concurrency: c})
			}
		}
	}
	for _, d := range divisors {
		for _, r := range t.rates {
			t.lines = append(t.lines, record.ReportAllowance{RequestsPerMinute: r, Burst: burstOf(r, d), Concurrency: places})
		}
	}
	return t
}

// ask is the question of the replay.
func (s *subject) ask(t tried) replay.Ask {
	a := replay.Ask{Cells: slices.Concat(t.grid, t.lines), Rates: t.gridRates}
	today := s.told()
	if today == nil {
		return a
	}
	a.Each = []record.ReportAllowance{*today}
	if s.next != nil {
		next := *s.next.allowance
		if today.Concurrency == 0 {
			next.Concurrency = 0
		}
		a.Each = append(a.Each, next)
	}
	for _, r := range t.gridRates {
		a.ClosedLoop = append(a.ClosedLoop, record.ReportAllowance{RequestsPerMinute: r, Burst: burstOf(r, policy(today)), Concurrency: today.Concurrency})
	}
	return a
}

// whatIf is S5 but for the change to the target.
func (s *subject) whatIf(t tried, a replay.Answer) record.ReportWhatIf {
	w := record.ReportWhatIf{
		Source: s.src.name, Pool: s.src.pool(), Days: s.seen.Days, SpanS: float64(s.seen.Last-s.seen.First) / 1e6,
		Users: s.seen.Users, Attempts: s.seen.Attempts, AlreadyRefused: s.seen.Refused, LeftOut: s.seen.LeftOut, Policy: policy(s.allowance),
		Refused: s.src.described.Refused, Lines: []record.ReportLine{}, Rates: []int64{}, Bursts: []int64{}, Grid: []record.Cell{},
		BurstNeeded: []record.Needs{}, Caps: []int64{}, Closed: []record.ReportClosed{},
	}
	if w.Refused == "" && w.Attempts == 0 && w.LeftOut > 0 {
		w.Refused = "every user had another allowance for as long as they were on the plan"
	}
	if w.Refused != "" {
		return w
	}
	w.Rates, w.Bursts, w.BurstNeeded = t.gridRates, t.bursts, append(w.BurstNeeded, a.BurstNeeded...)
	if t.caps[0] > 0 {
		w.Caps = t.caps
	}
	w.Grid, w.Closed = a.Cells[:len(t.grid)], append(w.Closed, a.ClosedLoop...)
	for i, d := range divisors {
		from := len(t.grid) + i*len(t.rates)
		w.Lines = append(w.Lines, record.ReportLine{Divisor: d, Cells: a.Cells[from : from+len(t.rates)]})
	}
	return w
}

func ceil(n, by int64) int64 { return (n + by - 1) / by }

// cellAt is the grid's cell of an allowance.
func cellAt(w *record.ReportWhatIf, a record.ReportAllowance) *record.Cell {
	for i := range w.Grid {
		if c := &w.Grid[i]; c.Rate == a.RequestsPerMinute && c.Burst == a.Burst && (c.Concurrency == 0 || c.Concurrency == a.Concurrency) {
			return c
		}
	}
	return nil
}

// policy is the divisor by which today's burst follows the rate, or most nearly
// so.
func policy(today *record.ReportAllowance) int64 {
	if today == nil {
		return divisors[0]
	}
	away := func(divisor int64) int64 {
		d := today.Burst - burstOf(today.RequestsPerMinute, divisor)
		return max(d, -d)
	}
	return slices.MinFunc(divisors[:], func(a, b int64) int { return cmp.Compare(away(a), away(b)) })
}

// divisor is the one by which a target's burst follows its rate.
func divisor(policy record.BurstPolicy, w *record.ReportWhatIf) int64 {
	switch policy {
	case record.BurstRate:
		return divisors[0]
	case record.BurstHalf:
		return divisors[1]
	case record.BurstThird:
		return divisors[2]
	}
	return w.Policy
}

// policyLine is the cells of the line whose bursts follow the rate by a policy.
func policyLine(w *record.ReportWhatIf, policy record.BurstPolicy) []record.Cell {
	for _, l := range w.Lines {
		if l.Divisor == divisor(policy, w) {
			return l.Cells
		}
	}
	return nil
}

// smallestFirst orders cells by rate, then burst, then concurrency.
func smallestFirst(a, b record.Cell) int {
	return cmp.Or(cmp.Compare(a.Rate, b.Rate), cmp.Compare(a.Burst, b.Burst), cmp.Compare(a.Concurrency, b.Concurrency))
}
