package chart_test

import (
	"encoding/xml"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/render/chart"
)

var update = flag.Bool("update", false, "write the golden files anew")

func points(ys ...float64) (list []chart.Point) {
	for i, y := range ys {
		list = append(list, chart.Point{
			X: float64(int(10) << i), Y: y, Low: y / 2, High: min(1, y*1.5+0.01), Filled: y < 0.01, Title: "point " + strconv.Itoa(i),
		})
	}
	return list
}

func example() chart.Curves {
	return chart.Curves{
		Named: chart.Named{ID: "example", Title: "users affected", Desc: "it falls"}, XLabel: "requests per minute", X: chart.Rate, Y: chart.Share,
		Lines: []chart.Line{
			{Label: "burst = rate", Short: "÷ 1", Band: true, Points: points(0.04, 0.02, 0.005, 0)},
			{Label: "burst = rate ÷ 2", Short: "÷ 2", Points: points(0.06, 0.03, 0.006, 0)},
		},
		Marks: []chart.Mark{{X: 10, Label: "today"}, {X: 40, Label: "raise to"}, {X: 80, Label: "end"}},
	}
}

func TestFigure(t *testing.T) {
	got := string(example().Figure())
	path := filepath.Join("testdata", "example.svg.txt")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update once, and look at what it wrote")
	require.Equal(t, string(want), got)
	require.Equal(t, got, string(example().Figure()), "the same chart is the same bytes")
}

// Two drawings, each with a name and a description of its own, and as XML.
func TestFigureIsSoundAndNamed(t *testing.T) {
	got := string(example().Figure())
	require.Equal(t, 2, strings.Count(got, `role="img"`))
	require.Equal(t, 2, strings.Count(got, ">users affected</title>"))
	require.Equal(t, 2*8, strings.Count(got, "<title>point "), "a title for each point")
	ids := regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(got, -1)
	seen := map[string]bool{}
	for _, id := range ids {
		require.False(t, seen[id[1]], "%s is there twice", id[1])
		seen[id[1]] = true
	}
	for _, named := range regexp.MustCompile(`aria-labelledby="([^"]+)"`).FindAllStringSubmatch(got, -1) {
		for id := range strings.FieldsSeq(named[1]) {
			require.True(t, seen[id], id)
		}
	}
	d := xml.NewDecoder(strings.NewReader("<figure>" + got + "</figure>"))
	for {
		_, err := d.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
	}
}

func TestTextStandsForItself(t *testing.T) {
	s := example()
	const hostile = `</title><script>alert("1")</script>&amp;`
	s.Title, s.Desc, s.XLabel, s.Lines[0].Label, s.Lines[0].Points[0].Title, s.Marks[0].Label = hostile, hostile, hostile, hostile, hostile, hostile
	got := string(s.Figure())
	require.NotContains(t, got, "<script")
	require.NotContains(t, got, "&amp;\"")
}

// Everything lies within the drawing, whatever the figures; the axis begins at
// zero and never promises more than the whole.
func TestScales(t *testing.T) {
	for name, c := range map[string]struct {
		ys     []float64
		labels []string // of the share axis
	}{
		"nothing at all": {[]float64{0, 0}, []string{"0.00 %", "0.02 %", "0.04 %", "0.06 %", "0.08 %", "0.10 %"}},
		"everything":     {[]float64{1, 1}, []string{"0 %", "20 %", "40 %", "60 %", "80 %", "100 %"}},
		"a few":          {[]float64{0.07, 0.01}, []string{"0 %", "2 %", "4 %", "6 %", "8 %"}},
		"one point":      {[]float64{0.003}, []string{"0.0 %", "0.1 %", "0.2 %", "0.3 %"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := chart.Curves{Named: chart.Named{ID: "x"}, X: chart.Rate, Y: chart.Share, Lines: []chart.Line{{Points: points(c.ys...)}}}
			got := string(s.Figure())
			var labels []string
			for _, m := range regexp.MustCompile(`class="y end"[^>]*>([^<]+)<`).FindAllStringSubmatch(got, -1) {
				labels = append(labels, m[1])
			}
			require.Equal(t, append(c.labels, c.labels...), labels)
			for _, m := range regexp.MustCompile(`<circle[^>]* cx="([^"]+)" cy="([^"]+)"`).FindAllStringSubmatch(got, -1) {
				for _, text := range m[1:] {
					x, err := strconv.ParseFloat(text, 64)
					require.NoError(t, err, text)
					require.True(t, x >= 0 && x <= 880, text)
				}
			}
		})
	}
}

// Lines that end at one place have labels that do not.
func TestLabelsKeepApart(t *testing.T) {
	s := example()
	s.Lines = append(s.Lines, chart.Line{Label: "third", Points: points(0.07, 0.05, 0.01, 0)})
	heights := regexp.MustCompile(`class="direct" x="[^"]+" y="([^"]+)"`).FindAllStringSubmatch(string(s.Figure()), -1)
	require.Len(t, heights, 6)
	for i := range 3 {
		for j := range i {
			a, _ := strconv.ParseFloat(heights[i][1], 64)
			b, _ := strconv.ParseFloat(heights[j][1], 64)
			require.GreaterOrEqual(t, max(a-b, b-a), 15.0)
		}
	}
}
