package render

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/invoicespec/brimline/reports/record"
)

// SelfTestMarkdown writes the kill table as Markdown: each fault, the clause it
// breaks, what a target has to offer for it to be noticed, and which scenarios
// catch it. It says nothing of when and how long, so that it changes only when
// the table does.
func SelfTestMarkdown(w io.Writer, st record.SelfTest) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d faults caught by the clause they break, %d of them by one scenario alone (⚠). Kind of target: %s.\n",
		st.Caught, len(st.Faults), st.Fragile, cmp.Or(st.Setting, "unknown"))
	for _, c := range st.Correct {
		fmt.Fprintf(&b, "\n- false alarm on the correct server: %s, %s (%s)", c.Clause, escaped(c.Scenario), c.At)
	}
	if len(st.Correct) > 0 {
		b.WriteString("\n")
	}
	b.WriteString("\n| fault | breaks | needs | | caught by |\n|---|---|---|---|---|\n")
	for _, f := range st.Faults {
		mark, needs, by := "✗", "", "not caught"
		if catchers := f.Catchers(); len(catchers) > 0 {
			var names []string
			for _, c := range catchers {
				names = append(names, escaped(c.Scenario))
			}
			mark, needs, by = "✓", cmp.Or(strings.Join(f.Needs, ", "), "http"), strings.Join(names, "; ")
		} else if f.Reason != "" {
			by += ": " + escaped(f.Reason)
		}
		if f.Fragile {
			mark = "⚠"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", f.Name, f.Clause, needs, mark, by)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
