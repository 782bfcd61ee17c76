// Package metrics is the figures of a load run that goes on, as a page that
// Prometheus reads: what a terminal shows, told by plan and outcome and nothing
// else, so that their number does not grow with users.
//
// Most callers give [Handler] a run's meter and serve it while the run lasts.
package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/invoicespec/brimline/reports/record"
)

// Source tells how a run stands.
type Source interface{ Snapshot() []record.RunPlan }

// Handler is the page.
func Handler(s Source) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(newCollector(s))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{
		MaxRequestsInFlight: 2, // each asks every user's judge
		EnableOpenMetrics:   true,
	})
}

// counter is a figure of a plan.
type counter struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(record.RunPlan) int64
}

// collector asks the source whenever it is asked.
type collector struct {
	source   Source
	plans    []counter
	answers  *prometheus.Desc
	latency  *prometheus.Desc
	response *prometheus.Desc
}

func newCollector(s Source) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("brimline_load_"+name, help, labels, nil)
	}
	plan := func(name, help string, of func(record.RunPlan) int64) counter {
		return counter{desc(name+"_total", help, "plan"), prometheus.CounterValue, of}
	}
	return &collector{
		source: s,
		plans: []counter{
			{desc("users", "Users of the plan.", "plan"), prometheus.GaugeValue, func(p record.RunPlan) int64 { return p.Users }},
			{desc("requests_planned", "Requests in the whole run.", "plan"), prometheus.GaugeValue, func(p record.RunPlan) int64 { return p.Planned }},
			{desc("users_affected", "Users who have met a 429.", "plan"), prometheus.GaugeValue, func(p record.RunPlan) int64 { return p.UsersAffected }},
			plan("requests_due", "Requests that came due.", func(p record.RunPlan) int64 { return p.Offered }),
			plan("requests_sent", "Requests that were sent and have ended.", func(p record.RunPlan) int64 { return p.Sent }),
			plan("requests_dropped", "Requests that were too late to be sent.", func(p record.RunPlan) int64 { return p.Dropped }),
			plan("requests_dropped_busy", "Of these, because every worker waited for an answer.", func(p record.RunPlan) int64 { return p.DroppedBusy }),
			plan("requests_held_off", "Requests not sent since their user had met a 429.", func(p record.RunPlan) int64 { return p.HeldOff }),
			plan("rejections_undue", "429s that no order of decisions explains.", func(p record.RunPlan) int64 { return p.RateJudged.Undue + p.ConcurrencyJudged.Undue }),
			plan("rejections_undecided", "429s that could be neither confirmed nor refuted.", func(p record.RunPlan) int64 { return p.RateJudged.Undecided + p.ConcurrencyJudged.Undecided }),
			plan("rejections_missing", "Requests that passed though there was no token.", func(p record.RunPlan) int64 { return p.Missing }),
		},
		answers:  desc("answers_total", "How requests that were sent ended.", "plan", "outcome"),
		latency:  desc("latency_seconds", "From when a request was due to the end of its answer.", "plan", "outcome"),
		response: desc("response_seconds", "From a request's first byte to the end of its answer.", "plan", "outcome"),
	}
}

// Describe carries out prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, p := range c.plans {
		to <- p.desc
	}
	for _, d := range []*prometheus.Desc{c.answers, c.latency, c.response} {
		to <- d
	}
}

// Collect carries out prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	for _, p := range c.source.Snapshot() {
		for _, f := range c.plans {
			to <- prometheus.MustNewConstMetric(f.desc, f.kind, float64(f.of(p)), p.Plan)
		}
		there := map[record.Outcome]record.RunLatency{}
		for _, l := range p.Latency {
			there[l.Outcome] = l
		}
		for _, o := range record.Outcomes() { // zeros too, so that rates have a beginning
			l := there[o]
			to <- prometheus.MustNewConstMetric(c.answers, prometheus.CounterValue, float64(l.FromSend.Count), p.Plan, string(o))
			if l.FromSend.Count > 0 {
				to <- summary(c.latency, l.FromDue, p.Plan, o)
				to <- summary(c.response, l.FromSend, p.Plan, o)
			}
		}
	}
}

func summary(d *prometheus.Desc, q record.Quantiles, plan string, o record.Outcome) prometheus.Metric {
	const us = 1e-6
	return prometheus.MustNewConstSummary(d, uint64(q.Count), float64(q.SumUS)*us, map[float64]float64{
		0.5: float64(q.P50US) * us, 0.9: float64(q.P90US) * us, 0.95: float64(q.P95US) * us, 0.99: float64(q.P99US) * us, 0.999: float64(q.P999US) * us,
	}, plan, string(o))
}
