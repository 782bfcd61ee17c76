package target_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
)

func TestMeters(t *testing.T) {
	page := `# HELP a_total What it counts.
# TYPE a_total counter
a_total{kind="x"} 3
a_total{kind="y"} 4
# TYPE b gauge
b -0.5
# TYPE c histogram
c_bucket{le="0.1"} 1
c_bucket{le="+Inf"} 2
c_sum 5
c_count 2
`
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		w.Write([]byte(page))
	}))
	defer s.Close()
	f := fileFor(s.URL)
	f.Can.Metrics = &target.MetricsAddress{URL: s.URL + "/metrics"}
	tgt, err := target.Open(t.Context(), f, target.Options{Keys: []target.Key{{User: "u", Plan: "free", Secret: target.NewSecret(theKey)}}})
	require.NoError(t, err)
	defer tgt.Close()
	require.True(t, tgt.Has(contract.NeedMetrics))
	got, err := tgt.Meters(t.Context())
	require.NoError(t, err)
	require.Equal(t, []target.Meter{
		{Name: "a_total", Kind: "counter", Labels: map[string]string{"kind": "x"}, Value: 3},
		{Name: "a_total", Kind: "counter", Labels: map[string]string{"kind": "y"}, Value: 4},
		{Name: "b", Kind: "gauge", Labels: map[string]string{}, Value: -0.5},
		{Name: "c", Kind: "histogram", Labels: map[string]string{}, Value: 2, Bounds: 2},
	}, got)

	page = "nothing of the kind {"
	_, err = tgt.Meters(t.Context())
	require.ErrorContains(t, err, "is no page of metrics")
	require.NotErrorIs(t, err, target.ErrAway)
	status = http.StatusServiceUnavailable
	_, err = tgt.Meters(t.Context())
	require.ErrorIs(t, err, target.ErrAway)

	f.Can.Metrics = nil
	without, err := target.Open(t.Context(), f, target.Options{Keys: []target.Key{{User: "u", Plan: "free", Secret: target.NewSecret(theKey)}}})
	require.NoError(t, err)
	defer without.Close()
	_, err = without.Meters(t.Context())
	require.ErrorIs(t, err, target.ErrUnsupported)
}
