package render

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// loadThresholds is a line for each threshold: whether it holds, and the figure.
func loadThresholds(list []record.RunThreshold) []string {
	widest := 0
	for _, t := range list {
		widest = max(widest, utf8.RuneCountInString(plainText(t.Threshold)))
	}
	lines := []string{"thresholds"}
	for _, t := range list {
		mark := map[record.ThresholdVerdict]string{record.ThresholdHolds: "✓", record.ThresholdBroken: "✗", record.ThresholdNoData: "–"}[t.Verdict]
		text, seen := plainText(t.Threshold), plainText(t.Seen)
		if t.Verdict == record.ThresholdNoData {
			seen = "no data: " + seen
		}
		lines = append(lines, fmt.Sprintf("  %s %s%s  %s", mark, text, strings.Repeat(" ", widest-utf8.RuneCountInString(text)), seen))
	}
	return lines
}

// LoadBroken says which thresholds a run broke, and LoadNoData which it has no
// figures for; empty: none.
func LoadBroken(r record.Run) string {
	return loadVerdicts(r, record.ThresholdBroken, "broken")
}

// LoadNoData is said at [LoadBroken].
func LoadNoData(r record.Run) string {
	return loadVerdicts(r, record.ThresholdNoData, "without data")
}

func loadVerdicts(r record.Run, v record.ThresholdVerdict, word string) string {
	var list []string
	for _, t := range r.Thresholds {
		if t.Verdict == v {
			list = append(list, fmt.Sprintf("%s: %s", plainText(t.Threshold), plainText(t.Seen)))
		}
	}
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("%s of %s %s: %s", figure.Grouped(int64(len(list))), figure.Count(int64(len(r.Thresholds)), "threshold"), word, strings.Join(list, "; "))
}
