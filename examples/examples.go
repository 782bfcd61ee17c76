// Package examples is the files beside it, embedded, so that the tour runs the
// very scenario that a reader can open and change.
package examples

import _ "embed"

// Load is load.yaml: half a minute of traffic for the reference's plans.
//
//go:embed load.yaml
var Load []byte
