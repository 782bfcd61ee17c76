package reassess

import (
	"cmp"
	"context"
	"errors"
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

// whatIf replays the plan's traffic under a ladder of allowances.
func (s *subject) whatIf() (record.ReportWhatIf, error) {
	w := record.ReportWhatIf{
		Source: s.source, Pool: pool(s.log.Quality.Format), Days: days(s.log), LeftOut: s.leftOut, Policy: policy(s.allowance),
		Lines: []record.ReportLine{}, Rates: []int64{}, Bursts: []int64{}, Grid: []record.Cell{}, BurstNeeded: []record.Needs{},
	}
	if n := len(s.log.Attempts); n > 0 {
		w.SpanS = float64(s.log.Attempts[n-1].At-s.log.Attempts[0].At) / 1e6
	}
	if len(s.log.Attempts) == 0 && s.leftOut > 0 {
		w.Refused = "every user had another allowance for a part of the log"
		return w, nil
	}
	rates, q := window(0, usualLeast, usualMost), replay.Question{}
	q.Rates, q.Bursts = window(0, usualGridLeast, usualGridMost), window(0, usualGridLeast, usualGridMost)
	if a := s.allowance; a != nil {
		rates = window(a.RequestsPerMinute, ceil(a.RequestsPerMinute, below), a.RequestsPerMinute*curveUp)
		q.Rates = window(a.RequestsPerMinute, ceil(a.RequestsPerMinute, gridBelow), a.RequestsPerMinute*gridUp)
		q.Bursts = window(a.Burst, ceil(a.Burst, gridBelow), a.Burst*gridUp)
	}
	for _, d := range divisors {
		for _, rate := range rates {
			q.Pairs = append(q.Pairs, [2]int64{rate, burstOf(rate, d)})
		}
	}
	r, err := replay.Run(context.Background(), s.log, q)
	if refused := (*replay.RefusedError)(nil); errors.As(err, &refused) {
		w.Refused = refused.Why
	} else if err != nil {
		return w, err
	}
	w.Users, w.Attempts, w.AlreadyRefused = r.Users, r.Attempts, r.AlreadyRefused
	if w.Refused != "" {
		return w, nil
	}
	w.Rates, w.Bursts, w.BurstNeeded = q.Rates, q.Bursts, r.BurstNeeded
	grid := len(q.Rates) * len(q.Bursts)
	w.Grid = r.Cells[:grid]
	for i, d := range divisors {
		w.Lines = append(w.Lines, record.ReportLine{Divisor: d, Cells: r.Cells[grid+i*len(rates) : grid+(i+1)*len(rates)]})
	}
	return w, nil
}

func ceil(n, by int64) int64 { return (n + by - 1) / by }

func pool(f record.LogFormat) record.Pool {
	if f == record.FormatAPI {
		return record.PoolUser
	}
	return record.PoolClient
}

// cellAt is the grid's cell of an allowance.
func cellAt(w *record.ReportWhatIf, a record.ReportAllowance) *record.Cell {
	for i := range w.Grid {
		if c := &w.Grid[i]; c.Rate == a.RequestsPerMinute && c.Burst == a.Burst {
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

// policyLine is the cells of the line whose bursts follow the rate as today's.
func policyLine(w *record.ReportWhatIf) []record.Cell {
	for _, l := range w.Lines {
		if l.Divisor == w.Policy {
			return l.Cells
		}
	}
	return nil
}
