package measure

import (
	"time"

	"github.com/invoicespec/brimline/reports/record"
)

// second is what happened in one second of the run.
type second struct {
	due, sent, admitted, rejectedRate, rejectedConcurrency, dropped, heldOff int64

	answered      int64 // in all
	p50, p99, max int64 // of what was admitted, in microseconds
}

// seconds are those of one plan. Of a second no more is kept than its figures:
// only the last two have histograms, since answers are counted in the order in
// which they came, or nearly. What is counted later still is missing from them.
type seconds struct {
	list []second
	open [2]latency // by second, even and odd
	last int        // the latest second that has a histogram
}

// at is the second of an instant, good until the next call.
func (s *seconds) at(instant time.Duration) *second {
	i := int(max(0, instant) / time.Second)
	for len(s.list) <= i {
		s.list = append(s.list, second{})
	}
	return &s.list[i]
}

// time notes how long an admission took.
func (s *seconds) time(a Answer) {
	i := int(max(0, a.Done) / time.Second)
	for ; s.last < i; s.last++ { // two seconds on nothing of this one is left
		s.close(s.last - 1)
	}
	if i > s.last-len(s.open) {
		s.open[i%len(s.open)].record(a.Done - a.Due)
	}
}

// close keeps the figures of a second.
func (s *seconds) close(i int) {
	if i < 0 {
		return
	}
	l := &s.open[i%len(s.open)]
	q := l.quantiles()
	if q.Count == 0 {
		return
	}
	s.list[i].p50, s.list[i].p99, s.list[i].max = q.P50US, q.P99US, q.MaxUS
	l.reset()
}

// finish keeps the figures of the seconds that are still open.
func (s *seconds) finish() record.RunSeconds {
	s.close(s.last - 1)
	if len(s.list) > s.last {
		s.close(s.last)
	}
	column := func(of func(second) int64) []int64 {
		list := make([]int64, len(s.list))
		for i, at := range s.list {
			list[i] = of(at)
		}
		return list
	}
	return record.RunSeconds{
		Due:                 column(func(s second) int64 { return s.due }),
		Sent:                column(func(s second) int64 { return s.sent }),
		Admitted:            column(func(s second) int64 { return s.admitted }),
		RejectedRate:        column(func(s second) int64 { return s.rejectedRate }),
		RejectedConcurrency: column(func(s second) int64 { return s.rejectedConcurrency }),
		Dropped:             column(func(s second) int64 { return s.dropped }),
		Other:               column(func(s second) int64 { return s.answered - s.admitted - s.rejectedRate - s.rejectedConcurrency }),
		HeldOff:             column(func(s second) int64 { return s.heldOff }),
		P50US:               column(func(s second) int64 { return s.p50 }),
		P99US:               column(func(s second) int64 { return s.p99 }),
		MaxUS:               column(func(s second) int64 { return s.max }),
	}
}
