package chart

import (
	"html/template"
	"slices"
	"strconv"
	"strings"
)

// Curves is lines over a figure.
type Curves struct {
	Named
	XLabel string
	X, Y   Unit
	Lines  []Line // four at most, at least one point in all
	Marks  []Mark
	Zone   *Zone
}

// Line is one series, in order of X.
type Line struct {
	Label  string // beside the line
	Short  string // the same where there is little room
	Points []Point
	Band   bool // draw the intervals of the points
	Steps  bool // the value holds up to the next point, and to the end of the plot
}

// Point is one value and its interval.
type Point struct {
	X, Y      float64
	Low, High float64
	Filled    bool
	Title     string // what a pointer resting on it is told
}

// Mark is a vertical line with a label above the plot.
type Mark struct {
	X     float64
	Label string
}

// Zone is a part of the plot with a shade of its own.
type Zone struct{ From, To float64 }

// Figure is the chart in both of its sizes.
func (s Curves) Figure() template.HTML {
	lines := make([]Line, 0, len(s.Lines))
	for _, l := range s.Lines {
		l.Points = slices.DeleteFunc(slices.Clone(l.Points), func(p Point) bool {
			return !finite(p.X) || !finite(p.Y) || p.X <= 0 && s.X != Share && s.X != Amount
		})
		if len(l.Points) > 0 {
			lines = append(lines, l)
		}
	}
	s.Lines = lines
	return s.both(s.draw)
}

// values is every figure that the axes have to hold.
func (s Curves) values() (xs, ys []float64) {
	for _, l := range s.Lines {
		for _, p := range l.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
			if l.Band {
				ys = append(ys, p.High)
			}
		}
	}
	if s.X != Rate {
		for _, m := range s.Marks {
			xs = append(xs, m.X)
		}
	}
	return xs, ys
}

func (s Curves) draw(c *canvas) {
	left, right, _, bottom := c.plot()
	rows := s.markRows(c)
	c.top = 14 + 15*float64(max(1, slices.Max(append(rows, 0))+1))
	xs, ys := s.values()
	x, y := newAxis(s.X, xs, left, right), newAxis(s.Y, ys, bottom, c.top)
	inside := func(v float64) float64 { return min(right, max(left, x.at(v))) }
	if s.Zone != nil {
		if from, to := inside(s.Zone.From), inside(s.Zone.To); to > from {
			c.box("zone", from, c.top, to-from, bottom-c.top, "")
		}
	}
	c.levels(y)
	c.line("base", left, bottom, right, bottom)
	for _, t := range x.thinned(c.perTick) {
		c.label("x middle", x.at(t.value), bottom+18, t.label)
	}
	c.label("label middle", (left+right)/2, c.height-8, s.XLabel)
	for i, m := range s.Marks {
		at, height := inside(m.X), c.top-10-15*float64(rows[i])
		c.line("mark", at, height+4, at, bottom)
		start, anchor := markLabel(at, m.Label, c.width)
		c.label("marked "+anchor, start, height, m.Label)
	}
	s.drawLines(c, x, y)
}

// markLabel is where a mark's label stands, so that it stays in the drawing.
func markLabel(at float64, label string, width float64) (float64, string) {
	switch half := widthOf(label) / 2; {
	case at-half < 2:
		return 2, "start"
	case at+half > width-2:
		return width - 2, "end"
	}
	return at, "middle"
}

// markRows puts each mark's label into the lowest row in which it has room.
func (s Curves) markRows(c *canvas) []int {
	left, right, _, _ := c.plot()
	xs, _ := s.values()
	x := newAxis(s.X, xs, left, right)
	var taken [][2]float64 // of each label so far
	rows := make([]int, len(s.Marks))
	for i, m := range s.Marks {
		width := widthOf(m.Label)
		at, anchor := markLabel(min(right, max(left, x.at(m.X))), m.Label, c.width)
		from := map[string]float64{"start": at, "middle": at - width/2, "end": at - width}[anchor]
		span := [2]float64{from - 6, from + width + 6}
		for row := 0; ; row++ {
			free := true
			for j := range taken {
				free = free && (rows[j] != row || span[1] < taken[j][0] || span[0] > taken[j][1])
			}
			if free {
				rows[i] = row
				break
			}
		}
		taken = append(taken, span)
	}
	return rows
}

// Beyond this many points of a line its dots are small.
const manyPoints = 40

func (s Curves) drawLines(c *canvas, x, y axis) {
	_, right, top, bottom := c.plot()
	var ends []float64
	for _, l := range s.Lines {
		ends = append(ends, y.at(l.Points[len(l.Points)-1].Y))
	}
	labels := spread(ends, 15, top+4, bottom)
	for i, l := range s.Lines {
		label, last := l.Label, x.at(l.Points[len(l.Points)-1].X)
		if c.short && l.Short != "" {
			label = l.Short
		}
		if l.Steps {
			last = right
		}
		c.group("s"+strconv.Itoa(i+1), func() {
			if l.Band {
				c.path("band", band(l.Points, x.at, y.at))
			}
			c.path("line", l.outline(x, y, right))
			c.path("leader", "M"+num(last+5)+" "+num(ends[i])+"L"+num(right+12)+" "+num(labels[i]))
			c.label("direct", right+15, labels[i]+4, label)
			for _, p := range l.Points {
				class, radius := "open", 3.5
				if p.Filled {
					class = "full"
				}
				if len(l.Points) > manyPoints {
					class, radius = "full", 1
				}
				c.dot(class, x.at(p.X), y.at(p.Y), radius, p.Title)
			}
		})
	}
}

func (l Line) outline(x, y axis, right float64) string {
	var path strings.Builder
	for i, p := range l.Points {
		switch {
		case i == 0:
			path.WriteString("M" + num(x.at(p.X)) + " " + num(y.at(p.Y)))
		case l.Steps:
			path.WriteString("H" + num(x.at(p.X)) + "V" + num(y.at(p.Y)))
		default:
			path.WriteString("L" + num(x.at(p.X)) + " " + num(y.at(p.Y)))
		}
	}
	if l.Steps {
		path.WriteString("H" + num(right))
	}
	return path.String()
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
