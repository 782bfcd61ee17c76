package spool

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/invoicespec/brimline/loadgen/measure"
	"github.com/invoicespec/brimline/reports/record"
)

// Who is who sent an answer's request: a name of ours, and their plan.
type Who func(user int) (name, plan string)

// Rows are the rows of [record.ReadRows], a frame for each batch. Started is asked
// with the first.
func Rows(who Who, started func() time.Time) (Encode, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	var lines bytes.Buffer
	headed := false
	return func(batch []measure.Answer) ([]byte, error) {
		lines.Reset()
		out := json.NewEncoder(&lines)
		if !headed {
			if err := out.Encode(record.RowsHead{Schema: record.RowsSchema, Started: started().UTC()}); err != nil {
				return nil, err
			}
			headed = true
		}
		for _, a := range batch {
			name, plan := who(a.User)
			if err := out.Encode(record.Row{
				User: name, Plan: plan, Operation: a.Operation,
				DueUS: a.Due.Microseconds(), SentUS: a.Sent.Microseconds(), FirstUS: a.First.Microseconds(), DoneUS: a.Done.Microseconds(),
				Attempts: a.Attempts, Status: a.Status, Outcome: a.Outcome, Error: a.Error, Verdict: a.Verdict,
			}); err != nil {
				return nil, err
			}
		}
		return z.EncodeAll(lines.Bytes(), nil), nil
	}, nil
}
