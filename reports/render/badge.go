package render

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/invoicespec/brimline/reports/record"
)

// Badge writes a result as shields.io reads it from an endpoint.
func Badge(w io.Writer, c record.Conformance) error {
	b := struct {
		SchemaVersion int    `json:"schemaVersion"`
		Label         string `json:"label"`
		Message       string `json:"message"`
		Color         string `json:"color"`
		IsError       bool   `json:"isError,omitempty"` // nobody may paint it over
	}{1, "rate limits", "", "", c.Result == record.ResultFailure}
	n := c.Counts
	kept := fmt.Sprintf("%d of %d kept", n.Pass+n.Stale, len(c.Clauses)-len(nobodyAsked(c)))
	switch {
	case c.Result == record.ResultFailure && n.Fail == 0:
		b.Message, b.Color = "known failures out of date", "red"
	case c.Result == record.ResultFailure:
		b.Message, b.Color = fmt.Sprintf("%d not kept", n.Fail), "red"
	case n.Pass+n.Differs+n.KnownFails == 0:
		b.Message, b.Color = "not told", "lightgrey"
	case c.Result == record.ResultSuccess:
		b.Message, b.Color = kept, "brightgreen"
	default:
		b.Message, b.Color = kept, "yellowgreen"
	}
	return json.NewEncoder(w).Encode(b)
}
