// Package telemetry counts what the limiter does and shows it as a page that
// Prometheus reads (METRIC-1, METRIC-2, RESTART-1, CACHE-2). [New] makes the
// meters, one method reports one event, [Meters.Handler] is the page.
//
// Events are told in values of closed kinds and in numbers: no user, address, key
// or path can be passed, and no caller can make series without end. Nothing is
// registered outside a Meters, so a process may have several.
package telemetry

import (
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/apilog"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
)

// Limiter is what every scrape asks of the limiter in this process.
type Limiter interface {
	Stats() limiter.Stats
	SubjectsInFlight() int
}

// Gate is what every scrape asks of the gate before authentication.
type Gate interface {
	Stats() anonymous.Stats
}

// Log is what every scrape asks of the API log's spool.
type Log interface {
	Stats() apilog.Stats
}

// Config says what there is to be read at each scrape.
type Config struct {
	Limiter Limiter      // required
	Gate    Gate         // nil: there is none, and its meters are absent
	Log     Log          // nil: the log has no spool, and its meters are absent
	Logger  *slog.Logger // where a scrape that failed is told; required
}

// The two prefixes of the meters' names.
const (
	limitPrefix = "invoicespec_rate_limit"
	logPrefix   = "invoicespec_api_log"
)

// The labels of the limiter's meters; there are no others.
const (
	labelLimiter = "limiter"
	labelOutcome = "outcome"
	labelRate    = "requests_per_minute"
	labelReason  = "reason"
	labelCache   = "cache"
)

// maxRates is how many plan rates have series of their own. They come from a
// table of plans, which an operator may change while the process runs.
const maxRates = 64

// otherRate is the label of the rates beyond, and of a plan that has none.
const otherRate = "other"

// Meters holds the meters of one process. Its methods are safe for concurrent use.
type Meters struct {
	registry *prometheus.Registry
	logger   *slog.Logger

	decisions *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	anonymous tally
	other     tally
	rates     atomic.Pointer[map[int64]tally] // replaced, never written to
	growing   sync.Mutex                      // held to replace rates

	missing, malformed, storeFailures prometheus.Counter
}

// New returns meters that have counted one start.
func New(cfg Config) *Meters {
	m := &Meters{
		registry: prometheus.NewRegistry(),
		logger:   cfg.Logger,
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: limitPrefix, Name: "decisions_total",
			Help: "Decisions of the rate limiter and of the concurrency limiter, by the plan's requests per minute; reason anonymous: before authentication.",
		}, []string{labelLimiter, labelOutcome, labelRate, labelReason}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: limitPrefix, Name: "decision_duration_seconds",
			Help:    "Time of the one call in which both limiters decide; each decision counts it.",
			Buckets: durationBuckets(),
		}, []string{labelLimiter, labelOutcome, labelReason}),
		storeFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: limitPrefix, Name: "store_failures_total",
			Help: "Requests answered 503 because accounts or limiter state could not be reached.",
		}),
	}
	startup := prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: limitPrefix, Name: "startup_total",
		Help: "Starts of this process: 1. Local buckets are full after each.",
	})
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: limitPrefix, Name: "configuration_failures_total",
		Help: "Requests answered 503 because an entitlement or override is missing or malformed.",
	}, []string{labelReason})
	m.registry.MustRegister(startup, m.decisions, m.duration, failures, m.storeFailures,
		newState(cfg), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	startup.Inc()
	m.missing = failures.WithLabelValues(string(policy.Missing))
	m.malformed = failures.WithLabelValues(string(policy.Malformed))
	m.anonymous = m.newTally("", "anonymous")
	m.rates.Store(&map[int64]tally{})
	return m
}

// Decided counts a decision on a user's request. planRate is the requests per
// minute of the user's plan, also where an override says otherwise; 0: the
// plan's own is not well-formed.
func (m *Meters) Decided(planRate int64, o admission.Outcome, took time.Duration) {
	t, known := (*m.rates.Load())[planRate]
	if !known {
		t = m.newRate(planRate)
	}
	t.count(o, took)
}

// AnonymousDecided counts a decision made before authentication.
func (m *Meters) AnonymousDecided(o admission.Outcome, took time.Duration) {
	m.anonymous.count(o, took)
}

// ConfigurationFailed counts a policy that did not resolve.
func (m *Meters) ConfigurationFailed(r policy.Reason) {
	if r == policy.Missing {
		m.missing.Inc()
		return
	}
	m.malformed.Inc()
}

// StoreFailed counts a request about which nothing could be found out or decided.
func (m *Meters) StoreFailed() { m.storeFailures.Inc() }

// newRate gives a rate series of its own, if there is room.
func (m *Meters) newRate(planRate int64) tally {
	m.growing.Lock()
	defer m.growing.Unlock()
	old := *m.rates.Load()
	if t, known := old[planRate]; known {
		return t
	}
	if planRate <= 0 || len(old) == maxRates {
		if m.other == (tally{}) {
			m.other = m.newTally(otherRate, "")
		}
		return m.other
	}
	rates := make(map[int64]tally, len(old)+1)
	for r, t := range old {
		rates[r] = t
	}
	rates[planRate] = m.newTally(strconv.FormatInt(planRate, 10), "")
	m.rates.Store(&rates)
	return rates[planRate]
}
