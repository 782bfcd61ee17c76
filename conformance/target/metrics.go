package target

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// MetricsAddress is where the deployment shows its metrics to Prometheus.
type MetricsAddress struct {
	URL string `yaml:"url"`
}

// maxMetrics bounds a page of metrics.
const maxMetrics = 16 << 20

// Meter is one series on a page of metrics.
type Meter struct {
	Name   string
	Kind   string // counter, gauge, histogram, summary or untyped
	Labels map[string]string
	Value  float64 // of a histogram or summary: how many it has counted
	Bounds int     // of a histogram: its buckets
}

// Meters reads the page of metrics.
func (t *Target) Meters(ctx context.Context) ([]Meter, error) {
	a := t.file.Can.Metrics
	if a == nil {
		return nil, fmt.Errorf("%w: a page of metrics", ErrUnsupported)
	}
	within, cancel := context.WithTimeout(ctx, t.patience.control())
	defer cancel()
	r, err := http.NewRequestWithContext(within, get, a.URL, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/plain;version=0.0.4")
	r.Header.Set("User-Agent", t.agent)
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("%w: metrics: %w", ErrAway, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxMetrics+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: metrics: %w", ErrAway, err)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%w: %s answers %d", ErrAway, a.URL, resp.StatusCode)
	case len(data) > maxMetrics:
		return nil, fmt.Errorf("%s: more than %d bytes", a.URL, maxMetrics)
	}
	return parseMeters(a.URL, data)
}

// parseMeters reads a page in Prometheus' text format, in the order of names.
func parseMeters(source string, data []byte) ([]Meter, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s is no page of metrics: %w", source, err)
	}
	var all []Meter
	for _, name := range slices.Sorted(maps.Keys(families)) {
		for _, m := range families[name].GetMetric() {
			x := Meter{Name: name, Kind: strings.ToLower(families[name].GetType().String()), Labels: map[string]string{}}
			for _, l := range m.GetLabel() {
				x.Labels[l.GetName()] = l.GetValue()
			}
			x.Value, x.Bounds = reading(m)
			all = append(all, x)
		}
	}
	return all, nil
}

func reading(m *dto.Metric) (value float64, bounds int) {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue(), 0
	case m.Gauge != nil:
		return m.Gauge.GetValue(), 0
	case m.Histogram != nil:
		return float64(m.Histogram.GetSampleCount()), len(m.Histogram.GetBucket())
	case m.Summary != nil:
		return float64(m.Summary.GetSampleCount()), 0
	case m.Untyped != nil:
		return m.Untyped.GetValue(), 0
	}
	return math.NaN(), 0
}

// checkPage checks the URL of a page.
func checkPage(key, text string) *problem {
	u, err := url.Parse(text)
	if err != nil || !isPath(u.Path) || u.RawQuery != "" || u.Fragment != "" {
		return &problem{key, fmt.Sprintf("%q is no page's URL", text), "a URL such as http://127.0.0.1:9464/metrics"}
	}
	u.Path, u.RawPath = "", ""
	return checkURL(key, u.String())
}

// MetricsURL is where the page of metrics is; empty: there is none.
func (t *Target) MetricsURL() string {
	if t.file.Can.Metrics == nil {
		return ""
	}
	return t.file.Can.Metrics.URL
}
