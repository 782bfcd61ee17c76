package accesslog_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/accesslog"
)

func BenchmarkRead(b *testing.B) {
	var text bytes.Buffer
	require.NoError(b, accesslog.Generate(&text, 1))
	lines := bytes.Count(text.Bytes(), []byte("\n"))
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		_, err := accesslog.Read(b.Context(), []accesslog.Source{accesslog.Stream("x", bytes.NewReader(text.Bytes()))}, accesslog.Options{})
		require.NoError(b, err)
	}
	b.ReportMetric(float64(lines)*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
}
