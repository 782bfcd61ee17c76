package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/steps"
)

// showSteps prints the sentences that features may use.
func showSteps(asJSON bool, w world) error {
	all := steps.NewDictionary().Sentences()
	if asJSON {
		return printJSON(w.stdout, all)
	}
	b := bufio.NewWriter(w.stdout)
	topic := ""
	for _, s := range all {
		if s.Topic != topic {
			topic = s.Topic
			fmt.Fprintf(b, "%s\n", topic)
		}
		fmt.Fprintf(b, "  %-5s %s\n        %s%s\n", s.Keyword, s.Written(), s.Means, needing(s.Needs))
		for i, choices := range s.Fill {
			if place := fmt.Sprintf("<%d>", i+1); strings.Contains(s.Written(), place) {
				fmt.Fprintf(b, "        %s: %s\n", place, strings.Join(choices, ", "))
			}
		}
		if s.Table {
			fmt.Fprintln(b, "        a table of names and numbers follows")
		}
	}
	fmt.Fprintln(b, "\nneeds, each a tag @needs-…")
	for _, m := range contract.Needs() {
		fmt.Fprintf(b, "  %-12s %s\n", m.Need, m.Text)
	}
	return b.Flush()
}

func needing(all []contract.Need) string {
	if len(all) == 0 {
		return ""
	}
	var names []string
	for _, n := range all {
		names = append(names, string(n))
	}
	return "  [needs " + strings.Join(names, ", ") + "]"
}
