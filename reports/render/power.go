package render

import (
	"fmt"
	"strings"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// PowerText is what a run can have noticed, in a sentence for people; empty
// where nothing is known of it.
func PowerText(p record.Power) string {
	if p.Known == 0 {
		return ""
	}
	text := fmt.Sprintf("with what this target offers, this run can detect %d of %s", p.Detectable, figure.Count(int64(p.Known), "known fault"))
	var more []string
	for i, f := range p.Further {
		if i == shownFurther {
			more = append(more, fmt.Sprintf("other means %d", furtherFaults(p.Further[i:])))
			break
		}
		add := fmt.Sprintf("%s %d", strings.Join(f.Needs, " and "), f.Faults)
		if i == 0 {
			add = fmt.Sprintf("%s would add %d", strings.Join(f.Needs, " and "), f.Faults)
		}
		more = append(more, add)
	}
	if len(more) > 0 {
		text += "; " + strings.Join(more, ", ")
	}
	var lost []string
	for _, l := range []struct {
		n   int
		why string
	}{{p.Unselected, "not asked for"}, {p.Unanswered, "not answered"}, {p.Unseen, "not to be seen on a target of this kind"}} {
		if l.n > 0 {
			lost = append(lost, fmt.Sprintf("%d %s", l.n, l.why))
		}
	}
	if len(lost) > 0 {
		text += "; " + strings.Join(lost, ", ")
	}
	return text
}

// shownFurther is how many means are named: the rest is one sum.
const shownFurther = 5

func furtherFaults(rest []record.Further) (n int) {
	for _, f := range rest {
		n += f.Faults
	}
	return n
}
