package measure_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/loadgen/measure"
	"github.com/invoicespec/brimline/reports/record"
)

// TestWhoTookTheToken: which requests of the user explain a rejection.
func TestWhoTookTheToken(t *testing.T) {
	a := oracle.Allowance{RequestsPerMinute: 1, Burst: 1, Concurrency: 10}
	type span struct {
		begin, end time.Duration
		kind       measure.Kind
	}
	// Something is always in flight, so that nothing is forgotten.
	long := span{0, 2 * time.Hour, measure.Untouched}
	refused := span{time.Hour, time.Hour + 10, measure.RefusedRate}
	for name, c := range map[string]struct {
		others []span
		want   record.Judged
	}{
		"nobody":                        {nil, record.Judged{Undue: 1}},
		"one that was over before":      {[]span{{time.Hour - 20, time.Hour - 10, measure.Passed}}, record.Judged{Due: 1}},
		"one at the same time":          {[]span{{time.Hour - 5, time.Hour + 5, measure.Passed}}, record.Judged{Due: 1}},
		"one that was over much before": {[]span{{time.Minute, 2 * time.Minute, measure.Passed}}, record.Judged{Undue: 1}},
		"not one that came later":       {[]span{{time.Hour + 20, time.Hour + 30, measure.Passed}}, record.Judged{Undue: 1}},
		"perhaps one that got lost":     {[]span{{time.Minute, 2 * time.Minute, measure.Lost}}, record.Judged{Undecided: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var now time.Duration
			j := measure.NewJudge(a, false, new(measure.Slowest), func() time.Duration { return now })
			var requests []request
			kinds := map[time.Duration]measure.Kind{}
			for _, s := range append(c.others, long, refused) {
				requests = append(requests, request{begin: s.begin, end: s.end})
				kinds[s.end] = s.kind
			}
			watch(j, &now, requests, func(r request) measure.Kind { return kinds[r.end] })
			require.Equal(t, c.want, j.Verdicts().Rate)
		})
	}
	t.Run("not one that came later, past not known", func(t *testing.T) {
		var now time.Duration
		j := measure.NewJudge(a, false, new(measure.Slowest), func() time.Duration { return now })
		watch(j, &now, []request{{begin: 0, end: 100}, {begin: 1, end: 2}, {begin: 3, end: 4}}, func(r request) measure.Kind {
			return map[time.Duration]measure.Kind{100: measure.Untouched, 2: measure.RefusedRate, 4: measure.Passed}[r.end]
		})
		require.Equal(t, record.Judged{Undecided: 1}, j.Verdicts().Rate)
	})
}

// TestClocksMayRunApart: half a thousandth, either way, over a minute in which
// nothing else tells the level.
func TestClocksMayRunApart(t *testing.T) {
	a := oracle.Allowance{RequestsPerMinute: 60, Burst: 100, Concurrency: 1}
	for name, c := range map[string]struct {
		drift time.Duration // of 2,000
		wait  time.Duration
		want  measure.Verdicts
	}{
		"the server's is slow": {-1, 50 * time.Second, measure.Verdicts{Rate: record.Judged{Undecided: 1}}},
		"the server's is fast": {+1, 49_980 * time.Millisecond, measure.Verdicts{}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(a)
			m.clock = func(t time.Duration) time.Duration { return t + t*c.drift/2000 }
			var requests []request
			for i := range 150 {
				at := time.Duration(i) * 100
				if i >= 100 {
					at += c.wait
				}
				requests = append(requests, request{begin: at, end: at + 20, decides: []time.Duration{at + 10}, release: at + 15})
			}
			var now time.Duration
			j := measure.NewJudge(a, true, new(measure.Slowest), func() time.Duration { return now })
			play(m, j, &now, requests)
			require.Equal(t, c.want, j.Verdicts())
		})
	}
}

// TestSlowServersMayHoldPermitsLonger: a server that was once slow is not accused
// of giving a permit back late, one that never was is.
func TestSlowServersMayHoldPermitsLonger(t *testing.T) {
	a := oracle.Allowance{RequestsPerMinute: 600, Burst: 100, Concurrency: 1}
	for name, c := range map[string]struct {
		slowest, pause time.Duration
		want           record.Judged
	}{
		"right after":             {time.Millisecond, 90 * time.Millisecond, record.Judged{Undecided: 1}},
		"long after":              {time.Millisecond, 110 * time.Millisecond, record.Judged{Undue: 1}},
		"long after, once slow":   {time.Second, 1900 * time.Millisecond, record.Judged{Undecided: 1}},
		"longer after, once slow": {time.Second, 2100 * time.Millisecond, record.Judged{Undue: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var now time.Duration
			slowest := new(measure.Slowest)
			clock := func() time.Duration { return now }
			other, j := measure.NewJudge(a, true, slowest, clock), measure.NewJudge(a, true, slowest, clock)
			slow, _ := other.Begin()
			now += c.slowest
			other.End(slow, measure.Passed, 1)
			for range 1000 { // what is long ago does not matter, nor does it pile up
				x, _ := j.Begin()
				j.End(x, measure.Passed, 1)
				now += time.Second
			}
			x, _ := j.Begin()
			j.End(x, measure.Passed, 1)
			now += c.pause
			x, _ = j.Begin()
			j.End(x, measure.RefusedConcurrency, 1)
			require.Equal(t, c.want, j.Verdicts().Concurrency)
		})
	}
}

// TestOnlyWhatIsHeldThroughoutMakesAConcurrencyRejectionDue: a place that came
// free meanwhile leaves it open.
func TestOnlyWhatIsHeldThroughoutMakesAConcurrencyRejectionDue(t *testing.T) {
	a := oracle.Allowance{RequestsPerMinute: 60, Burst: 10, Concurrency: 2}
	for name, c := range map[string]struct {
		endsBefore bool
		want       record.Judged
	}{
		"both held throughout":    {false, record.Judged{Due: 1}},
		"one came free meanwhile": {true, record.Judged{Undecided: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			j := measure.NewJudge(a, true, new(measure.Slowest), func() time.Duration { return 0 })
			first, _ := j.Begin()
			second, _ := j.Begin()
			refused, _ := j.Begin()
			if c.endsBefore {
				j.End(second, measure.Passed, 1)
				j.End(refused, measure.RefusedConcurrency, 1)
			} else {
				j.End(refused, measure.RefusedConcurrency, 1)
				j.End(second, measure.Passed, 1)
			}
			j.End(first, measure.Passed, 1)
			require.Equal(t, c.want, j.Verdicts().Concurrency)
		})
	}
}
