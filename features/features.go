// Package features is the contract in Gherkin, embedded: one file per group of
// clauses, one Rule per clause, tagged with the clause's id and level, and under
// it one Scenario per observable consequence. Tags that begin with "needs-" name
// what a target has to offer (see contract.Needs).
//
// Numbers come from the target's profile, never from a scenario. Package
// conformance plans and runs them; package steps says what each sentence does.
package features

import "embed"

// FS holds the .feature files.
//
//go:embed *.feature
var FS embed.FS
