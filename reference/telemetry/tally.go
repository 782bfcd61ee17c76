package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/invoicespec/brimline/reference/admission"
)

// tally is where the decisions on one kind of caller are counted. A request is
// decided on by the rate limiter first and, if that admits it, by the
// concurrency limiter.
type tally struct {
	rateAdmitted, rateRejected               series
	concurrencyAdmitted, concurrencyRejected series
}

// series is one combination of labels.
type series struct {
	decisions prometheus.Counter
	duration  prometheus.Observer
}

func (m *Meters) newTally(rate, reason string) tally {
	of := func(limiter, outcome string) series {
		return series{
			decisions: m.decisions.WithLabelValues(limiter, outcome, rate, reason),
			duration:  m.duration.WithLabelValues(limiter, outcome, reason),
		}
	}
	return tally{
		rateAdmitted: of("rate", "admitted"), rateRejected: of("rate", "rejected"),
		concurrencyAdmitted: of("concurrency", "admitted"), concurrencyRejected: of("concurrency", "rejected"),
	}
}

func (t tally) count(o admission.Outcome, took time.Duration) {
	switch o {
	case admission.Admitted:
		t.rateAdmitted.count(took)
		t.concurrencyAdmitted.count(took)
	case admission.RateRejected:
		t.rateRejected.count(took)
	case admission.ConcurrencyRejected:
		t.rateAdmitted.count(took)
		t.concurrencyRejected.count(took)
	}
}

func (s series) count(took time.Duration) {
	s.decisions.Inc()
	s.duration.Observe(took.Seconds())
}

// durationBuckets resolve a decision in memory (about a microsecond) as well as
// a round trip to a store (some milliseconds): 1, 2, 5 in each decade from 200 ns
// to 100 ms.
func durationBuckets() []float64 {
	return []float64{
		200e-9, 500e-9,
		1e-6, 2e-6, 5e-6, 10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6,
		1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3, 100e-3,
	}
}
