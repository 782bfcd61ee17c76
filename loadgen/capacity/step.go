package capacity

import (
	"fmt"
	"math"
	"time"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/loadgen/threshold"
	"github.com/invoicespec/brimline/reports/record"
)

// What a step is judged by beside its SLO.
const (
	LeastGoodput = 0.98 // of its load has to be admitted
	MostLimited  = 0.2  // of what is offered may be kept away by the rate limit
	MostLate     = 0.01 // of what is offered may the load side fail to send
)

// sums are a step's counts, from its first request to its last.
type sums struct{ offered, limited, late, admitted int64 }

// Measure is the step that a run was, in which a load of so many requests per
// second was asked for and held for so long.
func Measure(r record.Run, asked float64, hold time.Duration, slo []threshold.Threshold) (record.CapacityStep, error) {
	step := record.CapacityStep{Asked: asked, Why: []string{}, SLO: []record.RunThreshold{}}
	var all sums
	var times []record.Quantiles
	for _, p := range r.Plans {
		all.offered += p.Offered
		all.limited += p.RejectedRate + p.HeldOff
		all.late += p.Dropped - p.DroppedBusy
		all.admitted += p.Admitted
		for _, l := range p.Latency {
			if l.Outcome == record.OutcomeAdmitted {
				times = append(times, l.FromDue)
			}
		}
	}
	q, err := record.MergeQuantiles(times...)
	if err != nil {
		return step, err
	}
	step.P50US, step.P99US = q.P50US, q.P99US
	fill(&step, r.Plans, hold)
	told, err := threshold.Evaluate(slo, r)
	step.SLO = append(step.SLO, told...)
	judge(&step, r, all)
	return step, err
}

// fill tells the step's rates from the seconds after its first fifth.
func fill(step *record.CapacityStep, plans []record.RunPlan, hold time.Duration) {
	first, end := int(math.Ceil(hold.Seconds()/5)), int(hold/time.Second)
	step.PerSecond = make([]record.CapacitySecond, max(0, end-first))
	at := func(list []int64, second int) int64 {
		if second < len(list) {
			return list[second]
		}
		return 0
	}
	for i := range step.PerSecond {
		s, n := &step.PerSecond[i], float64(len(step.PerSecond))
		for _, p := range plans {
			due, limited := at(p.PerSecond.Due, first+i), at(p.PerSecond.RejectedRate, first+i)+at(p.PerSecond.HeldOff, first+i)
			s.Load += due - limited
			s.Goodput += at(p.PerSecond.Admitted, first+i)
			step.Offered += float64(due) / n
			step.Limited += float64(limited) / n
		}
		s.Load = max(0, s.Load)
		step.Load += float64(s.Load) / n
		step.Goodput += float64(s.Goodput) / n
	}
}

// judge gives a verdict. Whose fault it is comes first: a load side that did not
// send and users who may not ask say nothing of the target.
func judge(step *record.CapacityStep, r record.Run, all sums) {
	why := func(v record.CapacityVerdict, format string, args ...any) {
		if step.Verdict == "" {
			step.Verdict = v
		}
		if step.Verdict == v {
			step.Why = append(step.Why, fmt.Sprintf(format, args...))
		}
	}
	for _, d := range r.Untold {
		if d.Plan == "" {
			why(record.CapacityGenerator, "%s", d.Why)
		}
	}
	share := func(n int64) float64 { return float64(n) / float64(max(1, all.offered)) }
	if share(all.late) > MostLate && step.Verdict == "" {
		why(record.CapacityGenerator, "this machine failed to send %s of %s in time", figure.Grouped(all.late), figure.Count(all.offered, "request"))
	}
	if share(all.limited) > MostLimited {
		why(record.CapacityLimits, "the rate limit kept %s of what was offered away", figure.Percent(share(all.limited)))
	}
	if load := all.offered - all.limited - all.late; float64(all.admitted) < LeastGoodput*float64(load) {
		why(record.CapacityFails, "%s of %s admitted, %s are asked for", figure.Percent(float64(all.admitted)/float64(load)), figure.Count(load, "request"), figure.Percent(LeastGoodput))
	}
	for _, t := range step.SLO {
		if t.Verdict != record.ThresholdHolds {
			why(record.CapacityFails, "%s: %s", t.Threshold, t.Seen)
		}
	}
	if step.Verdict == "" {
		step.Verdict = record.CapacityHolds
	}
}
