package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// LoadParts writes what a merged run is made of: a row for each shard, those that
// are missing too.
func LoadParts(w io.Writer, m record.RunMerged) error {
	rows := [][]string{{"shard", "users", "sent", "lag p99", "late", "cpu", "clock"}}
	for i := range m.Of {
		row := []string{fmt.Sprintf("%d/%d", i, m.Of), "missing", "–", "–", "–", "–", "–"}
		for _, p := range m.Parts {
			if p.Index == i {
				g := p.Generator
				row = []string{
					row[0], figure.Grouped(p.Users), figure.Grouped(g.Results), figure.Micros(g.Lag.P99US),
					figure.Micros(g.StartLateUS), fmt.Sprintf("%.1f s", g.CPUSeconds), clockText(p.Clock),
				}
			}
		}
		rows = append(rows, row)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s of one run that began at %s\n\n", figure.Count(m.Of, "shard"), m.Start.Format("2006-01-02 15:04:05 MST"))
	writeColumns(&b, rows)
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func clockText(c record.RunClock) string {
	switch {
	case !c.Known:
		return "unknown"
	case !c.Synchronised:
		return "not synchronised"
	}
	return "±" + figure.Micros(c.MostOffUS)
}
