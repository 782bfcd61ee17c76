package steps

import (
	"fmt"
	"regexp"
	"strings"
)

// group is what stands between brackets in a pattern: there are none within
// others.
var group = regexp.MustCompile(`\((\?:)?([^()]*)\)(\?)?`)

// readable turns a pattern into a sentence for people and what may be filled in
// for its <1>, <2> and so on. What is in square brackets may be left out.
func readable(pattern string) (text string, fill [][]string) {
	plain := func(s string) string {
		s = regexp.MustCompile(`(\w)\?`).ReplaceAllString(s, "[$1]")
		return strings.NewReplacer(`.+`, "…", `[1-9]\d*`, "a number", `\d+`, "a number", `\S+`, "a word").Replace(s)
	}
	rest := strings.TrimSuffix(strings.TrimPrefix(pattern, "^"), "$")
	for {
		at := group.FindStringSubmatchIndex(rest)
		if at == nil {
			return text + plain(rest), fill
		}
		text += plain(rest[:at[0]])
		inner := rest[at[4]:at[5]]
		switch {
		case at[6] >= 0: // may be left out
			text += "[" + plain(inner) + "]"
		case at[2] >= 0: // ways to say the same
			text += "<" + plain(inner) + ">"
		default:
			var choices []string
			for _, c := range strings.Split(inner, "|") {
				choices = append(choices, plain(c))
			}
			fill = append(fill, choices)
			text += fmt.Sprintf("<%d>", len(fill))
		}
		rest = rest[at[1]:]
	}
}
