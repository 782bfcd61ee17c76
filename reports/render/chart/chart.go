// Package chart draws shares over a rate as SVG for a page of HTML: lines with
// dashes, colours and labels of their own, an interval around one of them, and
// marks above the plot. The share axis is linear and begins at zero; the axis
// of the rate is logarithmic; there is no second axis.
//
// Most callers want [Shares.Figure] and, once in a page, [CSS]. A chart is two
// drawings of the same, since a wide one shrunk to a telephone cannot be read;
// the style sheet shows one of them. Whoever cannot see it has its title, its
// description and the table that the caller puts beside it. The same chart is
// the same bytes.
package chart

import (
	"bytes"
	_ "embed"
	"html/template"
	"math"
	"slices"
	"strconv"

	"github.com/invoicespec/brimline/internal/figure"
)

// CSS is the style of every chart. It uses the page's custom properties ink,
// quiet, rule, ground and series-1 to series-3.
//
//go:embed chart.css
var CSS string

//go:embed chart.svg.tmpl
var source string

var drawing = template.Must(template.New("chart").Parse(source))

// Shares is a chart of shares over a rate.
type Shares struct {
	ID     string // unique in its page, a letter first
	Title  string
	Desc   string // what a reader would see, in a sentence or two
	XLabel string
	Lines  []Line // three at most
	Marks  []Mark
}

// Line is one series, in order of X.
type Line struct {
	Label  string // beside the line
	Short  string // the same where there is little room
	Points []Point
	Band   bool // draw the intervals of the points
}

// Point is one value and its interval.
type Point struct {
	X         float64 // a whole number above 0
	Y         float64 // a share
	Low, High float64
	Filled    bool
	Title     string // what a pointer resting on it is told
}

// Mark is a vertical line with a label above the plot.
type Mark struct {
	X     float64
	Label string
}

// Figure is the chart in both of its sizes.
func (s Shares) Figure() (template.HTML, error) {
	var b bytes.Buffer
	for _, size := range []size{wide, narrow} {
		if err := drawing.Execute(&b, s.layout(size)); err != nil {
			return "", err
		}
	}
	return template.HTML(b.String()), nil
}

// size is a drawing's measures in units of its own view box.
type size struct {
	class                    string
	width, height            float64
	left, right, top, bottom float64 // around the plot
	perTick                  float64 // room that a label of the rate takes
	short                    bool
}

var (
	wide   = size{class: "wide", width: 880, height: 340, left: 52, right: 140, top: 44, bottom: 46, perTick: 34}
	narrow = size{class: "narrow", width: 352, height: 300, left: 40, right: 38, top: 44, bottom: 46, perTick: 32, short: true}
)

// layout is a drawing as the template wants it: numbers as text, so that they
// look alike everywhere.
type layout struct {
	ID, Class, Title, Desc, XLabel string
	Width, Height                  string
	Left, Right, Top, Bottom       string // edges of the plot
	XLabelAt, XLabelY              string
	Grid                           []tick
	Ticks                          []tick
	Marks                          []markAt
	Lines                          []lineAt
}

type tick struct{ At, Label string }

type markAt struct{ X, Y, From, Anchor, Label string }

type lineAt struct {
	Class, Path, Band     string
	Label, LabelX, LabelY string
	Leader                string
	Points                []pointAt
}

type pointAt struct {
	X, Y, Title string
	Filled      bool
}

func (s Shares) layout(z size) layout {
	x, xs := s.xScale(z)
	top, step := s.yTop()
	y := func(share float64) float64 { return z.top + (1-share/top)*(z.height-z.top-z.bottom) }
	right, bottom := z.width-z.right, z.height-z.bottom
	l := layout{
		ID: s.ID + "-" + z.class, Class: z.class, Title: s.Title, Desc: s.Desc, XLabel: s.XLabel,
		Width: num(z.width), Height: num(z.height), Left: num(z.left), Right: num(right), Top: num(z.top), Bottom: num(bottom),
		XLabelAt: num((z.left + right) / 2), XLabelY: num(z.height - 8),
	}
	for i := 0; float64(i)*step <= top*1.0001; i++ {
		share := float64(i) * step
		l.Grid = append(l.Grid, tick{At: num(y(share)), Label: percent(share, step)})
	}
	for _, v := range thinned(xs, x, z.perTick) {
		l.Ticks = append(l.Ticks, tick{At: num(x(v)), Label: figure.Grouped(int64(math.Round(v)))})
	}
	for i, m := range s.Marks {
		at := markAt{X: num(x(m.X)), Y: num(z.top - 10 - 15*float64(i%2)), Anchor: "middle", Label: m.Label}
		at.From = num(z.top - 6 - 15*float64(i%2))
		switch { // a label must not leave the drawing
		case x(m.X) < z.left+40:
			at.Anchor = "start"
		case x(m.X) > right-40+z.right/2:
			at.Anchor = "end"
		}
		l.Marks = append(l.Marks, at)
	}
	l.Lines = s.lines(z, x, y)
	return l
}

func (s Shares) lines(z size, x, y func(float64) float64) []lineAt {
	var ends []float64
	for _, line := range s.Lines {
		ends = append(ends, y(line.Points[len(line.Points)-1].Y))
	}
	labels := spread(ends, 15, z.top+4, z.height-z.bottom)
	var list []lineAt
	for i, line := range s.Lines {
		at := lineAt{Class: "s" + strconv.Itoa(i+1), Label: line.Label}
		if z.short {
			at.Label = line.Short
		}
		for j, p := range line.Points {
			command := "L"
			if j == 0 {
				command = "M"
			}
			at.Path += command + num(x(p.X)) + " " + num(y(p.Y))
			at.Points = append(at.Points, pointAt{X: num(x(p.X)), Y: num(y(p.Y)), Title: p.Title, Filled: p.Filled})
		}
		if line.Band {
			at.Band = band(line.Points, x, y)
		}
		end := x(line.Points[len(line.Points)-1].X)
		at.LabelX, at.LabelY = num(end+16), num(labels[i]+4)
		at.Leader = "M" + num(end+5) + " " + num(ends[i]) + "L" + num(end+13) + " " + num(labels[i])
		list = append(list, at)
	}
	return list
}

// band is the outline of the intervals: along the upper ends and back along the
// lower ones.
func band(points []Point, x, y func(float64) float64) string {
	path, command := "", "M"
	for _, p := range points {
		path += command + num(x(p.X)) + " " + num(y(p.High))
		command = "L"
	}
	for _, p := range slices.Backward(points) {
		path += command + num(x(p.X)) + " " + num(y(p.Low))
	}
	return path + "Z"
}

// xScale is where a rate lies, and every rate that has a point.
func (s Shares) xScale(z size) (func(float64) float64, []float64) {
	var xs []float64
	for _, line := range s.Lines {
		for _, p := range line.Points {
			xs = append(xs, p.X)
		}
	}
	slices.Sort(xs)
	xs = slices.Compact(xs)
	least, most := math.Log(xs[0]), math.Log(xs[len(xs)-1])
	if least == most {
		most++
	}
	width := z.width - z.left - z.right
	return func(x float64) float64 { return z.left + (math.Log(x)-least)/(most-least)*width }, xs
}

// yTop is the upper end of the share axis and the step of its grid.
func (s Shares) yTop() (top, step float64) {
	most := 0.0
	for _, line := range s.Lines {
		for _, p := range line.Points {
			most = max(most, p.Y)
			if line.Band {
				most = max(most, p.High)
			}
		}
	}
	most = max(most, 0.001)
	step = math.Pow(10, math.Floor(math.Log10(most/4)))
	for _, times := range []float64{1, 2, 2.5, 5, 10} {
		if step*times*5 >= most {
			step *= times
			break
		}
	}
	return min(1, math.Ceil(most/step-1e-9)*step), step
}

// thinned keeps the first value and each that has room beside the one before.
func thinned(xs []float64, x func(float64) float64, room float64) []float64 {
	kept := xs[:1:1]
	for _, v := range xs[1:] {
		if x(v)-x(kept[len(kept)-1]) >= room {
			kept = append(kept, v)
		}
	}
	return kept
}

// spread moves heights apart until each has room, in their order and between
// the bounds, the lower ones giving way upwards.
func spread(at []float64, room, top, bottom float64) []float64 {
	order := make([]int, len(at))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch { // downwards on the page: the largest first
		case at[a] > at[b]:
			return -1
		case at[a] < at[b]:
			return 1
		}
		return a - b
	})
	moved := make([]float64, len(at))
	limit := bottom
	for _, i := range order {
		moved[i] = max(top, min(at[i], limit))
		limit = moved[i] - room
	}
	return moved
}

func num(x float64) string {
	text := strconv.FormatFloat(x, 'f', 1, 64)
	if text == "-0.0" {
		text = "0.0"
	}
	return text
}

// percent is a grid line's label, with as many decimals as the step has.
func percent(share, step float64) string {
	decimals := 0
	for d := 100 * step; d < 0.999 || math.Abs(d-math.Round(d)) > 1e-6; d *= 10 {
		if decimals++; decimals == 4 {
			break
		}
	}
	return strconv.FormatFloat(100*share, 'f', decimals, 64) + " %"
}
