package threshold

import (
	"fmt"

	"github.com/invoicespec/brimline/reports/record"
)

// When a share, a mean or a quantile ends a run: it was broken at so many looks
// in a row, each on enough samples for the figure to mean something.
const (
	LooksInARow = 5
	fewest      = 100 // samples
	fewest99    = 1_000
	fewest999   = 10_000
)

// Watch looks at a run while it goes on, once a second, and says when a
// threshold of it can no longer hold, or has surely been broken:
//
//   - a count above its bound, a maximum above or a minimum below it, and a rate
//     per second that the planned length does not bring below it, at once;
//   - a share, a mean or a quantile at [LooksInARow] looks in a row, on 100
//     samples at least, 1,000 for p99, 10,000 for p99.9; a share that must be 0
//     at once;
//   - a count or a rate per second that is yet too small never: more may come.
type Watch struct {
	list   []Threshold
	broken []int // looks in a row, by threshold
}

// NewWatch watches for these thresholds.
func NewWatch(list []Threshold) *Watch {
	return &Watch{list: list, broken: make([]int, len(list))}
}

// Outcomes are those whose times are looked at, which a record of a run that goes
// on must be able to merge.
func (w *Watch) Outcomes() []record.Outcome {
	var list []record.Outcome
	for _, t := range w.list {
		if t.measure == latency {
			list = append(list, subjectOf(t.subject).outcomes...)
		}
	}
	return list
}

// Look says which threshold ends the run, as it stands; ok: one does. The record
// needs no more than its plans and its planned length.
func (w *Watch) Look(r record.Run) (breach record.RunThreshold, ok bool, err error) {
	for i, t := range w.list {
		s, err := t.in(r)
		if err != nil {
			return record.RunThreshold{}, false, fmt.Errorf("%s: %w", t, err)
		}
		v := t.verdict(s, false)
		if v.Verdict != record.ThresholdBroken {
			w.broken[i] = 0
			continue
		}
		if s.samples >= t.enough() {
			w.broken[i]++
		}
		if t.lost(s) || w.broken[i] >= LooksInARow && t.settles() {
			return v, true, nil
		}
	}
	return record.RunThreshold{}, false, nil
}

// lost reports whether a broken threshold can no longer hold, whatever comes.
func (t Threshold) lost(s seen) bool {
	over := s.value.rational().Cmp(t.value.rational()) >= 0 && t.compare != ">" && t.compare != ">="
	switch {
	case t.measure == count, t.measure == perSecond:
		return over
	case t.measure == rate:
		return over && t.value.num == 0
	case t.stat == "max":
		return over
	case t.stat == "min":
		return !over
	}
	return false
}

// settles reports whether the figure comes to rest as samples come in.
func (t Threshold) settles() bool {
	return t.measure == rate || t.measure == latency && t.stat != "min" && t.stat != "max"
}

func (t Threshold) enough() int64 {
	switch t.stat {
	case "p99":
		return fewest99
	case "p99.9":
		return fewest999
	}
	return fewest
}
