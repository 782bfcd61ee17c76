package chart

import (
	"math"
	"slices"
	"strconv"

	"github.com/invoicespec/brimline/internal/figure"
)

// Unit says what an axis counts, and so how it runs and how it is labelled.
type Unit string

// The units.
const (
	Share     Unit = "share"     // linear from zero, in per cent
	Amount    Unit = "amount"    // linear from zero
	Rate      Unit = "rate"      // logarithmic, labelled at the points
	Multiple  Unit = "multiple"  // logarithmic, of what is allowed
	Microsecs Unit = "microsecs" // logarithmic
)

// axis is where a value lies, and its ticks.
type axis struct {
	at    func(float64) float64
	ticks []tick
}

type tick struct {
	value float64
	label string
}

// newAxis runs from one place of the drawing to another and holds all values.
func newAxis(u Unit, values []float64, from, to float64) axis {
	if len(values) == 0 {
		values = []float64{1}
	}
	switch u {
	case Share, Amount:
		return linear(u, slices.Max(values), from, to)
	}
	return logarithmic(u, values, from, to)
}

func linear(u Unit, most, from, to float64) axis {
	top, step := roundTop(u, most)
	a := axis{at: func(v float64) float64 { return from + v/top*(to-from) }}
	for i := 0; float64(i)*step <= top*1.0001; i++ {
		v := float64(i) * step
		label := decimal(v, step)
		if u == Share {
			label = percent(v, step)
		}
		a.ticks = append(a.ticks, tick{v, label})
	}
	return a
}

// roundTop is the upper end of an axis from zero and the step of its grid.
func roundTop(u Unit, most float64) (top, step float64) {
	least := 0.001
	if u == Amount {
		least = 1
	}
	most = max(most, least)
	step = math.Pow(10, math.Floor(math.Log10(most/4)))
	for _, times := range []float64{1, 2, 2.5, 5, 10} {
		if step*times*5 >= most {
			step *= times
			break
		}
	}
	top = math.Ceil(most/step-1e-9) * step
	if u == Share {
		top = min(1, top)
	}
	return top, step
}

func logarithmic(u Unit, values []float64, from, to float64) axis {
	values = slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return v <= 0 })
	if len(values) == 0 {
		values = []float64{1}
	}
	slices.Sort(values)
	values = slices.Compact(values)
	low, high := values[0], values[len(values)-1]
	if u == Microsecs || low == high {
		low, high = roundDown(low), roundUp(high)
	}
	least, most := math.Log(low), math.Log(high)
	if least == most {
		most++
	}
	a := axis{at: func(v float64) float64 { return from + (math.Log(max(v, low))-least)/(most-least)*(to-from) }}
	if u == Rate {
		for _, v := range values {
			a.ticks = append(a.ticks, tick{v, number(v)})
		}
		return a
	}
	for _, v := range rounds(low, high) {
		label := number(v)
		if u == Microsecs {
			label = figure.Micros(int64(math.Round(v)))
		}
		a.ticks = append(a.ticks, tick{v, label})
	}
	return a
}

// rounds is the 1, 2 and 5 of each decade between the bounds; of many decades
// only the 1.
func rounds(low, high float64) (list []float64) {
	steps := []float64{1, 2, 5}
	if high/low > 500 {
		steps = steps[:1]
	}
	for decade := math.Floor(math.Log10(low)); decade <= math.Log10(high); decade++ {
		for _, s := range steps {
			if v := s * math.Pow(10, decade); v >= low*(1-1e-9) && v <= high*(1+1e-9) {
				list = append(list, v)
			}
		}
	}
	return list
}

func roundDown(v float64) float64 {
	decade := math.Pow(10, math.Floor(math.Log10(v)))
	for _, s := range []float64{5, 2} {
		if s*decade <= v {
			return s * decade
		}
	}
	return decade
}

func roundUp(v float64) float64 {
	decade := math.Pow(10, math.Floor(math.Log10(v)))
	for _, s := range []float64{1, 2, 5} {
		if s*decade >= v*(1-1e-9) {
			return s * decade
		}
	}
	return 10 * decade
}

// thinned keeps the first tick and each that has room beside the one before.
func (a axis) thinned(room float64) []tick {
	if len(a.ticks) == 0 {
		return nil
	}
	kept := a.ticks[:1:1]
	for _, t := range a.ticks[1:] {
		if a.at(t.value)-a.at(kept[len(kept)-1].value) >= room {
			kept = append(kept, t)
		}
	}
	return kept
}

// number is a figure below the plot.
func number(v float64) string {
	if v >= 1000 {
		return figure.Grouped(int64(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// decimals is how many decimals a step takes.
func decimals(step float64) (n int) {
	for d := step; n < 4 && (d < 0.999 || math.Abs(d-math.Round(d)) > 1e-6); d *= 10 {
		n++
	}
	return n
}

func decimal(v, step float64) string {
	if step >= 1 && v >= 1000 {
		return figure.Grouped(int64(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'f', decimals(step), 64)
}

// percent is a share with as many decimals as the step has.
func percent(share, step float64) string {
	return strconv.FormatFloat(100*share, 'f', decimals(100*step), 64) + " %"
}
