package render

import (
	"fmt"
	"io"
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
		if f.Caught {
			m, by = "✓", caughtBy(f)
		} else if f.Reason != "" {
			by += ": " + f.Reason
		}
		fmt.Fprintf(&b, "  %s %-*s  %-9s  %s\n", m, width, f.Name, f.Clause, by)
	}
	fmt.Fprintf(&b, "\n%d of %d faults caught by the clause they break          %s\n", st.Caught, len(st.Faults), tookText(st.DurationMS))
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
