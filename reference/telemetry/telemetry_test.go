package telemetry_test

import (
	"flag"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/apilog"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/telemetry"
)

var update = flag.Bool("update", false, "write the golden file anew")

var (
	_ httpapi.Meters    = (*telemetry.Meters)(nil)
	_ telemetry.Limiter = (*limiter.Local)(nil)
	_ telemetry.Gate    = (*anonymous.Gate)(nil)
	_ telemetry.Log     = (*apilog.Spool)(nil)
)

// some is a limiter and a spool that have seen something.
type some struct{}

func (some) SubjectsInFlight() int { return 3 }

func (some) Stats() limiter.Stats {
	return limiter.Stats{Size: 750, Maximum: 1000, Evictions: 20, Lossy: 4}
}

type someGate struct{}

func (someGate) Stats() anonymous.Stats {
	return anonymous.Stats{Pools: limiter.Stats{Size: 8, Maximum: 10, Evictions: 3, Lossy: 2}, Known: 9}
}

type someLog struct{}

func (someLog) Stats() apilog.Stats {
	return apilog.Stats{
		Written: 100, Delivered: 90, Refused: 1, Torn: 2, Waiting: 4096,
		Dropped: apilog.Dropped{Anonymous: 5, Full: 6, Failed: 7},
	}
}

func newMeters() *telemetry.Meters {
	return telemetry.New(telemetry.Config{Limiter: some{}, Gate: someGate{}, Log: someLog{}, Logger: slog.New(slog.DiscardHandler)})
}

// exercised is every series there can be.
func exercised(t *testing.T) []sample {
	t.Helper()
	m := newMeters()
	m.Decided(60, admission.Admitted, time.Microsecond)
	return samples(t, scrape(t, m.Handler()))
}

// TestPage is the whole page, but for what the operating system says of the process.
func TestPage(t *testing.T) {
	m := newMeters()
	m.Decided(60, admission.Admitted, time.Microsecond)
	m.Decided(60, admission.Admitted, 5*time.Millisecond)
	m.Decided(60, admission.RateRejected, 700*time.Nanosecond)
	m.Decided(300, admission.ConcurrencyRejected, time.Microsecond)
	m.Decided(0, admission.Admitted, time.Second)
	m.AnonymousDecided(admission.RateRejected, time.Microsecond)
	for range 3 {
		m.ConfigurationFailed(policy.Missing)
	}
	m.ConfigurationFailed(policy.Malformed)
	m.ConfigurationFailed("usr_1") // not one of the reasons: no label of its own
	m.StoreFailed()

	var ours []string
	for line := range strings.Lines(scrape(t, m.Handler())) {
		if strings.Contains(line, "invoicespec_") {
			ours = append(ours, line)
		}
	}
	const golden = "testdata/metrics.txt"
	got := strings.Join(ours, "")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// TestPageIsWellFormed reads the page as Prometheus does, and holds its names to
// Prometheus' own rules.
func TestPageIsWellFormed(t *testing.T) {
	m := newMeters()
	m.Decided(60, admission.Admitted, time.Microsecond)
	page := scrape(t, m.Handler())
	problems, err := promlint.New(strings.NewReader(page)).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)

	_, err = promlint.New(strings.NewReader(page + "broken{")).Lint()
	require.Error(t, err, "the reader takes everything")
}

func TestProcessIsShown(t *testing.T) {
	page := scrape(t, newMeters().Handler())
	require.Regexp(t, `(?m)^process_start_time_seconds [1-9]`, page)
	require.Regexp(t, `(?m)^invoicespec_rate_limit_startup_total 1$`, page)
}

func TestWithoutSpool(t *testing.T) {
	m := telemetry.New(telemetry.Config{Limiter: some{}, Logger: slog.New(slog.DiscardHandler)})
	page := scrape(t, m.Handler())
	require.NotContains(t, page, "api_log")
	require.Contains(t, page, "cache_size")
}

// TestRatesAreBounded: whatever rates come, from however many goroutines, the
// page stays small and no decision is lost.
func TestRatesAreBounded(t *testing.T) {
	m := newMeters()
	const workers, each = 8, 5_000
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := range each {
				m.Decided(int64(i+w), admission.RateRejected, time.Microsecond)
				if i%1000 == 0 {
					_ = scrape(t, m.Handler())
				}
			}
		})
	}
	all.Wait()
	rates, total := map[string]bool{}, 0.0
	for _, s := range samples(t, scrape(t, m.Handler())) {
		if s.name == "invoicespec_rate_limit_decisions_total" && s.labels["reason"] == "" {
			rates[s.labels["requests_per_minute"]] = true
			total += s.value
		}
	}
	require.Len(t, rates, 64+1)
	require.True(t, rates["other"])
	require.InDelta(t, workers*each, total, 0)
}

// TestOutcomesThatAreNone: an outcome beyond the enumeration is no decision.
func TestOutcomesThatAreNone(t *testing.T) {
	m := newMeters()
	m.AnonymousDecided(0, time.Microsecond)
	m.AnonymousDecided(99, time.Microsecond)
	for _, s := range samples(t, scrape(t, m.Handler())) {
		if strings.HasPrefix(s.name, "invoicespec_rate_limit_decision") {
			require.Zero(t, s.value, "%v", s)
		}
	}
}

// TestBucketsTellDurationsApart: both a decision in memory and one in a store
// lie between buckets whose ends differ by no more than two and a half times.
func TestBucketsTellDurationsApart(t *testing.T) {
	for _, took := range []time.Duration{
		300 * time.Nanosecond, time.Microsecond, 1500 * time.Nanosecond, 30 * time.Microsecond,
		700 * time.Microsecond, 5 * time.Millisecond, 7 * time.Millisecond, 90 * time.Millisecond,
	} {
		m := newMeters()
		m.AnonymousDecided(admission.RateRejected, took)
		var below, above float64
		for _, s := range samples(t, scrape(t, m.Handler())) {
			if s.name != "invoicespec_rate_limit_decision_duration_seconds_bucket" || s.labels["outcome"] != "rejected" || s.labels["limiter"] != "rate" || s.labels["reason"] == "" {
				continue
			}
			switch le := number(t, s.labels["le"]); {
			case s.value == 0:
				below = max(below, le)
			case above == 0 || le < above:
				above = le
			}
		}
		require.GreaterOrEqual(t, took.Seconds(), below, took)
		require.LessOrEqual(t, took.Seconds(), above, took)
		require.LessOrEqual(t, above/below, 2.5+1e-9, took)
	}
}

// TestNamesOfTheContract is METRIC-1 written out, and what this project adds.
func TestNamesOfTheContract(t *testing.T) {
	m := newMeters()
	m.Decided(60, admission.Admitted, time.Microsecond)
	found := map[string][]string{}
	for _, s := range samples(t, scrape(t, m.Handler())) {
		var labels []string
		for l := range s.labels {
			labels = append(labels, l)
		}
		slices.Sort(labels)
		found[s.name] = labels
	}
	for name, labels := range map[string]string{
		"startup_total":                    "",
		"decisions_total":                  "limiter outcome reason requests_per_minute",
		"decision_duration_seconds_bucket": "le limiter outcome reason",
		"configuration_failures_total":     "reason",
		"cache_eviction_pressure":          "cache",
		"cache_evictions":                  "cache",
		"cache_size":                       "cache",
		"cache_lossy_evictions_total":      "cache",
		"store_failures_total":             "",
		"decision_duration_seconds_count":  "limiter outcome reason",
		"decision_duration_seconds_sum":    "limiter outcome reason",
	} {
		got, ok := found["invoicespec_rate_limit_"+name]
		require.True(t, ok, name)
		require.Equal(t, labels, strings.Join(got, " "), name)
	}
}

func BenchmarkDecided(b *testing.B) {
	m := newMeters()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.Decided(60, admission.Admitted, time.Microsecond)
		}
	})
}

// sample is one line of the page.
type sample struct {
	name   string
	labels map[string]string
	value  float64
}

var (
	sampleForm = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$`)
	labelForm  = regexp.MustCompile(`^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)`)
)

// samples reads the page strictly: what is no comment is a sample.
func samples(t *testing.T, page string) []sample {
	t.Helper()
	var all []sample
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := sampleForm.FindStringSubmatch(line)
		require.NotNil(t, f, line)
		s := sample{name: f[1], labels: map[string]string{}, value: number(t, f[3])}
		for rest := f[2]; rest != ""; {
			l := labelForm.FindStringSubmatch(rest)
			require.NotNil(t, l, line)
			s.labels[l[1]] = l[2]
			rest = rest[len(l[0]):]
		}
		all = append(all, s)
	}
	require.NotEmpty(t, all)
	return all
}
