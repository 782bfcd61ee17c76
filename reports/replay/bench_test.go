package replay

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/roster"
	"github.com/invoicespec/brimline/reports/timeline"
)

// busy is traffic of many users, of whom few make most of it.
func busy(attempts, users int) Traffic {
	random := rand.New(rand.NewPCG(1, 0))
	zipf := rand.NewZipf(random, 1.1, 10, uint64(users-1))
	list := make([]timeline.Attempt, attempts)
	for i := range list {
		list[i] = timeline.Attempt{At: int64(i) * 60_000, Pool: uint32(zipf.Uint64()), Hold: timeline.NoHold, Status: 200}
	}
	ten := record.ReportAllowance{RequestsPerMinute: 10, Burst: 10}
	return Traffic{Attempts: timeline.Of(list...), Roster: roster.Single("free", &ten, users)}
}

// table is every rate with every burst.
func table(n int64) (ask Ask) {
	for rate := range n {
		ask.Rates = append(ask.Rates, 5*(rate+1))
		for burst := range n {
			ask.Cells = append(ask.Cells, record.ReportAllowance{RequestsPerMinute: 5 * (rate + 1), Burst: 5 * (burst + 1)})
		}
	}
	return ask
}

func BenchmarkWhatIf(b *testing.B) {
	const attempts = 1_000_000
	traffic := busy(attempts, 10_000)
	one := Ask{Cells: []record.ReportAllowance{{RequestsPerMinute: 10, Burst: 10}}, Rates: []int64{10}}
	for name, ask := range map[string]Ask{"one": one, "closed": {ClosedLoop: one.Cells}, "12x12": table(12)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := traffic.WhatIf(b.Context(), []Ask{ask})
				require.NoError(b, err)
			}
			decisions := float64(max(1, len(ask.Cells))) * attempts * float64(b.N)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/decisions, "ns/decision")
		})
	}
	b.Run("today", func(b *testing.B) {
		for b.Loop() {
			_, err := traffic.Today(b.Context())
			require.NoError(b, err)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/(attempts*float64(b.N)), "ns/attempt")
	})
}
