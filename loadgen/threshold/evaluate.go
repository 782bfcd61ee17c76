package threshold

import (
	"fmt"
	"math/big"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// seen is a threshold's figure in a run.
type seen struct {
	value   fraction // of nothing: den is 0
	samples int64
	text    string // of the figure, or why there is none
}

// Evaluate holds a run against thresholds, in their order. Of a run that ended
// early a count that is too small tells nothing: it might have come.
func Evaluate(list []Threshold, r record.Run) ([]record.RunThreshold, error) {
	var told []record.RunThreshold
	for _, t := range list {
		s, err := t.in(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		told = append(told, t.verdict(s, r.Interrupted))
	}
	return told, nil
}

func (t Threshold) verdict(s seen, early bool) record.RunThreshold {
	v := record.RunThreshold{Threshold: t.text, Verdict: record.ThresholdNoData, Seen: s.text, Samples: s.samples}
	if s.value.den == 0 {
		return v
	}
	v.Value, _ = s.value.rational().Float64()
	order := s.value.rational().Cmp(t.value.rational())
	switch {
	case t.met(order):
		v.Verdict = record.ThresholdHolds
	case early && t.measure == count && order <= 0 && t.compare != "<":
		v.Seen += ", and the run ended early"
	default:
		v.Verdict = record.ThresholdBroken
	}
	return v
}

// met reports whether a figure that compares so to the value is as it should be.
func (t Threshold) met(order int) bool {
	switch t.compare {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case "==":
		return order == 0
	case ">=":
		return order >= 0
	}
	return order > 0
}

// in looks the figure up.
func (t Threshold) in(r record.Run) (seen, error) {
	of := subjectOf(t.subject)
	var sum tally
	var times []record.Quantiles
	for _, p := range r.Plans {
		if t.plan != "" && p.Plan != t.plan {
			continue
		}
		sum = sum.plus(of.tally(p))
		for _, l := range p.Latency {
			for _, o := range of.outcomes {
				if l.Outcome == o {
					times = append(times, t.times(l))
				}
			}
		}
	}
	if t.measure == latency {
		return t.latency(times)
	}
	s := seen{samples: sum.samples}
	switch {
	case sum.blind && sum.n == 0:
		s.text = "none of " + figure.Count(sum.of, "429") + " could be judged"
	case sum.samples == 0:
		s.text = "nothing was counted"
	case t.measure == count:
		s.value, s.text = fraction{sum.n, 1}, figure.Grouped(sum.n)
		if sum.of > 0 {
			s.text += " of " + figure.Grouped(sum.of)
		}
	case t.measure == perSecond:
		window := r.PlannedMS
		if r.Interrupted {
			window = r.ActualMS
		}
		if window > 0 {
			s.value, s.text = fraction{sum.n * 1000, window}, fmt.Sprintf("%.4g/s", float64(sum.n)*1000/float64(window))
		}
	case sum.of == 0:
		s.text = "nothing to be a share of"
	default:
		s.value = fraction{sum.n, sum.of}
		s.text = fmt.Sprintf("%s (%s of %s)", figure.Short(float64(sum.n)/float64(sum.of)), figure.Grouped(sum.n), figure.Grouped(sum.of))
	}
	return s, nil
}

func (t Threshold) times(l record.RunLatency) record.Quantiles {
	switch t.from {
	case service:
		return l.FromSend
	case firstByte:
		return l.FirstByte
	}
	return l.FromDue
}

func (t Threshold) latency(list []record.Quantiles) (seen, error) {
	var q record.Quantiles
	var err error
	switch len(list) {
	case 0:
	case 1:
		q = list[0]
	default:
		if q, err = record.SumQuantiles(list...); err != nil {
			return seen{}, err
		}
	}
	s := seen{samples: q.Count, text: "nothing was timed"}
	if q.Count == 0 {
		return s, nil
	}
	us := map[string]int64{
		"p50": q.P50US, "p90": q.P90US, "p95": q.P95US, "p99": q.P99US, "p99.9": q.P999US,
		"min": q.MinUS, "max": q.MaxUS, "mean": q.SumUS / q.Count,
	}[t.stat]
	s.value = fraction{us, 1}
	if t.stat == "mean" {
		s.value = fraction{q.SumUS, q.Count}
	}
	s.text = fmt.Sprintf("%s (of %s)", figure.Micros(us), figure.Grouped(q.Count))
	return s, nil
}

func (f fraction) rational() *big.Rat { return big.NewRat(f.num, f.den) }
