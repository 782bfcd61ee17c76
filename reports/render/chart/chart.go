// Package chart draws figures as SVG for a page of HTML: [Curves] with
// intervals, marks and steps, a [Heat] of counts, [Bars] and [Rows] with
// intervals. An axis of shares is linear and begins at zero; rates and lengths
// of time may be on a logarithmic one; there is no second axis. Lines differ in
// dash, colour and a label of their own.
//
// Most callers want a figure's Figure and, once in a page, [CSS]. A figure is two
// drawings of the same, since a wide one shrunk to a telephone cannot be read;
// the style sheet shows one of them. Whoever cannot see it has its title, its
// description and the table that the caller puts beside it. The same figure is
// the same bytes, and nothing in it is markup but what is drawn.
package chart

import (
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// CSS is the style of every chart. It uses the page's custom properties ink,
// quiet, rule, ground, heat and series-1 to series-4.
//
//go:embed chart.css
var CSS string

// Named is what every figure is called.
type Named struct {
	ID    string // unique in its page, a letter first
	Title string
	Desc  string // what a reader would see, in a sentence or two
}

// size is a drawing's measures in units of its own view box.
type size struct {
	class                    string
	width, height            float64
	left, right, top, bottom float64 // around the plot
	perTick                  float64 // room that a label below the plot takes
	short                    bool
}

var (
	wide   = size{class: "wide", width: 880, height: 340, left: 58, right: 150, top: 44, bottom: 46, perTick: 40}
	narrow = size{class: "narrow", width: 352, height: 300, left: 58, right: 74, top: 44, bottom: 46, perTick: 40, short: true}
)

func (z size) plot() (left, right, top, bottom float64) {
	return z.left, z.width - z.right, z.top, z.height - z.bottom
}

// both is a figure's two drawings.
func (n Named) both(draw func(c *canvas)) template.HTML {
	var b strings.Builder
	for _, z := range []size{wide, narrow} {
		c := &canvas{size: z}
		draw(c)
		id := n.ID + "-" + z.class
		fmt.Fprintf(&b, "<svg class=\"chart %s\" viewBox=\"0 0 %s %s\" role=\"img\" aria-labelledby=\"%s-title %s-desc\">\n<title id=\"%s-title\">%s</title>\n<desc id=\"%s-desc\">%s</desc>\n%s</svg>\n",
			z.class, num(z.width), num(c.height), id, id, id, escaped(n.Title), id, escaped(n.Desc), c.text.String())
	}
	return template.HTML(b.String())
}

// canvas is a drawing while it is made. Classes are ours; texts are escaped.
type canvas struct {
	size
	text strings.Builder
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.text, "<line class=\"%s\" x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\"/>\n", class, num(x1), num(y1), num(x2), num(y2))
}

func (c *canvas) label(class string, x, y float64, text string) {
	fmt.Fprintf(&c.text, "<text class=\"%s\" x=\"%s\" y=\"%s\">%s</text>\n", class, num(x), num(y), escaped(text))
}

func (c *canvas) path(class, d string) {
	fmt.Fprintf(&c.text, "<path class=\"%s\" d=\"%s\"/>\n", class, d)
}

// box is a rectangle; title is what a pointer resting on it is told.
func (c *canvas) box(class string, x, y, width, height float64, title string) {
	fmt.Fprintf(&c.text, "<rect class=\"%s\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\">%s</rect>\n", class, num(x), num(y), num(width), num(height), titled(title))
}

func (c *canvas) dot(class string, x, y, r float64, title string) {
	fmt.Fprintf(&c.text, "<circle class=\"%s\" cx=\"%s\" cy=\"%s\" r=\"%s\">%s</circle>\n", class, num(x), num(y), num(r), titled(title))
}

func (c *canvas) group(class string, draw func()) {
	fmt.Fprintf(&c.text, "<g class=\"%s\">\n", class)
	draw()
	c.text.WriteString("</g>\n")
}

// levels draws the grid of the axis at the left.
func (c *canvas) levels(a axis) {
	left, right, _, _ := c.plot()
	for _, t := range a.ticks {
		c.line("grid", left, a.at(t.value), right, a.at(t.value))
		c.label("y end", left-8, a.at(t.value)+4, t.label)
	}
}

func titled(title string) string {
	if title == "" {
		return ""
	}
	return "<title>" + escaped(title) + "</title>"
}

func escaped(s string) string { return template.HTMLEscapeString(s) }

// widthOf is about how much room a text of 12 takes.
func widthOf(text string) float64 { return 6.7 * float64(utf8.RuneCountInString(text)) }

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
		return b - a
	})
	moved := make([]float64, len(at))
	limit := bottom
	for _, i := range order {
		moved[i] = max(top, min(at[i], limit))
		limit = moved[i] - room
	}
	for i := len(order) - 1; i > 0; i-- { // what was stopped at the top pushes down again
		upper, lower := order[i], order[i-1]
		moved[lower] = max(moved[lower], moved[upper]+room)
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

// finite reports whether a figure can be drawn.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
