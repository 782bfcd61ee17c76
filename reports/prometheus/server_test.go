package prometheus_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reports/prometheus"
	"github.com/invoicespec/brimline/reports/record"
)

// scraped starts a Prometheus of the test's own that scrapes a page of metrics
// each second, and returns its URL.
func scraped(t *testing.T, page string) string {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	require.NoError(t, err, "this test needs prometheus; install it and run it again, on Debian: apt-get update && apt-get install -y --no-install-recommends prometheus")
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `scrape_configs:
  - job_name: brimline
    scrape_interval: 1s
    static_configs: [{ targets: [%q] }]
`, strings.TrimPrefix(page, "http://")), 0o600))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	require.NoError(t, free.Close())
	var out bytes.Buffer
	c := exec.Command(program, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	c.Stdout, c.Stderr = &out, &out
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
		if t.Failed() {
			t.Log(out.String())
		}
	})
	return "http://" + address
}

func TestARealServersMeters(t *testing.T) {
	s, err := server.Open(t.Context(), server.Config{Listen: "127.0.0.1:0", Metrics: "127.0.0.1:0", Users: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) })
	free := s.Users()[0]
	ask := func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/v1/invoice/status", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+free.Keys[0].Reveal())
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
	}
	ask()
	c, err := prometheus.At(scraped(t, s.MetricsURL()))
	require.NoError(t, err)
	c.Queries = prometheus.Queries{
		EngineSaturation:  `max(invoicespec_rate_limit_cache_size{cache="bulkheads"}) / 8`,
		CapacityExhausted: `sum(increase(nothing_of_the_kind[$window]))`,
	}
	from := time.Now().Add(-10 * time.Minute)
	var m record.ReportMetrics
	require.Eventually(t, func() bool {
		ask()
		m, err = c.Ask(t.Context(), from, time.Now())
		if err != nil {
			return false // it has only begun
		}
		d, p := m.Find(record.MetricDecisions), m.Find(record.MetricDecisionP99)
		return d != nil && *d.Total > 0 && p != nil && *p.Max > 0 && m.Find(record.MetricCPU) != nil
	}, 30*time.Second, 100*time.Millisecond, "%v %v", m, err)
	require.NoError(t, err)
	found := map[record.MetricName]bool{}
	for _, f := range m.Figures {
		found[f.Name] = f.Missing == ""
		require.NotContains(t, f.Of, free.ID)
	}
	require.Equal(t, map[record.MetricName]bool{
		record.MetricTraffic: true, record.MetricDecisions: true, record.MetricDecisionP50: true, record.MetricDecisionP99: true,
		record.MetricEngineLatency: false, record.MetricSaturation: true, record.MetricExhausted: false, record.MetricConfigFailed: true,
		record.MetricStoreFailed: true, record.MetricCacheSize: true, record.MetricCachePressure: true, record.MetricCacheLossy: true, record.MetricCPU: true,
	}, found)
	require.Regexp(t, `^\d+ a minute, (admitted|rejected), (rate|concurrency)$`, m.Find(record.MetricDecisions).Of)
	require.Len(t, m.Starts, 1, "of this process")
}
