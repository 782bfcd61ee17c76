package steps

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
)

// metered are the sentences about the page of metrics.
func (s *Scenario) metered() []sentence {
	return []sentence{
		{when, `^the page of metrics is read$`, "what later sentences compare with", needs{contract.NeedMetrics}, s.readMeters},
		{when, `^somebody makes one attempt without a key$`, "one attempt without any credential", nil, s.attemptOnce},
		{when, `^other users do the same$`, "a new user on every other plan", needs{contract.NeedMetrics}, s.othersDoTheSame},
		{then, `^each meter of the limiter is there, of its kind and with its labels$`, "as the page was read", needs{contract.NeedMetrics}, s.metersAreThere},
		{then, `^startup counts one$`, "as the page was read", needs{contract.NeedMetrics}, s.startupIsOne},
		{then, `^each decision on them is counted once, under their plan's rate$`, "the answers since the page was read", needs{contract.NeedMetrics}, s.decisionsCounted},
		{then, `^each of these decisions has a duration$`, "the answers since the page was read", needs{contract.NeedMetrics}, s.durationsCounted},
		{then, `^the attempt is counted as anonymous$`, "and as no user's", needs{contract.NeedMetrics}, s.anonymousCounted},
		{then, `^each answer is counted as (missing|malformed)$`, "in the failures of configuration, and as no decision", needs{contract.NeedMetrics}, s.failuresCounted},
		{then, `^the caches hold them, and have room$`, "the gauges of buckets and permits, read now", needs{contract.NeedMetrics}, s.cachesHold},
		{then, `^the limiter's labels are those of the contract and say nothing of anybody$`, "no user, address, key or path", needs{contract.NeedMetrics}, s.labelsAreClosed},
		{then, `^there are as many series as before$`, "more users make no more series", needs{contract.NeedMetrics}, s.seriesAreTheSame},
	}
}

// The limiter's meters in Prometheus' form.
const (
	meters          = "invoicespec_rate_limit_"
	meterStartup    = meters + "startup_total"
	meterDecisions  = meters + "decisions_total"
	meterDuration   = meters + "decision_duration_seconds"
	meterFailures   = meters + "configuration_failures_total"
	meterPressure   = meters + "cache_eviction_pressure"
	meterEvictions  = meters + "cache_evictions"
	meterSize       = meters + "cache_size"
	labelLimiter    = "limiter"
	labelOutcome    = "outcome"
	labelRate       = "requests_per_minute"
	labelReason     = "reason"
	labelCache      = "cache"
	kindCounter     = "counter"
	kindGauge       = "gauge"
	kindHistogram   = "histogram"
	cacheBuckets    = "buckets"
	cacheBulkheads  = "bulkheads"
	anonymousReason = "anonymous"
)

// labels are what a series says of itself. A label that is empty is one that is
// not there.
type labels map[string]string

// sum adds up the series of a name that have all of these labels.
func sum(all []target.Meter, name string, want labels) (total float64, n int) {
	for _, m := range all {
		if m.Name != name || slices.ContainsFunc(slices.Collect(maps.Keys(want)), func(l string) bool { return m.Labels[l] != want[l] }) {
			continue
		}
		total, n = total+m.Value, n+1
	}
	return total, n
}

func (s *Scenario) readMeters(ctx context.Context) (err error) {
	s.meters, err = s.metricsPage(ctx)
	return err
}

// metricsPage reads the page of metrics. One that is there and cannot be read is a
// breach.
func (s *Scenario) metricsPage(ctx context.Context) ([]target.Meter, error) {
	all, err := s.Meters(ctx)
	if err != nil && ctx.Err() == nil && !errors.Is(err, target.ErrAway) && !errors.Is(err, target.ErrUnsupported) {
		return nil, s.brokenFor("METRIC-1", s.scrape(), "the page of metrics", "in Prometheus' text format", s.short(err.Error()))
	}
	return all, asInconclusive(err)
}

// scrape is the request that the page of metrics answers, for people to repeat.
func (s *Scenario) scrape() exchange {
	return exchange{Exchange: target.Exchange{Curl: "curl -s " + s.MetricsURL()}}
}

// wrongMeter records what the page of metrics says and should not.
func (s *Scenario) wrongMeter(name string, l labels, expected, got string) error {
	return s.broken(s.scrape(), series(name, l), expected, got)
}

// series is a name and labels as Prometheus writes them.
func series(name string, l labels) string {
	var words []string
	for _, label := range slices.Sorted(maps.Keys(l)) {
		words = append(words, fmt.Sprintf("%s=%q", label, l[label]))
	}
	if len(words) == 0 {
		return name
	}
	return name + "{" + strings.Join(words, ",") + "}"
}

// metersAreThere looks for what has happened by now: a series may be made when
// it is first counted.
func (s *Scenario) metersAreThere() error {
	happened := []labels{
		{labelLimiter: "rate", labelOutcome: "admitted"}, {labelLimiter: "rate", labelOutcome: "rejected"},
		{labelLimiter: "concurrency", labelOutcome: "admitted"},
	}
	for _, m := range []struct {
		name, kind string
		of         []labels
	}{
		{meterStartup, kindCounter, []labels{{}}},
		{meterDecisions, kindCounter, happened},
		{meterDuration, kindHistogram, happened},
		{meterFailures, kindCounter, nil},
		{meterPressure, kindGauge, caches()},
		{meterEvictions, kindGauge, caches()},
		{meterSize, kindGauge, caches()},
	} {
		for _, l := range m.of {
			if _, n := sum(s.meters, m.name, l); n == 0 {
				return s.wrongMeter(m.name, l, "there", "absent")
			}
		}
		for _, x := range s.meters {
			switch {
			case x.Name != m.name:
			case x.Kind != m.kind:
				return s.wrongMeter(x.Name, x.Labels, "a "+m.kind, "a "+x.Kind)
			case x.Kind == kindHistogram && x.Bounds < 2:
				return s.wrongMeter(x.Name, x.Labels, "a histogram with buckets", fmt.Sprintf("%d of them", x.Bounds))
			case math.IsNaN(x.Value) || math.IsInf(x.Value, 0) || x.Value < 0:
				return s.wrongMeter(x.Name, x.Labels, "a number that is not negative", fmt.Sprint(x.Value))
			}
		}
	}
	return s.verdict()
}

func caches() []labels { return []labels{{labelCache: cacheBuckets}, {labelCache: cacheBulkheads}} }

// decisions lists the labels of all that can be decided on users, of one plan's
// rate or of any.
func decisions(rate string) []labels {
	var all []labels
	for _, limiter := range []string{"rate", "concurrency"} {
		for _, outcome := range []string{"admitted", "rejected"} {
			l := labels{labelLimiter: limiter, labelOutcome: outcome, labelReason: ""}
			if rate != "" {
				l[labelRate] = rate
			}
			all = append(all, l)
		}
	}
	return all
}

func (s *Scenario) startupIsOne() error {
	if got, n := sum(s.meters, meterStartup, nil); n != 1 || got != 1 {
		return s.wrongMeter(meterStartup, nil, "1", fmt.Sprintf("%v in %d series", got, n))
	}
	return s.verdict()
}

// due is how often a limiter decided so on the answers of the latest sentence.
func (s *Scenario) due(l labels) (n float64) {
	for _, e := range s.got {
		if e.who == nil || untouched(e) {
			continue
		}
		outcomes := map[string]string{"rate": "admitted", "concurrency": "admitted"}
		switch {
		case rateRejected(e):
			outcomes = map[string]string{"rate": "rejected"}
		case capRejected(e):
			outcomes["concurrency"] = "rejected"
		}
		if outcomes[l[labelLimiter]] == l[labelOutcome] {
			n++
		}
	}
	return n
}

// risen compares what series have risen by since the page was read with what
// they should have: to the unit where nobody else asks, else at least. What
// shows only a moment later counts as well.
func (s *Scenario) risen(ctx context.Context, name string, want []labels, due func(labels) float64) error {
	var wrong func() error
	for _, until := range append(glances(), 0) {
		now, err := s.metricsPage(ctx)
		if err != nil {
			return err
		}
		wrong = nil
		for _, l := range want {
			before, _ := sum(s.meters, name, l)
			after, _ := sum(now, name, l)
			if by := after - before; by < due(l) || s.Alone() && by > due(l) {
				expected := fmt.Sprintf("%v more", due(l))
				wrong = func() error { return s.wrongMeter(name, l, expected, fmt.Sprintf("%v more", by)) }
				break
			}
		}
		if wrong == nil {
			return s.verdict()
		}
		if err := pause(ctx, until); err != nil {
			return err
		}
	}
	return wrong()
}

// glances are the pauses between looks at a page that is not yet as it should be;
// about a second in all.
func glances() []time.Duration {
	const ms = time.Millisecond
	return []time.Duration{2 * ms, 10 * ms, 50 * ms, 200 * ms, 700 * ms}
}

// planRate is what the label of a user's decisions says.
func (s *Scenario) planRate() string {
	a, _ := s.Allowance(s.user().Plan)
	return strconv.FormatInt(a.RequestsPerMinute, 10)
}

func (s *Scenario) decisionsCounted(ctx context.Context) error {
	if err := s.risen(ctx, meterDecisions, decisions(s.planRate()), s.due); err != nil {
		return err
	}
	// Under no other rate: this is where an override's own would show.
	return s.risen(ctx, meterDecisions, decisions(""), s.due)
}

func (s *Scenario) durationsCounted(ctx context.Context) error {
	return s.risen(ctx, meterDuration, decisions(""), s.due)
}

// attemptOnce sends a request without a key, once.
func (s *Scenario) attemptOnce(ctx context.Context) error {
	return s.sends(func() ([]exchange, error) {
		r := s.Valid()
		r.Authorization = []string{}
		e, err := s.try(ctx, r)
		if err == nil && !letThrough(e) && !rateRejected(e) {
			err = fmt.Errorf("%w: a request without a key was answered with %s", ErrInconclusive, statusAndCode(e))
		}
		return []exchange{e}, err
	})
}

func (s *Scenario) anonymousCounted(ctx context.Context) error {
	outcome := "rejected"
	if letThrough(s.answer()) {
		outcome = "admitted"
	}
	want := []labels{{labelLimiter: "rate", labelOutcome: outcome, labelRate: "", labelReason: anonymousReason}}
	if err := s.risen(ctx, meterDecisions, want, func(labels) float64 { return 1 }); err != nil {
		return err
	}
	// And of no user.
	return s.risen(ctx, meterDecisions, decisions(""), s.due)
}

func (s *Scenario) failuresCounted(ctx context.Context, reason string) error {
	other := map[string]string{"missing": "malformed", "malformed": "missing"}[reason]
	err := s.risen(ctx, meterFailures, []labels{{labelReason: reason}, {labelReason: other}}, func(l labels) float64 {
		if l[labelReason] == reason {
			return float64(len(s.got))
		}
		return 0
	})
	if err != nil {
		return err
	}
	return s.risen(ctx, meterDecisions, decisions(""), s.due) // nothing was decided
}

// cachesHold looks at the caches while the user has spent tokens and requests in
// flight.
func (s *Scenario) cachesHold(ctx context.Context) error {
	if err := s.readMeters(ctx); err != nil {
		return err
	}
	for _, l := range caches() {
		if size, _ := sum(s.meters, meterSize, l); size < 1 {
			return s.wrongMeter(meterSize, l, "at least 1", fmt.Sprint(size))
		}
		if pressure, _ := sum(s.meters, meterPressure, l); pressure <= 0 || pressure > 1 {
			return s.wrongMeter(meterPressure, l, "above 0, up to 1", fmt.Sprint(pressure))
		}
	}
	return s.verdict()
}
