package replay_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/replay"
)

func BenchmarkRun(b *testing.B) {
	var text bytes.Buffer
	require.NoError(b, accesslog.Generate(&text, 1))
	log, err := accesslog.Read(b.Context(), []accesslog.Source{accesslog.Stream("x", &text)}, accesslog.Options{})
	require.NoError(b, err)
	for name, q := range map[string]replay.Question{
		"one":  {Rates: []int64{10}, Bursts: []int64{10}},
		"grid": {Rates: []int64{10, 20, 30, 60, 120, 300}, Bursts: []int64{10, 20, 40, 100}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := replay.Run(b.Context(), log, q)
				require.NoError(b, err)
			}
			decisions := float64(len(log.Attempts)) * float64(len(q.Rates)*len(q.Bursts)) * float64(b.N)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/decisions, "ns/decision")
		})
	}
}
