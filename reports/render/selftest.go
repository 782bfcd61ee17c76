package render

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/invoicespec/brimline/reports/record"
)

// SelfTest writes the kill table for a terminal: each fault, the clause it
// breaks, and the scenario that caught it.
func SelfTest(w io.Writer, st record.SelfTest) error {
	var b strings.Builder
	width := 0
	for _, f := range st.Faults {
		width = max(width, len(f.Name))
	}
	for _, f := range st.Faults {
		m, by := "✗", "not caught"
		switch {
		case f.Fragile:
			m, by = "⚠", caughtBy(f)
		case f.Caught:
			m, by = "✓", caughtBy(f)
		case f.Reason != "":
			by += ": " + f.Reason
		}
		fmt.Fprintf(&b, "  %s %-*s  %-9s  %s\n", m, width, f.Name, f.Clause, by)
	}
	fmt.Fprintf(&b, "\n%-58s  %s\n", fmt.Sprintf("%d of %d faults caught by the clause they break", st.Caught, len(st.Faults)), tookText(st.DurationMS))
	if st.Fragile > 0 {
		fmt.Fprintf(&b, "⚠ %d of them by one scenario alone\n", st.Fragile)
	}
	if needs := needed(st); needs != "" {
		fmt.Fprintf(&b, "they need: %s\n", needs)
	}
	if st.Aborted != "" {
		fmt.Fprintf(&b, "ended early: %s\n", st.Aborted)
	}
	if len(st.Correct) == 0 {
		b.WriteString("the correct server: no false alarm\n")
	}
	for _, c := range st.Correct {
		fmt.Fprintf(&b, "✗ false alarm on the correct server: %s  %s  %s\n", c.Clause, c.Scenario, c.At)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// shownNeeds is how many needs are named: the rest is one sum.
const shownNeeds = 8

// needed says how many of the faults need what of a target, the most first.
func needed(st record.SelfTest) string {
	count := map[string]int{}
	for _, f := range st.Faults {
		if f.Caught {
			count[cmp.Or(strings.Join(f.Needs, " and "), "http")]++
		}
	}
	all := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(count[b]-count[a], cmp.Compare(a, b)) })
	rest := 0
	for i, n := range all {
		all[i] = fmt.Sprintf("%s %d", n, count[n])
		if i >= shownNeeds {
			rest += count[n]
		}
	}
	if rest > 0 {
		all = append(all[:shownNeeds], fmt.Sprintf("others %d", rest))
	}
	return strings.Join(all, ", ")
}

// caughtBy names the first scenario that is about the fault's clause, and how
// many others noticed something.
func caughtBy(f record.Fault) string {
	var first record.CaughtBy
	scenarios := map[string]bool{}
	for _, c := range f.By {
		scenarios[c.At] = true
		if first.At == "" && c.Carries && c.Clause == f.Clause {
			first = c
		}
	}
	text := first.Scenario
	if n := len(scenarios) - 1; n > 0 {
		text += fmt.Sprintf(" (+%d)", n)
	}
	return text
}
