package record_test

import (
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/reports/record"
)

func quantilesOf(values []int64) (record.Quantiles, error) {
	h := hdrhistogram.New(1, 300_000_000, 3)
	var least, most, sum int64
	for i, v := range values {
		_ = h.RecordValue(v) // in range
		if i == 0 {
			least = v
		}
		least, most, sum = min(least, v), max(most, v), sum+v
	}
	return record.QuantilesOf(h, least, most, sum).WithHistogram(h)
}

// TestMergedQuantilesAreThoseOfAll: however values are split, merging tells what
// one histogram of all would.
func TestMergedQuantilesAreThoseOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []int64
		var apart []record.Quantiles
		for range rapid.IntRange(0, 3).Draw(t, "parts") {
			values := rapid.SliceOfN(rapid.Int64Range(0, 300_000_000), 0, 20).Draw(t, "values")
			q, err := quantilesOf(values)
			require.NoError(t, err)
			all, apart = append(all, values...), append(apart, q)
		}
		merged, err := record.MergeQuantiles(apart...)
		require.NoError(t, err)
		want, err := quantilesOf(all)
		require.NoError(t, err)
		if len(apart) == 0 {
			want.Histogram = ""
		}
		require.Equal(t, want, merged)
	})
}

func TestQuantilesThatCannotBeMerged(t *testing.T) {
	q, err := quantilesOf([]int64{1, 2, 3})
	require.NoError(t, err)
	miscounted := q
	miscounted.Count = 4
	for want, list := range map[string][]record.Quantiles{
		"decode a histogram":                        {q, {Count: 1, Histogram: "HISTFAAA"}},
		"a histogram of 3 values is said to have 4": {miscounted},
	} {
		_, err := record.MergeQuantiles(list...)
		require.ErrorContains(t, err, want)
	}
}
