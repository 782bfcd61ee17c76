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

// MergeQuantiles are the quantiles of all values together, as if one histogram
// had counted them.
func MergeQuantiles(list ...Quantiles) (Quantiles, error) {
	var all *hdrhistogram.Histogram
	var sum Quantiles
	for _, q := range list {
		if q.Histogram == "" && q.Count == 0 {
			continue
		}
		h, err := hdrhistogram.Decode([]byte(q.Histogram))
		if err != nil {
			return Quantiles{}, fmt.Errorf("decode a histogram: %w", err)
		}
		if h.TotalCount() != q.Count {
			return Quantiles{}, fmt.Errorf("a histogram of %d values is said to have %d", h.TotalCount(), q.Count)
		}
		switch {
		case all == nil:
			all = h
		default:
			if lost := all.Merge(h); lost > 0 {
				return Quantiles{}, fmt.Errorf("%d values of a histogram do not fit into another", lost)
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
		return Quantiles{}, nil
	}
	return QuantilesOf(all, sum.MinUS, sum.MaxUS, sum.SumUS).WithHistogram(all)
}
