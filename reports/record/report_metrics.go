package record

import "time"

// ReportMetrics is what a deployment's meters say over a time.
type ReportMetrics struct {
	Job     string         `json:"job"` // under which the engine is scraped
	From    time.Time      `json:"from"`
	Until   time.Time      `json:"until"`
	StepS   int64          `json:"step_s"` // between two points, in seconds
	Figures []ReportMetric `json:"figures"`
	Starts  []time.Time    `json:"starts"` // of the engine, within the time
}

// ReportMetric is one figure: a counter's growth over the time, or quantiles of a
// gauge's points. Where it is missing there is nothing else but name and query.
type ReportMetric struct {
	Name    MetricName `json:"name"`
	Of      string     `json:"of,omitempty"` // such as the plan's rate, limiter and outcome
	Unit    string     `json:"unit"`
	Query   string     `json:"query,omitempty"`
	Total   *float64   `json:"total,omitempty"` // of a counter
	P50     *float64   `json:"p50,omitempty"`   // of points in time
	P95     *float64   `json:"p95,omitempty"`
	Max     *float64   `json:"max,omitempty"`
	Points  int        `json:"points"`
	Missing string     `json:"missing,omitempty"`
}

// MetricName is what a figure tells.
type MetricName string

// The figures.
const (
	MetricTraffic       MetricName = "traffic"
	MetricDecisions     MetricName = "decisions"
	MetricDecisionP50   MetricName = "decision duration p50"
	MetricDecisionP99   MetricName = "decision duration p99"
	MetricEngineLatency MetricName = "engine latency"
	MetricSaturation    MetricName = "engine saturation"
	MetricExhausted     MetricName = "capacity exhausted"
	MetricConfigFailed  MetricName = "configuration failures"
	MetricStoreFailed   MetricName = "store failures"
	MetricCacheSize     MetricName = "cache size"
	MetricCachePressure MetricName = "cache pressure"
	MetricCacheLossy    MetricName = "lossy cache evictions"
	MetricCPU           MetricName = "processors in use"
)

// Find is the first figure of a name; nil where it is missing.
func (m ReportMetrics) Find(name MetricName) *ReportMetric {
	for i := range m.Figures {
		if f := &m.Figures[i]; f.Name == name && f.Missing == "" {
			return f
		}
	}
	return nil
}
