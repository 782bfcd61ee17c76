package measure

import (
	"fmt"
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
}

func (l *latency) record(d time.Duration) {
	us := min(max(0, d), longest).Microseconds()
	if l.histogram == nil {
		l.histogram = hdrhistogram.New(1, longest.Microseconds(), 3)
		l.least, l.most = us, us
	}
	l.least, l.most = min(l.least, us), max(l.most, us)
	_ = l.histogram.RecordValue(us) // in range
}

// at is a quantile by nearest rank, never outside what was recorded.
func (l *latency) at(percent float64) int64 {
	return min(max(l.histogram.ValueAtPercentile(percent), l.least), l.most)
}

// quantiles are the figures alone, without the histogram.
func (l *latency) quantiles() record.Quantiles {
	if l.histogram == nil {
		return record.Quantiles{}
	}
	return record.Quantiles{
		Count: l.histogram.TotalCount(), MinUS: l.least, MaxUS: l.most,
		P50US: l.at(50), P90US: l.at(90), P95US: l.at(95), P99US: l.at(99), P999US: l.at(99.9),
	}
}

// whole is everything, for the record.
func (l *latency) whole() (record.Quantiles, error) {
	h := l.histogram
	if h == nil {
		h = hdrhistogram.New(1, longest.Microseconds(), 3)
	}
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return record.Quantiles{}, fmt.Errorf("encode a histogram: %w", err)
	}
	q := l.quantiles()
	q.Histogram = string(text)
	return q, nil
}
