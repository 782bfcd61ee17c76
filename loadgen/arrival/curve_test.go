package arrival_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/loadgen/arrival"
)

// stretch is a part of a model curve: a straight line, or a wave about a level,
// over whole nanoseconds, in thousandths of a request per minute.
type stretch struct{ length, from, to, swing int64 }

// model says by other means what a curve has brought by a time: exactly for
// lines, by Simpson's rule for waves.
type model struct {
	stretches []stretch
	again     bool
}

func (m model) until(t time.Duration) float64 {
	sum, left := new(big.Rat), int64(t)
	for left > 0 {
		for _, s := range m.stretches {
			sum.Add(sum, s.until(min(left, s.length)))
			if left -= s.length; left <= 0 {
				break
			}
		}
		if !m.again {
			break
		}
	}
	n, _ := sum.Float64()
	return n
}

func (s stretch) until(x int64) *big.Rat {
	// from·x + (to − from)·x²/(2·length), over 60e9 nanoseconds and 1000.
	line := new(big.Rat).SetFrac(
		new(big.Int).Mul(big.NewInt(s.to-s.from), new(big.Int).Mul(big.NewInt(x), big.NewInt(x))),
		new(big.Int).Mul(big.NewInt(2), big.NewInt(s.length)))
	line.Add(line, new(big.Rat).SetInt(new(big.Int).Mul(big.NewInt(s.from), big.NewInt(x))))
	line.Quo(line, new(big.Rat).SetInt64(60e9*1000))
	if s.swing > 0 {
		const steps = 2000
		h, sum := float64(x)/steps, 0.0
		for i := 0; i <= steps; i++ {
			weight := float64(2 + 2*(i%2))
			if i == 0 || i == steps {
				weight = 1
			}
			sum += weight * float64(s.swing) * math.Sin(2*math.Pi*float64(i)*h/float64(s.length))
		}
		line.Add(line, new(big.Rat).SetFloat64(sum*h/3/60e9/1000))
	}
	return line
}

// curves draws a curve and its model, of at most some 3,000 requests a minute.
func curves(t *rapid.T) (*arrival.Curve, model) {
	milli := func(name string) (arrival.Rate, int64) {
		n := rapid.OneOf(rapid.Int64Range(0, 3_000_000), rapid.Int64Range(0, 3000)).Draw(t, name)
		if n == 0 {
			return arrival.Rate{}, 0
		}
		return rate(t, n, 1000), n
	}
	span := func(name string) time.Duration {
		return time.Duration(rapid.Int64Range(1e8, 4e10).Draw(t, name))
	}
	a, from := milli("from")
	b, to := milli("to")
	d, e := span("d"), span("e")
	if from+to == 0 {
		a, from = rate(t, 500, 1000), 500
	}
	var c *arrival.Curve
	var m model
	var err error
	switch rapid.IntRange(0, 3).Draw(t, "curve") {
	case 0:
		c, err = arrival.Ramp(a, b, d)
		m = model{stretches: []stretch{{int64(d), from, to, 0}}}
	case 1:
		c, err = arrival.Steps([]arrival.Piece{{For: d, Rate: a}, {For: e}, {For: e, Rate: b}})
		m = model{stretches: []stretch{{int64(d), from, from, 0}, {int64(e), 0, 0, 0}, {int64(e), to, to, 0}}}
	case 2:
		if from == 0 {
			a, from = b, to
		}
		c, err = arrival.OnOff(a, d, e)
		m = model{stretches: []stretch{{int64(d), from, from, 0}, {int64(e), 0, 0, 0}}, again: true}
	default:
		if from < to {
			a, from, b, to = b, to, a, from
		}
		c, err = arrival.Sine(a, b, d)
		m = model{stretches: []stretch{{int64(d), from, from, to}}, again: true}
	}
	require.NoError(t, err)
	return c, m
}

func along(t *rapid.T, c *arrival.Curve) arrival.Process {
	share := rapid.SampledFrom([]float64{1, 0.25, 1.5}).Draw(t, "share")
	if rapid.Bool().Draw(t, "evenly") {
		return c.Evenly(share)
	}
	return c.AtRandom(share)
}

// TestEvenRequestsAreOneRequestApart: between two requests the curve brings just
// one, whatever its shape, to the nanosecond.
func TestEvenRequestsAreOneRequestApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, m := curves(t)
		seed := rapid.Int64().Draw(t, "seed")
		list := dues(c.Evenly(1), seed, "u", 2*time.Minute)
		if len(list) == 0 {
			return
		}
		if len(m.stretches) == 2 {
			return // begins at a place of the user's own: TestOnOffHasItsShare
		}
		brought := m.until(list[0])
		require.GreaterOrEqual(t, brought, -1e-6)
		require.Less(t, brought, 1+1e-6, "the first request is before the first whole one")
		for i, due := range list[:min(len(list), 20)] {
			require.InDelta(t, brought+float64(i), m.until(due), 1e-6, "request %d at %v", i, due)
		}
	})
}

// TestRandomRequestsAreAMemorylessProcessStretched: the curve brings to each
// request what a level rate brings to it.
func TestRandomRequestsAreAMemorylessProcessStretched(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, m := curves(t)
		if len(m.stretches) == 2 {
			return // begins at a place of the user's own
		}
		seed := rapid.Int64().Draw(t, "seed")
		level := arrival.Poisson(rate(t, 1, 1)).Schedule(seed, "u")
		for i, due := range dues(c.AtRandom(1), seed, "u", time.Minute) {
			if i == 20 {
				return
			}
			require.InDelta(t, level.Next().Minutes(), m.until(due), 1e-6, "request %d at %v", i, due)
		}
	})
}

func TestCountsAreThoseOfTheCurve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, m := curves(t)
		end := time.Duration(rapid.Int64Range(1e9, 1e11).Draw(t, "end"))
		share := rapid.SampledFrom([]float64{1, 0.25, 1.5}).Draw(t, "share")
		p := c.Evenly(share)
		if len(m.stretches) == 2 {
			cycle := m.stretches[0].length + m.stretches[1].length
			end = time.Duration(cycle * rapid.Int64Range(1, 5).Draw(t, "cycles")) // wherever it begins
		}
		require.InDelta(t, share*m.until(end), p.Expected(end), 1e-6)
		require.InDelta(t, p.Expected(end), p.Count(rapid.Int64().Draw(t, "seed"), "u", end), 1.001)
	})
}

// TestOnOffHasItsShare: requests come while it is on, from a place of the user's
// own in it.
func TestOnOffHasItsShare(t *testing.T) {
	c, err := arrival.OnOff(rate(t, 60, 1), 10*time.Second, 50*time.Second)
	require.NoError(t, err)
	var firsts []float64
	for i := range 1000 {
		list := dues(c.Evenly(1), 5, fmt.Sprint("u", i), 10*time.Minute)
		require.InDelta(t, 100, len(list), 1)
		pauses := 0
		for i := 1; i < len(list); i++ {
			if gap := list[i] - list[i-1]; gap > 1001*time.Millisecond {
				require.InDelta(t, 51, gap.Seconds(), 1e-6, "the pause and what was left of a second")
				if pauses++; pauses == 1 {
					firsts = append(firsts, math.Mod(list[i].Seconds(), 60)/60)
				}
			} else {
				require.InDelta(t, 1, gap.Seconds(), 1e-6)
			}
		}
		require.InDelta(t, 10, pauses, 1)
	}
	requireUniform(t, firsts) // users are not in step
}

// TestSlowRampsKeepTheirDuration: a rate far below one a second is reached when
// the ramp ends, and not before.
func TestSlowRampsKeepTheirDuration(t *testing.T) {
	c, err := arrival.Ramp(arrival.Rate{}, rate(t, 10, 1), 5*time.Minute)
	require.NoError(t, err)
	p := c.Evenly(1)
	list := dues(p, 7, "free-001", time.Hour)
	require.InDelta(t, 25, len(list), 1)
	require.Less(t, list[len(list)-1], 5*time.Minute)
	require.Greater(t, list[len(list)-1], 5*time.Minute-7*time.Second)
	early := 0
	for _, due := range list {
		if due < 150*time.Second {
			early++
		}
	}
	require.InDelta(t, 25.0/4, early, 1, "half the time is a quarter of the area")
	require.InDelta(t, 10, p.Peak(), 1e-9)
	require.InDelta(t, 25, p.Expected(time.Hour), 1e-9)
}

func TestCurvesStayWhatTheyAre(t *testing.T) {
	curve := func(c *arrival.Curve, err error) *arrival.Curve { require.NoError(t, err); return c }
	ramp := curve(arrival.Ramp(arrival.Rate{}, rate(t, 120, 1), time.Minute))
	sine := curve(arrival.Sine(rate(t, 10, 1), rate(t, 10, 1), 5*time.Minute))
	onOff := curve(arrival.OnOff(rate(t, 60, 1), 2*time.Second, 8*time.Second))
	steps := curve(arrival.Steps([]arrival.Piece{{For: 10 * time.Second, Rate: rate(t, 1, 2)}, {For: 20 * time.Second, Rate: rate(t, 12, 1)}}))
	for name, c := range map[string]struct {
		process arrival.Process
		want    []string
	}{
		"ramp":           {ramp.Evenly(1), []string{"5.813201s", "9.684694s", "12.401343s"}},
		"ramp at random": {ramp.AtRandom(0.5), []string{"9.969933s", "10.139146s", "14.880046s"}},
		"sine":           {sine.Evenly(1), []string{"3.267565s", "8.605864s", "13.487093s"}},
		"sine at random": {sine.AtRandom(1), []string{"4.735351s", "4.889933s", "10.02269s"}},
		"on and off":     {onOff.Evenly(1), []string{"4.39574s", "5.39574s", "14.39574s"}},
		"steps":          {steps.Evenly(1), []string{"12.399442s", "17.399442s", "22.399442s"}},
		"times":          {arrival.Times([]time.Duration{time.Second, time.Second, time.Minute}), []string{"1s", "1s", "1m0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, got := c.process.Schedule(7, "free-001"), []string{}
			for range 3 {
				got = append(got, s.Next().Round(time.Microsecond).String())
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestEndedSchedulesStayEnded(t *testing.T) {
	ramp, err := arrival.Ramp(rate(t, 60, 1), rate(t, 60, 1), 2*time.Second)
	require.NoError(t, err)
	for _, p := range []arrival.Process{ramp.Evenly(1), ramp.AtRandom(1), arrival.Times([]time.Duration{time.Second})} {
		s := p.Schedule(1, "u")
		for range 50 {
			s.Next()
		}
		require.EqualValues(t, math.MaxInt64, s.Next())
	}
}

func TestCurvesThatAreNone(t *testing.T) {
	some := rate(t, 60, 1)
	for name, err := range map[string]error{
		"nothing ever":  second(arrival.Ramp(arrival.Rate{}, arrival.Rate{}, time.Minute)),
		"no time":       second(arrival.Ramp(some, some, 0)),
		"no step":       second(arrival.Steps(nil)),
		"no pause":      second(arrival.OnOff(some, time.Second, 0)),
		"less than all": second(arrival.Sine(some, rate(t, 61, 1), time.Minute)),
	} {
		require.Error(t, err, name)
	}
}

func second[T any](_ T, err error) error { return err }

func TestListedTimesKnowTheirPeak(t *testing.T) {
	p := arrival.Times([]time.Duration{0, 0, 0, 500 * time.Millisecond, time.Second, time.Second})
	require.EqualValues(t, 3, p.Together())
	require.InDelta(t, 240, p.Peak(), 1e-9, "four in the first second")
	require.InDelta(t, 4, p.Expected(time.Second), 1e-9)
}
