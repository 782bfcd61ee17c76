// Package fault is a set of deliberately wrong servers: each [Fault] breaks one
// clause of the contract in one way and is right otherwise. They are what a
// conformance suite, or a client that copes with limits, is tested against.
//
// A fault is a function of [wiring.Parts]: it decorates a port, swaps or inserts
// a link of the chain, rewrites a composed answer or takes the limiter apart.
// The reference's own code knows nothing of it. Most callers want [ByName]; the
// faults are listed in one file a table, and alter.go and steps.go are the
// handful of helpers that they are written with.
//
// Apply one to parts that are complete, the recorders and gates of the control
// protocol included, so that these see what the wrong server really does.
package fault

import (
	"fmt"
	"slices"
	"strings"

	"github.com/invoicespec/brimline/reference/wiring"
)

// Fault is one way to be wrong.
type Fault struct {
	Name   string
	Clause string // the contract's id of the clause it breaks
	Wrong  string // what is wrong, in one sentence
	Apply  func(*wiring.Parts)
}

// Table is the faults that share a heading.
type Table struct {
	Title  string
	Faults []Fault
}

// Tables lists every fault under its heading.
func Tables() []Table {
	return []Table{
		{"Scope", scopeFaults()},
		{"Authentication", accessFaults()},
		{"Token bucket and order", bucketFaults()},
		{"Before authentication", attemptFaults()},
		{"Client address", clientFaults()},
		{"Response fields", fieldFaults()},
		{"Error shape", errorFaults()},
		{"Pools", poolFaults()},
		{"Concurrency and permits", concurrencyFaults()},
		{"Plans and plan changes", slices.Concat(changeFaults(), scheduleFaults(), operatedFaults())},
		{"Overrides", slices.Concat(overrideFaults(), boundaryFaults())},
		{"Configuration failures", configurationFaults()},
		{"Billing page", pageFaults()},
		{"Start and restart", slices.Concat(startFaults(), restartFaults())},
		{"Metrics", meterFaults()},
		{"Side effects", slices.Concat(sideEffectFaults(), capacityFaults(), logFaults())},
	}
}

// All lists every fault, in the order of the tables.
func All() []Fault {
	var all []Fault
	for _, t := range Tables() {
		all = append(all, t.Faults...)
	}
	return all
}

// ByName returns the fault of a name. The error names those that are spelled
// much alike, or every one there is.
func ByName(name string) (Fault, error) {
	var near, names []string
	for _, f := range All() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
		if alike(name, f.Name) {
			near = append(near, f.Name)
		}
	}
	if len(near) > 0 {
		return Fault{}, fmt.Errorf("unknown fault %q: did you mean %s?", name, strings.Join(near, ", "))
	}
	return Fault{}, fmt.Errorf("unknown fault %q: there are %s", name, strings.Join(names, ", "))
}

// alike reports whether got is a part of name, or a few keystrokes from it.
func alike(got, name string) bool {
	const keystrokes = 3
	return len(got) > keystrokes && (strings.Contains(name, got) || distance(got, name) <= keystrokes)
}

// distance is the number of characters to add, drop or replace between a and b.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // of the empty prefix of a
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		above := slices.Clone(row)
		row[0] = i + 1
		for j := range len(b) {
			replaced := above[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, above[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
