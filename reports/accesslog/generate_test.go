package accesslog_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
)

func generated(t *testing.T, seed uint64) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, accesslog.Generate(&b, seed))
	return b.Bytes()
}

func TestGenerateIsDeterministic(t *testing.T) {
	require.True(t, bytes.Equal(generated(t, 1), generated(t, 1)))
	require.False(t, bytes.Equal(generated(t, 1), generated(t, 2)))
}

func TestGeneratedLogIsPlausible(t *testing.T) {
	log, err := accesslog.Read(t.Context(), []accesslog.Source{accesslog.Stream("demo", bytes.NewReader(generated(t, 1)))}, accesslog.Options{Scope: "/v1/invoice"})
	require.NoError(t, err)
	requireAddsUp(t, log)
	q := log.Quality
	require.Equal(t, record.FormatCombined, q.Format)
	require.Empty(t, q.Dropped)
	require.Empty(t, log.NotAttempts)
	require.Zero(t, q.BackwardSteps)
	require.Equal(t, 412, q.Clients)
	require.Greater(t, q.Last.Sub(q.First).Hours(), 6*24.0)
	require.Less(t, q.EffectiveClients, 30.0, "a few clients make most of the requests")
	require.Greater(t, q.ConstantMinute, 0.1, "jobs fire on the hour")
	require.Less(t, q.ConstantMinute, 0.9)
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestGenerateReportsThatItCannotWrite(t *testing.T) {
	require.ErrorContains(t, accesslog.Generate(full{}, 1), "disk full")
}
