package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// Capacity writes a search for a terminal: what it says, and a row for each step.
func Capacity(w io.Writer, c record.Capacity) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s against %s, seed %d: %s\n\n", figure.Count(int64(len(c.Steps)), "step"), figure.Seconds(float64(c.HoldMS)/1000),
		plainText(strings.Join(c.Target.Hosts, ", ")), c.Scenario.Seed, plainText(strings.Join(c.SLO, ", ")))
	rows := [][]string{{"asked/s", "load/s", "goodput/s", "p50", "p99", "slo"}}
	for _, s := range c.Steps {
		rows = append(rows, []string{
			fmt.Sprintf("%.4g", s.Asked), fmt.Sprintf("%.4g", s.Load), fmt.Sprintf("%.4g", s.Goodput),
			figure.Micros(s.P50US), figure.Micros(s.P99US), string(s.Verdict),
		})
	}
	writeColumns(&b, rows)
	b.WriteString("\n")
	for _, text := range c.Said {
		b.WriteString("  - " + plainText(text) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// CapacityStep is a step in one line, while the search goes on.
func CapacityStep(s record.CapacityStep) string {
	text := fmt.Sprintf("%.4g/s: goodput %.4g/s, p99 %s, %s", s.Load, s.Goodput, figure.Micros(s.P99US), s.Verdict)
	if len(s.Why) > 0 {
		text += ": " + strings.Join(s.Why, "; ")
	}
	return plainText(text)
}
