package chart

import (
	"html/template"
	"math"
	"slices"

	"github.com/invoicespec/brimline/internal/figure"
)

// Heat is counts by two things, each in one of seven shades: none, and six steps
// up to the most.
type Heat struct {
	Named
	Rows, Columns []string
	Values        [][]int64 // by row and column
	Titles        func(row, column int) string
	XLabel        string
}

// Figure is the heat map in both of its sizes.
func (h Heat) Figure() template.HTML {
	most := int64(0)
	for _, row := range h.Values {
		most = max(most, slices.Max(row))
	}
	return h.both(func(c *canvas) {
		c.left, c.right, c.top, c.bottom = 40, 4, 30, 40
		left, right, top, _ := c.plot()
		width, height := (right-left)/float64(len(h.Columns)), 24.0
		c.height = top + height*float64(len(h.Rows)) + c.bottom
		legendHeat(c, most)
		for i, row := range h.Values {
			y := top + height*float64(i)
			c.label("y end", left-8, y+height/2+4, h.Rows[i])
			for j, n := range row {
				c.box("cell c"+figure.Grouped(int64(shade(n, most))), left+width*float64(j), y, width, height, h.Titles(i, j))
			}
		}
		next := left
		for j, name := range h.Columns {
			if at := left + width*(float64(j)+0.5); at >= next {
				c.label("x middle", at, c.height-c.bottom+16, name)
				next = at + max(c.perTick*0.7, widthOf(name)+8)
			}
		}
		c.label("label middle", (left+right)/2, c.height-6, h.XLabel)
	})
}

// legendHeat names the shades above the map.
func legendHeat(c *canvas, most int64) {
	const side = 14.0
	x := c.left
	c.label("label", x, 16, "0")
	x += 12
	for i := range 7 {
		c.box("cell c"+figure.Grouped(int64(i)), x, 5, side, side, "")
		x += side
	}
	c.label("label", x+6, 16, figure.Grouped(most))
}

// shade is 0 for nothing and 1 to 6 by the root, so that few are seen beside many.
func shade(n, most int64) int {
	if n <= 0 || most <= 0 {
		return 0
	}
	return min(6, max(1, int(math.Ceil(6*math.Sqrt(float64(n)/float64(most))))))
}

// Bars is one bar for each of many values.
type Bars struct {
	Named
	Values []int64
	Names  func(i int) string // below the bar, where there is room; empty: none
	Titles func(i int) string
	XLabel string
}

// Figure is the bars in both of their sizes.
func (b Bars) Figure() template.HTML {
	return b.both(func(c *canvas) {
		c.height, c.right, c.top = 220, 8, 16
		left, right, top, bottom := c.plot()
		y := newAxis(Amount, []float64{float64(slices.Max(b.Values))}, bottom, top)
		c.levels(y)
		width := (right - left) / float64(len(b.Values))
		for i, n := range b.Values {
			x := left + width*float64(i)
			c.box("bar", x+width*0.1, y.at(float64(n)), width*0.8, bottom-y.at(float64(n)), b.Titles(i))
			if name := b.Names(i); name != "" {
				c.label("x middle", x+width/2, bottom+18, name)
			}
		}
		c.line("base", left, bottom, right, bottom)
		c.label("label middle", (left+right)/2, c.height-8, b.XLabel)
	})
}

// Rows is one bar below the other, each with its name, value and interval.
type Rows struct {
	Named
	Bars   []Row
	XLabel string
	Goal   *Mark
}

// Row is one bar.
type Row struct {
	Name, Value, Title string
	Share              float64
	Interval           *[2]float64
}

// Figure is the rows in both of their sizes.
func (r Rows) Figure() template.HTML {
	return r.both(func(c *canvas) {
		const height = 40.0
		c.left, c.right, c.top, c.bottom = 6, 70, 6, 44
		if r.Goal != nil {
			c.top = 24
		}
		left, right, top, _ := c.plot()
		bottom := top + height*float64(len(r.Bars))
		c.height = bottom + c.bottom
		values := []float64{0}
		for _, b := range r.Bars {
			values = append(values, b.Share)
			if b.Interval != nil {
				values = append(values, b.Interval[1])
			}
		}
		x := newAxis(Share, values, left, right)
		for _, t := range x.thinned(c.perTick) {
			c.line("grid", x.at(t.value), top, x.at(t.value), bottom)
			c.label("x middle", max(14, x.at(t.value)), bottom+16, t.label)
		}
		for i, b := range r.Bars {
			y := top + height*float64(i)
			c.label("name", left+4, y+14, b.Name)
			c.box("bar", left, y+20, x.at(b.Share)-left, 12, b.Title)
			end := x.at(b.Share)
			if b.Interval != nil {
				low, high := x.at(b.Interval[0]), x.at(b.Interval[1])
				c.line("whisker", low, y+26, high, y+26)
				c.line("whisker", low, y+22, low, y+30)
				c.line("whisker", high, y+22, high, y+30)
				end = max(end, high)
			}
			c.label("value", end+8, y+30, b.Value)
		}
		if r.Goal != nil {
			at := min(right, x.at(r.Goal.X))
			c.line("mark", at, 18, at, bottom)
			start, anchor := markLabel(at, r.Goal.Label, c.width)
			c.label("marked "+anchor, start, 14, r.Goal.Label)
		}
		c.line("base", left, top, left, bottom)
		c.label("label middle", (left+right)/2, c.height-8, r.XLabel)
	})
}
