package record

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Quantiles are by nearest rank, so that each is near a value that occurred and
// none is above the largest.
type Quantiles struct {
	Count     int64  `json:"count"`
	SumUS     int64  `json:"sum_us,omitempty"` // of all values; the mean is this over count
	MinUS     int64  `json:"min_us"`
	P50US     int64  `json:"p50_us"`
	P90US     int64  `json:"p90_us"`
	P95US     int64  `json:"p95_us"`
	P99US     int64  `json:"p99_us"`
	P999US    int64  `json:"p999_us"`
	MaxUS     int64  `json:"max_us"`
	Histogram string `json:"histogram"` // HDR V2, compressed, base64, microseconds; it merges exactly

	live *hdrhistogram.Histogram // instead of the text, while a run goes on
}

// QuantilesOf are those of a histogram of microseconds; the smallest and the
// largest value and the sum, which a histogram rounds, are told apart.
func QuantilesOf(h *hdrhistogram.Histogram, least, most, sum int64) Quantiles {
	if h.TotalCount() == 0 {
		return Quantiles{}
	}
	at := h.ValueAtPercentilesSlice([]float64{50, 90, 95, 99, 99.9})
	for i, us := range at {
		at[i] = min(max(us, least), most)
	}
	return Quantiles{
		Count: h.TotalCount(), SumUS: sum, MinUS: least, MaxUS: most,
		P50US: at[0], P90US: at[1], P95US: at[2], P99US: at[3], P999US: at[4],
	}
}

// WithHistogram are the quantiles with the histogram that they are of, so that
// they can be merged.
func (q Quantiles) WithHistogram(h *hdrhistogram.Histogram) (Quantiles, error) {
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return Quantiles{}, fmt.Errorf("encode a histogram: %w", err)
	}
	q.Histogram = string(text)
	return q, nil
}

// WithLive is [Quantiles.WithHistogram] for as long as a run goes on: without the
// text, which takes milliseconds. The histogram must not change any more.
func (q Quantiles) WithLive(h *hdrhistogram.Histogram) Quantiles {
	q.live = h
	return q
}

// MergeQuantiles are the quantiles of all values together, as if one histogram
// had counted them.
func MergeQuantiles(list ...Quantiles) (Quantiles, error) {
	all, q, err := merged(list)
	if err != nil || all == nil {
		return Quantiles{}, err
	}
	return q.WithHistogram(all)
}

// SumQuantiles is [MergeQuantiles] without the histogram.
func SumQuantiles(list ...Quantiles) (Quantiles, error) {
	_, q, err := merged(list)
	return q, err
}

// merged is the histogram of all values together, nil if there is none, and its
// quantiles.
func merged(list []Quantiles) (all *hdrhistogram.Histogram, _ Quantiles, _ error) {
	var sum Quantiles
	for _, q := range list {
		if q.Histogram == "" && q.Count == 0 {
			continue
		}
		h, own := q.live, false
		if h == nil {
			var err error
			if h, err = hdrhistogram.Decode([]byte(q.Histogram)); err != nil {
				return nil, Quantiles{}, fmt.Errorf("decode a histogram: %w", err)
			}
			own = true
		}
		if h.TotalCount() != q.Count {
			return nil, Quantiles{}, fmt.Errorf("a histogram of %d values is said to have %d", h.TotalCount(), q.Count)
		}
		switch {
		case all == nil && own:
			all = h
		case all == nil:
			all = h.Clone()
		default:
			if lost := all.Merge(h); lost > 0 {
				return nil, Quantiles{}, fmt.Errorf("%d values of a histogram do not fit into another", lost)
			}
		}
		if q.Count > 0 {
			if sum.Count == 0 {
				sum.MinUS = q.MinUS
			}
			sum.MinUS, sum.MaxUS = min(sum.MinUS, q.MinUS), max(sum.MaxUS, q.MaxUS)
			sum.SumUS += q.SumUS
			sum.Count += q.Count
		}
	}
	if all == nil {
		return nil, Quantiles{}, nil
	}
	return all, QuantilesOf(all, sum.MinUS, sum.MaxUS, sum.SumUS), nil
}
