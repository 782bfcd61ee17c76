package replay

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/roster"
	"github.com/invoicespec/brimline/reports/timeline"
)

// Peaks by looking at every stretch.
func TestPeaksAgainstCounting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		traffic := traffics(t)
		var list []timeline.Attempt
		for batch := range traffic.Attempts.Batches(t.Context()) {
			list = append(list, batch...)
		}
		later := rapid.SampledFrom([]int64{0, 3590, 3 * 3600}).Draw(t, "later") * second
		for i, a := range list { // across the pages' edges, and again after a while
			a.At += later
			list[i].At += 3000 * second
			list = append(list, a)
		}
		traffic.Attempts = timeline.Of(list...)
		allowances := make([]*record.ReportAllowance, len(traffic.Roster.Plans))
		for i, p := range traffic.Roster.Plans {
			allowances[i] = p.Today
		}
		got, err := traffic.Peaks(t.Context(), allowances)
		require.NoError(t, err)
		admitted := map[int64]int{}
		m := model{traffic, false}
		for user := range traffic.Roster.Users {
			for _, v := range m.visits(user) {
				if v.today == "" {
					admitted[v.at/second]++
				}
			}
		}
		peak := func(width int64) (most float64) {
			for s := range admitted {
				n := 0
				for i := s; i < s+width; i++ {
					n += admitted[i]
				}
				most = max(most, float64(n)/float64(width))
			}
			return most
		}
		require.Equal(t, record.ReportPeaks{Second: peak(1), Ten: peak(10), Minute: peak(60)}, got)
	})
}

func TestPeaksOfACandidate(t *testing.T) {
	list := make([]timeline.Attempt, 20)
	traffic := Traffic{Attempts: timeline.Of(list...), Roster: roster.Single("free", nil, 1)}
	for _, c := range []struct {
		allowance *record.ReportAllowance
		want      float64
	}{
		{nil, 20},
		{&record.ReportAllowance{RequestsPerMinute: 1, Burst: 5}, 5},
	} {
		got, err := traffic.Peaks(t.Context(), []*record.ReportAllowance{c.allowance})
		require.NoError(t, err)
		require.Equal(t, record.ReportPeaks{Second: c.want, Ten: c.want / 10, Minute: c.want / 60}, got)
	}
	_, err := traffic.Peaks(t.Context(), nil)
	require.EqualError(t, err, "0 allowances for 1 plans")
}
