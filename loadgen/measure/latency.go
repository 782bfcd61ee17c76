package measure

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/invoicespec/brimline/reports/record"
)

// longest is the longest time a histogram holds; longer ones count as this.
const longest = 5 * time.Minute

// latency is a distribution of times: to three digits, between microseconds and
// minutes. The zero value is empty and takes no memory to speak of.
type latency struct {
	histogram *hdrhistogram.Histogram
	least     int64 // exactly, like most
	most      int64
	sum       int64
}

func (l *latency) record(d time.Duration) {
	us := min(max(0, d), longest).Microseconds()
	if l.histogram == nil {
		l.histogram = hdrhistogram.New(1, longest.Microseconds(), 3)
		l.least, l.most = us, us
	}
	l.least, l.most = min(l.least, us), max(l.most, us)
	l.sum += us
	_ = l.histogram.RecordValue(us) // in range
}

// reset empties it and keeps its memory.
func (l *latency) reset() {
	if l.histogram != nil {
		l.histogram.Reset()
	}
	l.least, l.most, l.sum = longest.Microseconds(), 0, 0
}

// quantiles are the figures alone, without the histogram.
func (l *latency) quantiles() record.Quantiles {
	if l.histogram == nil {
		return record.Quantiles{}
	}
	return record.QuantilesOf(l.histogram, l.least, l.most, l.sum)
}

// live are the figures with what it holds now, apart from it.
func (l *latency) live() record.Quantiles {
	if l.histogram == nil {
		return record.Quantiles{}
	}
	return l.quantiles().WithLive(l.histogram.Clone())
}

// whole is everything, for the record.
func (l *latency) whole() (record.Quantiles, error) {
	h := l.histogram
	if h == nil {
		h = hdrhistogram.New(1, longest.Microseconds(), 3)
	}
	return l.quantiles().WithHistogram(h)
}
