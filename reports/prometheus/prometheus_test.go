package prometheus_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/prometheus"
	"github.com/invoicespec/brimline/reports/record"
)

var until = time.Date(2026, 3, 9, 0, 0, 0, 0, time.UTC)

// answering is a server that answers every question so.
func answering(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(s.Close)
	return s.URL
}

func data(kind, result string) string {
	return fmt.Sprintf(`{"status":"success","data":{"resultType":%q,"result":[%s]}}`, kind, result)
}

func config(t *testing.T, text string) (prometheus.Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prometheus.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(path), "token"), []byte("secret-token\n"), 0o600))
	return prometheus.Read(path)
}

func TestFiguresAndStarts(t *testing.T) {
	url := answering(t, func(w http.ResponseWriter, r *http.Request) {
		require.NoError(t, r.ParseForm())
		require.Equal(t, "Bearer secret-token", r.Header.Get("Authorization"))
		query := r.Form.Get("query")
		require.True(t, strings.Contains(query, `job="shop"`) || query == "my_latency" || strings.HasPrefix(query, "exhausted"), query)
		switch {
		case strings.HasPrefix(query, "process_start"):
			fmt.Fprint(w, data("matrix", `{"metric":{},"values":[[1,"1772400000"],[2,"1772700000.5"],[3,"1772700000.5"]]}`))
		case query == "my_latency":
			require.Equal(t, "605", r.Form.Get("step"), "a thousand points at most")
			fmt.Fprint(w, data("matrix", `{"metric":{},"values":[[1,"0.3"],[2,"NaN"],[3,"0.1"],[4,"0.2"]]}`))
		case strings.HasPrefix(query, "exhausted"):
			require.Equal(t, "exhausted[604800s]", query)
			fmt.Fprint(w, data("vector", `{"metric":{},"value":[1,"7"]}`))
		case strings.Contains(query, "sum by (requests_per_minute"):
			fmt.Fprint(w, data("vector", `{"metric":{"requests_per_minute":"60","outcome":"rejected","limiter":"rate"},"value":[1,"5"]},{"metric":{"requests_per_minute":"10","outcome":"admitted","limiter":"rate"},"value":[1,"90"]}`))
		default:
			fmt.Fprint(w, data("vector", ""))
		}
	})
	c, err := config(t, "url: "+url+"\njob: shop\ntoken-file: token\nqueries: { engine-latency: my_latency, capacity-exhausted: 'exhausted[$window]' }\n")
	require.NoError(t, err)
	m, err := c.Ask(t.Context(), until.AddDate(0, 0, -7), until)
	require.NoError(t, err)
	require.Equal(t, []time.Time{time.UnixMicro(1772700000_500000).UTC()}, m.Starts, "the other is before the window")
	latency := m.Find(record.MetricEngineLatency)
	require.Equal(t, []float64{0.2, 0.3, 0.3}, []float64{*latency.P50, *latency.P95, *latency.Max})
	require.Equal(t, 3, latency.Points)
	require.InDelta(t, 7, *m.Find(record.MetricExhausted).Total, 0)
	decisions := m.Find(record.MetricDecisions)
	require.Equal(t, "10 a minute, admitted, rate", decisions.Of)
	require.Nil(t, m.Find(record.MetricCPU))
	require.Nil(t, m.Find(record.MetricSaturation))
	for _, f := range m.Figures {
		require.True(t, f.Missing == "" || f.Points == 0 && f.Total == nil, f.Name)
	}
}

func TestServersThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		err    string
	}{
		"a refusal": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no\nentry", http.StatusUnauthorized) }, "traffic: the Prometheus server does not answer: client_error: client error: 401"},
		"a bad query": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"status":"error","errorType":"bad_data","error":"parse error"}`)
		}, "traffic: the Prometheus server does not answer: bad_data: parse error"},
		"no Prometheus": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, "traffic: the Prometheus server does not answer: "},
		"a text": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"status":"success","data":{"resultType":"string","result":[1,"x"]}}`)
		}, "the Prometheus server does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := config(t, "url: "+answering(t, c.answer)+"\ntoken-file: token\n")
			require.NoError(t, err)
			_, err = cfg.Ask(t.Context(), until.Add(-time.Hour), until)
			require.ErrorContains(t, err, c.err)
			require.NotContains(t, err.Error(), "secret")
			require.NotContains(t, err.Error(), "\n")
		})
	}
	cfg, err := prometheus.At("http://127.0.0.1:1")
	require.NoError(t, err)
	_, err = cfg.Ask(t.Context(), until.Add(-time.Hour), until)
	require.ErrorIs(t, err, prometheus.ErrAway)
	_, err = cfg.Ask(t.Context(), until, until)
	require.ErrorContains(t, err, "until is not after from")
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"url: http://u:secret@h\n":                        "prometheus.yaml:1: url: it is no such address; accepted: http://HOST:PORT or https://HOST, without a user",
		"url: secret\n":                                   "prometheus.yaml:1: url: it is no such address",
		"url: http://h\njob: 'a\"} or secret{'\n":         "prometheus.yaml:2: job: it is no such name",
		"url: http://h\ntoken-file: none\n":               "prometheus.yaml:2: token-file: it cannot be read",
		"url: http://h\ntoken-file: prometheus.yaml\n":    "prometheus.yaml:2: token-file: it holds no token; accepted: one word",
		"url: http://h\nqueries: { engine-latenzy: a }\n": "prometheus.yaml:2: queries.engine-latenzy: unknown key",
		"job: a\n": "url: missing",
	} {
		_, err := config(t, text)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret")
	}
	_, err := prometheus.At("http://u:secret@h")
	require.ErrorContains(t, err, "without a user")
	require.NotContains(t, err.Error(), "secret")
}
