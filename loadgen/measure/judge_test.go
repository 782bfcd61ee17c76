package measure_test

import (
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/loadgen/measure"
	"github.com/invoicespec/brimline/reports/record"
)

// TestACorrectServerIsNeverAccused draws requests that overlap in any way, a
// server that decides at any instant between a request and its answer, on a
// clock that is coarse and runs too fast or too slow, and with everything that
// hides a decision from the client.
func TestACorrectServerIsNeverAccused(t *testing.T) {
	for range 10 { // the rare case is the one that matters
		rapid.Check(t, correctServerIsNotAccused)
	}
}

func correctServerIsNotAccused(t *rapid.T) {
	a := oracle.Allowance{
		RequestsPerMinute: rapid.SampledFrom([]int64{1, 7, 10, 60, 300, 6000, 600_000}).Draw(t, "rate"),
		Burst:             rapid.Int64Range(1, 12).Draw(t, "burst"),
		Concurrency:       rapid.Int64Range(1, 4).Draw(t, "cap"),
	}
	m := newModel(a)
	rested := rapid.Bool().Draw(t, "rested")
	if !rested {
		m.level = big.NewRat(rapid.Int64Range(0, a.Burst*1000).Draw(t, "level"), 1000)
	}
	drift := rapid.Int64Range(-1000, 1000).Draw(t, "drift") // of 2,000,000
	grain := time.Duration(rapid.Int64Range(1, int64(measure.Resolution)).Draw(t, "grain"))
	phase := time.Duration(rapid.Int64Range(0, int64(grain)-1).Draw(t, "phase"))
	m.clock = func(t time.Duration) time.Duration {
		return (t + t*time.Duration(drift)/2_000_000 + phase) / grain * grain
	}
	m.last = m.clock(0)

	requests := drawRequests(t, a)
	var now time.Duration
	j := measure.NewJudge(a, rested, new(measure.Slowest), func() time.Duration { return now })
	faults := play(m, j, &now, requests)
	if !slices.ContainsFunc(requests, func(r request) bool { return r.attempts() > 1 }) {
		require.Empty(t, faults, "headers; what is in flight is taken to be on its way once")
	}
	v := j.Verdicts()
	require.Zero(t, v.Rate.Undue, "undue rate 429s")
	require.Zero(t, v.Concurrency.Undue, "undue concurrency 429s")
	require.Zero(t, v.Missing, "missing 429s")
}

func drawRequests(t *rapid.T, a oracle.Allowance) []request {
	instants := time.Duration(0)
	free := func(at time.Duration) time.Duration { // no two instants are the same
		instants++
		return at&^1023 + instants
	}
	perToken := int64(time.Minute) / a.RequestsPerMinute
	span := func(name string, most int64) time.Duration {
		return time.Duration(rapid.OneOf(
			rapid.Just(int64(0)), rapid.Int64Range(0, 1000), rapid.Int64Range(0, most),
		).Draw(t, name))
	}
	var requests []request
	at := time.Duration(0)
	for range rapid.IntRange(1, 40).Draw(t, "requests") {
		at += span("gap", perToken*2)
		r := request{begin: free(at)}
		length := span("length", perToken*3)
		within := func() time.Duration {
			return free(at + time.Duration(rapid.Int64Range(0, int64(length)).Draw(t, "decision")))
		}
		late := func() time.Duration { return free(at + span("late", perToken*10)) }
		hold := time.Duration(rapid.Int64Range(0, int64(max(measure.Grace, 2*length))-2048).Draw(t, "release"))
		switch rapid.IntRange(0, 12).Draw(t, "fate") {
		case 0: // 401
		case 1: // an answer of a proxy, decided behind it or not
			r.masked = true
			if rapid.Bool().Draw(t, "decided") {
				r.decides = append(r.decides, within())
			}
		case 2: // no answer; the server may come to it at any time
			r.lost = true
			r.decides = append(r.decides, late())
			hold = span("held", perToken*10)
		case 3: // sent again behind our back
			r.decides = append(r.decides, late(), within())
		default:
			r.decides = append(r.decides, within())
		}
		r.end = free(at + length)
		r.release = free(r.end + hold)
		requests = append(requests, r)
	}
	return requests
}

// TestEveryRejectionIsJudged: nothing is left waiting once all answers are there.
func TestEveryRejectionIsJudged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := oracle.Allowance{RequestsPerMinute: 60, Burst: 3, Concurrency: 1}
		var now time.Duration
		j := measure.NewJudge(a, true, new(measure.Slowest), func() time.Duration { return now })
		var open []*measure.Exchange
		want := map[measure.Kind]int64{}
		for range rapid.IntRange(1, 100).Draw(t, "events") {
			now += time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "gap"))
			if len(open) > 0 && rapid.Bool().Draw(t, "end") {
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				kind := measure.Kind(rapid.Uint8Range(0, uint8(measure.Lost)).Draw(t, "kind"))
				j.End(open[i], kind, 1)
				open = append(open[:i], open[i+1:]...)
				want[kind]++
				continue
			}
			x, _ := j.Begin()
			open = append(open, x)
		}
		for _, x := range open {
			j.End(x, measure.Lost, 1)
		}
		v := j.Verdicts()
		require.Equal(t, want[measure.RefusedRate], v.Rate.Sum())
		require.Equal(t, want[measure.RefusedConcurrency], v.Concurrency.Sum())
	})
}

// TestClearCasesAreDecided lets a server refuse at random, one request at a time,
// and expects the verdict wherever the level is not right at one token.
func TestClearCasesAreDecided(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := oracle.Allowance{RequestsPerMinute: rapid.SampledFrom([]int64{10, 60, 300}).Draw(t, "rate"), Burst: rapid.Int64Range(1, 10).Draw(t, "burst"), Concurrency: 1}
		var now time.Duration
		j := measure.NewJudge(a, true, new(measure.Slowest), func() time.Duration { return now })
		exact := newModel(a)
		near := big.NewRat(1, 20)
		var last record.Judged
		for range rapid.IntRange(1, 50).Draw(t, "requests") {
			now += time.Duration(rapid.Int64Range(0, int64(time.Minute)/a.RequestsPerMinute*2).Draw(t, "gap"))
			x, _ := j.Begin()
			exact.settle(now)
			now += time.Millisecond
			above := new(big.Rat).Sub(exact.level, big.NewRat(1, 1))
			if above.Sign() < 0 || rapid.Bool().Draw(t, "refused") {
				j.End(x, measure.RefusedRate, 1)
			} else {
				exact.level.Set(above)
				j.End(x, measure.Passed, 1)
				continue
			}
			v := j.Verdicts().Rate
			switch {
			case above.Cmp(near) > 0:
				require.Equal(t, last.Undue+1, v.Undue, "%s tokens were there", exact.level.FloatString(4))
			case above.Cmp(new(big.Rat).Neg(near)) < 0:
				require.Equal(t, last.Due+1, v.Due, "%s tokens were there", exact.level.FloatString(4))
			}
			last = v
		}
		require.Zero(t, j.Verdicts().Missing)
	})
}

// TestWrongServersAreAccused: what each of them does wrong, and that it is said.
func TestWrongServersAreAccused(t *testing.T) {
	free := oracle.Allowance{RequestsPerMinute: 60, Burst: 10, Concurrency: 3}
	// One request after another, faster than the rate, then slower.
	steady := func(n int, gap time.Duration) []request {
		var list []request
		for i := range n {
			at := time.Duration(i) * gap
			list = append(list, request{begin: at, end: at + 1000, decides: []time.Duration{at + 500}, release: at + 700})
		}
		return list
	}
	// Four at once that take a second, again and again.
	crowds := func(n int) []request {
		var list []request
		for i := range n {
			at := time.Duration(i) * 10 * time.Second
			for k := range 4 {
				begin := at + time.Duration(k)*10*time.Millisecond
				list = append(list, request{begin: begin, end: begin + time.Second, decides: []time.Duration{begin + time.Millisecond}, release: begin + time.Second - 1})
			}
			for k := range list[len(list)-4:] {
				if k == 3 { // the last one is refused at once
					list[len(list)-1].end = list[len(list)-1].begin + 2*time.Millisecond
				}
			}
		}
		return list
	}
	// All at once, then a little slower than the rate.
	eager := append(steady(12, 1000), steady(20, 1050*time.Millisecond)[1:]...)
	for name, c := range map[string]struct {
		wrong    func(*model)
		requests []request
		rested   bool
		want     func(measure.Verdicts) bool
	}{
		"right, steady": {func(*model) {}, steady(100, 500*time.Millisecond), true,
			func(v measure.Verdicts) bool { return v.Rate.Due == v.Rate.Sum() && v.Rate.Due > 30 && v.Missing == 0 }},
		"right, steady, past not known": {func(*model) {}, steady(100, 500*time.Millisecond), false,
			func(v measure.Verdicts) bool { return v.Rate.Due == v.Rate.Sum() && v.Rate.Due > 30 && v.Missing == 0 }},
		"right, crowds": {func(*model) {}, crowds(5), true,
			func(v measure.Verdicts) bool { return v.Concurrency == record.Judged{Due: 5} && v.Missing == 0 }},
		"half the refill": {func(m *model) { m.refill = big.NewRat(1, 2) }, steady(100, 500*time.Millisecond), true,
			func(v measure.Verdicts) bool { return v.Rate.Undue > 20 && v.Missing == 0 }},
		"half the refill, past not known": {func(m *model) { m.refill = big.NewRat(1, 2) }, steady(100, 500*time.Millisecond), false,
			func(v measure.Verdicts) bool { return v.Rate.Undue > 20 && v.Missing == 0 }},
		"double the refill": {func(m *model) { m.refill = big.NewRat(2, 1) }, steady(100, 500*time.Millisecond), true,
			func(v measure.Verdicts) bool { return v.Missing > 30 && v.Rate.Undue == 0 }},
		"burst one short": {func(m *model) { m.burst, m.level = -1, big.NewRat(9, 1) }, steady(11, 1000), true,
			func(v measure.Verdicts) bool { return v.Rate == record.Judged{Undue: 2} && v.Missing == 0 }},
		"burst one too many, then none": {func(m *model) { m.burst, m.level = 1, big.NewRat(11, 1) }, eager, true,
			func(v measure.Verdicts) bool { return v.Rate == record.Judged{Due: 1} && v.Missing == 1 }},
		"passed right after a rejection, past not known": {func(m *model) { m.refill, m.level = big.NewRat(100, 1), new(big.Rat) }, steady(3, 10*time.Millisecond), false,
			func(v measure.Verdicts) bool { return v.Rate == record.Judged{Undecided: 1} && v.Missing == 1 }},
		"no refill, past not known": {func(m *model) { m.refill = new(big.Rat) }, append(steady(10, 1000), steady(2, 3*time.Second)[1:]...), false,
			func(v measure.Verdicts) bool { return v.Rate == record.Judged{Undue: 1} && v.Missing == 0 }},
		"burst one too many": {func(m *model) { m.burst, m.level = 1, big.NewRat(11, 1) }, steady(12, 1000), true,
			func(v measure.Verdicts) bool { return v.Rate == record.Judged{Due: 1} && v.Missing == 1 }},
		"cap one short": {func(m *model) { m.cap = -1 }, crowds(5), true,
			func(v measure.Verdicts) bool { return v.Concurrency == record.Judged{Undue: 10} && v.Rate.Sum() == 0 }},
		"tokens come back": {func(m *model) { m.refunds = true; m.cap = -3 }, steady(30, 100*time.Millisecond), true,
			func(v measure.Verdicts) bool { return v.Concurrency.Undue == 30 && v.Missing > 10 }},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(free)
			c.wrong(m)
			var now time.Duration
			j := measure.NewJudge(free, c.rested, new(measure.Slowest), func() time.Duration { return now })
			play(m, j, &now, c.requests)
			require.True(t, c.want(j.Verdicts()), "%+v", j.Verdicts())
		})
	}
}

// TestOverlapIsJudgedBySums: of requests that all overlap nobody can say which
// came first. If as many passed as there were tokens, no order would have let
// more through; if fewer did, each rejection was undue.
func TestOverlapIsJudgedBySums(t *testing.T) {
	a := oracle.Allowance{RequestsPerMinute: 60, Burst: 5, Concurrency: 10}
	for name, c := range map[string]struct {
		passed, refused int
		rested          bool
		want            record.Judged
	}{
		"the whole burst passed":                  {5, 3, true, record.Judged{Due: 3}},
		"the whole burst passed, past not known":  {5, 3, false, record.Judged{Due: 3}},
		"one was kept back":                       {4, 3, true, record.Judged{Undue: 3}},
		"one was kept back, or was not there yet": {4, 3, false, record.Judged{Undecided: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			var now time.Duration
			j := measure.NewJudge(a, c.rested, new(measure.Slowest), func() time.Duration { return now })
			var open []*measure.Exchange
			for range c.passed + c.refused {
				x, _ := j.Begin()
				open = append(open, x)
			}
			now = time.Millisecond
			for i, x := range open {
				kind := measure.Passed
				if i < c.refused {
					kind = measure.RefusedRate
				}
				j.End(x, kind, 1)
			}
			require.Equal(t, c.want, j.Verdicts().Rate)
			require.Zero(t, j.Verdicts().Missing)
		})
	}
}
