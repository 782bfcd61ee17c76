package apilog_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/internal/pgtest"
	"github.com/invoicespec/brimline/reference/apilog"
	"github.com/invoicespec/brimline/reference/store/postgres"
)

// usual is an entry with all that a user's request leaves.
func usual(n int) contract.LogEntry {
	e := entry(fmt.Sprintf("01jdx7m0000000000000%012d", n))
	e.Method, e.Path, e.User, e.Plan = "POST", "/v1/invoice/calculate", fmt.Sprintf("usr_%08d", n%100_000), "pro"
	e.Duration, e.Charged = 1834, 1
	e.Decision = &contract.LogDecision{Order: uint64(n), Instant: 1_764_000_000_000, Outcome: "admitted",
		RequestsPerMinute: 300, Burst: 100, Concurrency: 20, InFlight: 3, Level: 5_940_000_000}
	return e
}

// benchSpool is a spool with room for every entry of a benchmark.
func benchSpool(b *testing.B, dir string, sink apilog.Sink) *apilog.Spool {
	b.Helper()
	s, err := apilog.OpenSpool(apilog.SpoolConfig{Dir: dir, Size: 8 << 30, Sink: sink, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	return s
}

// BenchmarkSpoolWrite is what a request waits for, while what it wrote is being
// delivered to a sink that costs nothing.
func BenchmarkSpoolWrite(b *testing.B) {
	s := benchSpool(b, b.TempDir(), &table{})
	e := usual(1)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := s.Write(b.Context(), e); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "entries/s")
	require.NoError(b, s.Close(b.Context()))
}

// BenchmarkDelivery moves entries that wait in a spool into PostgreSQL.
func BenchmarkDelivery(b *testing.B) {
	pool, dir := openPool(b, pgtest.Database(b)), b.TempDir()
	s := benchSpool(b, dir, &table{answer: away})
	for n := range b.N {
		require.NoError(b, s.Write(b.Context(), usual(n)))
	}
	abandon(b, s)
	b.ResetTimer()
	s = benchSpool(b, dir, postgres.NewLog(pool))
	require.NoError(b, s.Close(b.Context()))
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	require.EqualValues(b, b.N, s.Stats().Delivered)
}
