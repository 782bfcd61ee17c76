package reassess

import (
	"context"
	"sort"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/replay"
	"github.com/invoicespec/brimline/reports/roster"
	"github.com/invoicespec/brimline/reports/timeline"
)

// What the log itself says of S2: whom a limiter refused at the time, and for how
// long the server had what was not.

// recorded is one plan's part of a log as it was at the time.
type recorded struct {
	users   []met           // by user; those under an override apart
	own     map[int32]int64 // attempts under an override, by user
	refused int64           // by a limiter at the time
	times   *hdrhistogram.Histogram
	least   int64
	most    int64
	sum     int64
	lost    int64 // 402
	full    int64 // 503 for want of capacity
}

// longestHold bounds what the histogram keeps, in microseconds.
const longestHold = 3_600_000_000

// record reads the attempts once and sorts them by plan.
func recordedBy(ctx context.Context, t replay.Traffic) ([]*recorded, error) {
	plans := make([]*recorded, len(t.Roster.Plans))
	for i := range plans {
		plans[i] = &recorded{users: make([]met, t.Roster.Users), own: map[int32]int64{}, times: hdrhistogram.New(1, longestHold, 3)}
	}
	for batch, err := range t.Attempts.Batches(ctx) {
		if err != nil {
			return nil, err
		}
		for _, a := range batch {
			user := t.Roster.UserOf[a.Pool]
			if user < 0 {
				continue
			}
			phase := phaseAt(t.Roster.Phases[user], a.At)
			r := plans[phase.Plan]
			if phase.Override != nil {
				r.own[user]++
			} else {
				r.users[user].add(a)
			}
			if a.Refused() {
				r.refused++
			} else if a.Hold != timeline.NoHold && phase.Override == nil {
				r.hold(a.Hold)
			}
			switch a.Fate {
			case timeline.OutOfOperations:
				r.lost++
			case timeline.Overloaded:
				r.full++
			}
		}
	}
	return plans, nil
}

// phaseAt is the phase that an instant lies in.
func phaseAt(phases []roster.Phase, at int64) roster.Phase {
	if len(phases) == 1 {
		return phases[0]
	}
	return phases[max(0, sort.Search(len(phases), func(i int) bool { return phases[i].From > at })-1)]
}

func (m *met) add(a timeline.Attempt) {
	m.attempts++
	switch a.Fate {
	case timeline.RefusedRate:
		m.rate++
	case timeline.RefusedConcurrency:
		m.concurrency++
	case timeline.RefusedSomehow:
		m.other++
	}
}

func (r *recorded) hold(us int64) {
	us = min(max(us, 0), longestHold)
	_ = r.times.RecordValue(us) // within its bounds
	if r.times.TotalCount() == 1 {
		r.least = us
	}
	r.least, r.most, r.sum = min(r.least, us), max(r.most, us), r.sum+us
}

// latency is how long the server had the requests that it admitted; nil: the log
// does not tell.
func (r *recorded) latency() *record.ReportLatency {
	if r.times.TotalCount() == 0 {
		return nil
	}
	q := record.QuantilesOf(r.times, r.least, r.most, r.sum)
	return &record.ReportLatency{P50US: q.P50US, P99US: q.P99US, From: "received"}
}

// service is the mean of the same, in seconds.
func (r *recorded) service() *float64 {
	n := r.times.TotalCount()
	if n == 0 {
		return nil
	}
	x := float64(r.sum) / float64(n) / 1e6
	return &x
}
