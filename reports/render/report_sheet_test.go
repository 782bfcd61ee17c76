package render_test

import (
	"bytes"
	"encoding/csv"
	"html"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

// twins is every table of the page that stands beside a chart, by its name.
func twins(page string) map[string][][]string {
	list := map[string][][]string{}
	for _, m := range regexp.MustCompile(`(?s)<table class="sheet" data-sheet="([^"]+)">.*?<tbody>(.*?)</tbody>`).FindAllStringSubmatch(page, -1) {
		var rows [][]string
		for _, row := range regexp.MustCompile(`(?s)<tr>(.*?)</tr>`).FindAllStringSubmatch(m[2], -1) {
			var cells []string
			for _, c := range regexp.MustCompile(`<t[hd][^>]*>([^<]*)</t[hd]>`).FindAllStringSubmatch(row[1], -1) {
				cells = append(cells, html.UnescapeString(c[1]))
			}
			rows = append(rows, cells)
		}
		list[m[1]] = rows
	}
	return list
}

func csvs(t *testing.T, r record.Report) map[string][][]string {
	t.Helper()
	files, err := render.ReportCSVs(r)
	require.NoError(t, err)
	list := map[string][][]string{}
	for _, f := range files {
		name := strings.TrimSuffix(f.Name, ".csv")
		require.NotContains(t, list, name, "each chart has a name of its own")
		rows, err := csv.NewReader(bytes.NewReader(f.Data)).ReadAll()
		require.NoError(t, err, f.Name)
		list[name] = rows
	}
	return list
}

// Every chart has a table beside it and a file of CSV, with the same rows.
func TestReportEveryChartHasItsNumbers(t *testing.T) {
	r := reported()
	page := rendered(t, render.ReportHTML, r)
	tables, files := twins(page), csvs(t, r)
	figures := regexp.MustCompile(`<figure id="([^"]+)">`).FindAllStringSubmatch(page, -1)
	require.Equal(t, 2*len(figures), strings.Count(page, `role="img"`), "a chart in two sizes")
	require.Greater(t, len(figures), 8)
	for _, f := range figures {
		require.Contains(t, files, f[1])
	}
	for name, rows := range files {
		require.Len(t, tables[name], len(rows)-1, name)
		for i, row := range rows[1:] {
			require.Len(t, tables[name][i], len(row), name)
			for j, exact := range row {
				require.True(t, sameFigure(exact, tables[name][i][j]), "%s, row %d: %s beside %s", name, i, exact, tables[name][i][j])
			}
		}
	}
}

// sameFigure reports whether a figure as it is read is the exact one, rounded.
func sameFigure(exact, read string) bool {
	v, err := strconv.ParseFloat(exact, 64)
	if err != nil {
		return exact == read || exact == "" && read == "–" || exact == "true" && read == "yes" || exact == "false" && read == "no"
	}
	read = strings.ReplaceAll(read, "\u00a0", " ")
	plain, err := strconv.ParseFloat(strings.ReplaceAll(read, ",", ""), 64)
	near := err == nil && max(plain-v, v-plain) <= 0.0005*max(1, v)
	return near || read == figure.Percent(v) || read == figure.Micros(int64(v))
}

// The grid's file is the JSON's grid, cell by cell.
func TestReportGridEqualsTheJSON(t *testing.T) {
	r := reported()
	rows := csvs(t, r)["what-if-grid-2-all-clients"]
	require.Len(t, rows, 1+len(r.Plans[1].WhatIf.Grid))
	for i, c := range r.Plans[1].WhatIf.Grid {
		require.Equal(t, []string{strconv.FormatInt(c.Rate, 10), strconv.FormatInt(c.Burst, 10), "", strconv.Itoa(c.UsersAffected), strconv.FormatFloat(c.UsersAffectedShare, 'g', -1, 64)}, rows[i+1][:5])
	}
}

// A spreadsheet must not take text for a formula; figures stay figures.
func TestReportCSVHasNoFormula(t *testing.T) {
	for _, text := range []string{"=1+1", "+1", "-1", "@x", "\tx", "\rx"} {
		r := reported()
		r.Plans[1].Scores[0].Source = text
		for _, row := range csvs(t, r)["users-affected"][1:] {
			require.NotContains(t, "=+-@\t\r", row[1][:1], "%q", row[1])
		}
	}
}

func TestReportJUnit(t *testing.T) {
	got := rendered(t, func(w io.Writer, r record.Report) error { return render.ReportJUnit(w, r) }, reported())
	golden(t, "report-junit.xml", []byte(got))
	hostile := rendered(t, render.ReportJUnit, hostileReport(attack))
	require.Equal(t, strings.Count(got, "<testcase"), strings.Count(hostile, "<testcase")-3, "a gate more for each plan and no other")
}
