package render

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"html/template"
	"strconv"
	"strings"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// drawing is a chart and its numbers.
type drawing struct {
	Figure template.HTML
	Note   string // below its title: how to read it
	sheet
}

// sheet is the numbers of a chart or a table: on the page for the eye, and as a
// file of CSV with every digit.
type sheet struct {
	Name    string // of the file, without its ending
	Title   string
	Columns []column
	Rows    [][]any // int64, int, float64, string, bool, or nil where there is no figure
}

// column is a kind of figure.
type column struct {
	Key  string // as report.json has it
	Head string
	As   form
}

// Words reports whether a column is read as text, and so from the left.
func (c column) Words() bool { return c.As == asText }

// form is how a column's figures are written for the eye.
type form int

const (
	asText form = iota
	asCount
	asShare
	asNumber
	asMicros
)

// File is one file of a report.
type File struct {
	Name string
	Data []byte
}

// ReportCSVs is the numbers of each chart of a report, a file each, named after
// the chart. A cell that a spreadsheet would take for a formula begins with an
// apostrophe.
func ReportCSVs(r record.Report) ([]File, error) {
	var files []File
	for _, d := range reportFigures(r) {
		data, err := d.csv()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name, err)
		}
		files = append(files, File{Name: d.Name + ".csv", Data: data})
	}
	return files, nil
}

func (s sheet) csv() ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	head := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		head[i] = c.Key
	}
	if err := w.Write(head); err != nil {
		return nil, err
	}
	for _, row := range s.Rows {
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = exact(v)
		}
		if err := w.Write(cells); err != nil {
			return nil, err
		}
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// exact is a value with every digit.
func exact(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		if v != "" && strings.ContainsAny(v[:1], "=+-@\t\r") {
			return "'" + Visible(v)
		}
		return Visible(v)
	}
	return fmt.Sprint(v)
}

// Cells is the rows as they are read.
func (s sheet) Cells() [][]string {
	rows := make([][]string, len(s.Rows))
	for i, row := range s.Rows {
		for j, v := range row {
			rows[i] = append(rows[i], s.Columns[j].As.text(v))
		}
	}
	return rows
}

func (f form) text(v any) string {
	switch v := v.(type) {
	case nil:
		return "–"
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case int:
		return figure.Grouped(int64(v))
	case int64:
		if f == asMicros {
			return figure.Micros(v)
		}
		return figure.Grouped(v)
	case float64:
		if f == asShare {
			return prose(figure.Percent(v))
		}
		return amount(v)
	}
	return Visible(fmt.Sprint(v))
}

// amount is a number to four digits, grouped from a thousand on.
func amount(v float64) string {
	if v >= 1000 || v <= -1000 {
		return figure.Grouped(int64(v + 0.5))
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// optional is a figure that may not be there, as a cell.
func optional[T any](v *T) any {
	if v == nil {
		return nil
	}
	return *v
}

// fileWord is a plan's name as part of a file's.
func fileWord(place int, plan string) string {
	word := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, plan)
	word = strings.Trim(word, "-")
	return fmt.Sprintf("%d-%s", place+1, word[:min(len(word), 40)])
}
