package arrival

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Curve is a rate that changes with time. The processes along it are exact: a
// user's requests are those of an even or of a memoryless process, put where the
// requests that the curve has brought by then reach their number.
type Curve struct {
	pieces []piece
	length float64 // of all pieces, in nanoseconds
	whole  float64 // requests in all pieces
	again  bool    // it begins anew at its end; else nothing comes after
	own    bool    // every user is somewhere else in it at the start
}

// piece is a part of a curve along which the rate changes evenly, or as a wave
// about what it is. Rates are requests a minute.
type piece struct {
	start, length float64 // in nanoseconds
	before        float64 // requests in the pieces before it
	requests      float64
	from, to      float64
	swing         float64 // of the wave
}

const minute = float64(time.Minute)

// Piece is a stretch of time with a rate.
type Piece struct {
	For  time.Duration
	Rate Rate // the zero value: nothing
}

// Steps are rates one after the other; after the last there is nothing.
func Steps(list []Piece) (*Curve, error) {
	c := &Curve{}
	for _, p := range list {
		c.add(p.For, p.Rate.PerMinute(), p.Rate.PerMinute(), 0)
	}
	return c.checked()
}

// OnOff is a rate for a while and a pause, again and again. Every user is
// somewhere else in it when the run begins.
func OnOff(r Rate, on, off time.Duration) (*Curve, error) {
	c := &Curve{again: true, own: true}
	c.add(on, r.PerMinute(), r.PerMinute(), 0)
	c.add(off, 0, 0, 0)
	return c.checked()
}

// Ramp is a rate that changes evenly for a while; after that there is nothing.
func Ramp(from, to Rate, d time.Duration) (*Curve, error) {
	c := &Curve{}
	c.add(d, from.PerMinute(), to.PerMinute(), 0)
	return c.checked()
}

// Sine is a rate that swings about a mean, again and again: at the start it is
// the mean and rises.
func Sine(mean, amplitude Rate, period time.Duration) (*Curve, error) {
	if amplitude.PerMinute() > mean.PerMinute() {
		return nil, errors.New("the rate would fall below 0")
	}
	c := &Curve{again: true}
	c.add(period, mean.PerMinute(), mean.PerMinute(), amplitude.PerMinute())
	return c.checked()
}

func (c *Curve) add(d time.Duration, from, to, swing float64) {
	p := piece{start: c.length, length: float64(d), before: c.whole, from: from, to: to, swing: swing}
	p.requests = p.until(p.length)
	c.pieces = append(c.pieces, p)
	c.length += p.length
	c.whole += p.requests
}

func (c *Curve) checked() (*Curve, error) {
	for _, p := range c.pieces {
		if p.length < 1 {
			return nil, fmt.Errorf("%v is no stretch of time", time.Duration(p.length))
		}
	}
	if c.whole <= 0 {
		return nil, errors.New("no request is ever due")
	}
	return c, nil
}

// Evenly is requests along the curve at even distances, so many times as often
// as it says.
func (c *Curve) Evenly(share float64) Process { return Process{kind: constant, curve: c, share: share} }

// AtRandom is requests along the curve that do not know of each other, so many
// times as often as it says.
func (c *Curve) AtRandom(share float64) Process {
	return Process{kind: poisson, curve: c, share: share}
}

// until is how many requests a curve has brought by a time.
func (c *Curve) until(t float64) float64 {
	n := 0.0
	if c.again {
		n = math.Floor(t / c.length)
		t -= float64(n * c.length)
	}
	sum := float64(n * c.whole)
	for _, p := range c.pieces {
		if t < p.start {
			break
		}
		sum += p.until(min(t-p.start, p.length))
	}
	return sum
}

// when is the time by which a curve has brought so many requests, infinity if it
// never does.
func (c *Curve) when(n float64) float64 {
	begins := 0.0
	if c.again {
		round := math.Floor(n / c.whole)
		n -= float64(round * c.whole)
		begins = round * c.length
	}
	for _, p := range c.pieces {
		if n < p.before+p.requests {
			return begins + p.start + p.when(max(0, n-p.before))
		}
	}
	if c.again { // by rounding
		return begins + c.length
	}
	return math.Inf(1)
}

// peak is the highest rate.
func (c *Curve) peak() float64 {
	most := 0.0
	for _, p := range c.pieces {
		most = max(most, p.from+p.swing, p.to+p.swing)
	}
	return most
}

// until is how many requests the piece has brought after some nanoseconds of it.
// Products are rounded before they are added, so that machines that can do both
// in one step come to the same.
func (p piece) until(x float64) float64 {
	if p.swing > 0 {
		turn := 2 * math.Pi / p.length
		return (float64(p.from*x) + float64(p.swing/turn*(1-math.Cos(float64(turn*x))))) / minute
	}
	return (float64(p.from*x) + float64((p.to-p.from)/p.length/2*x*x)) / minute
}

// when is the other way round, for fewer requests than the piece has.
func (p piece) when(n float64) float64 {
	amount := n * minute
	var x float64
	switch slope := (p.to - p.from) / p.length; {
	case amount == 0:
		return 0
	case p.swing > 0:
		x = p.onWave(amount)
	case slope == 0:
		x = amount / p.from
	default:
		root := math.Sqrt(max(0, float64(p.from*p.from)+float64(2*slope*amount)))
		x = 2 * amount / (p.from + root)
	}
	return min(x, p.length)
}

// onWave solves for the angle by Newton's steps, and halves what is left where
// one would leave it: at its least the rate may be 0. A step's square says how
// far off the next one is, so after a small one it is done, to a hundredth of a
// nanosecond of a day.
func (p piece) onWave(amount float64) float64 {
	wanted := amount * 2 * math.Pi / p.length
	low, high := 0.0, 2*math.Pi
	angle := min(wanted/p.from, high)
	for range 100 {
		sin, cos := math.Sincos(angle)
		off := float64(p.from*angle) + float64(p.swing*(1-cos)) - wanted
		if off > 0 {
			high = angle
		} else {
			low = angle
		}
		rate := p.from + float64(p.swing*sin)
		next := angle - off/rate
		if !(next > low && next < high) {
			next = (low + high) / 2
		}
		step := math.Abs(next - angle)
		angle = next
		if step < 1e-15 || step < 1e-9 && rate > p.from/100 {
			break
		}
	}
	return angle / (2 * math.Pi) * p.length
}
