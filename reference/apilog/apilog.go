// Package apilog keeps the API log: one line of JSON for each request in scope,
// appended with one write (LOG-1, LOG-3, LOG-5). Most callers want [OpenFile],
// a log that is a file, or [OpenSpool], a log that is in a database: entries
// wait in a directory until they have been delivered to a [Sink] (LOG-6).
//
// The line format is [contract.LogEntry], which cannot hold a key or a body.
package apilog

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/invoicespec/brimline/conformance/contract"
)

// Encode is e as a line, the newline included.
func Encode(e contract.LogEntry) ([]byte, error) {
	line, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encode the entry of request %q: %w", e.RequestID, err)
	}
	return append(line, '\n'), nil
}

// Discard takes entries and keeps none.
type Discard struct{}

// Write does nothing.
func (Discard) Write(context.Context, contract.LogEntry) error { return nil }
