package spool

import (
	"bytes"
	"net/http"
	"time"

	vegeta "github.com/tsenart/vegeta/v12/lib"

	"github.com/invoicespec/brimline/loadgen/measure"
	"github.com/invoicespec/brimline/reports/record"
)

// VegetaFile is the name of vegeta's results in a run's folder.
const VegetaFile = "vegeta.json"

// Asked is what an operation sends and where to. No key, user or query is in it.
type Asked struct{ Method, URL string }

// Vegeta are results as "vegeta encode --to json" writes them: "vegeta report" and
// "vegeta plot" read them. A plan is an attack of its own, and a latency counts
// from when the request was due.
func Vegeta(who Who, asked map[string]Asked, started func() time.Time) Encode {
	var lines bytes.Buffer
	seq := map[string]uint64{} // by plan
	encode := vegeta.NewJSONEncoder(&lines)
	return func(batch []measure.Answer) ([]byte, error) {
		lines.Reset()
		for _, a := range batch {
			_, plan := who(a.User)
			to := asked[a.Operation]
			r := vegeta.Result{
				Attack: plan, Seq: seq[plan], Code: uint16(a.Status), Timestamp: started().Add(a.Due), Latency: a.Done - a.Due,
				Method: to.Method, URL: to.URL,
			}
			seq[plan]++
			switch {
			case a.Outcome == record.OutcomeTransportError:
				r.Code, r.Error = 0, a.Error
			case a.Status < 200 || a.Status >= 400:
				r.Error = http.StatusText(a.Status)
			}
			if err := encode(&r); err != nil {
				return nil, err
			}
		}
		return bytes.Clone(lines.Bytes()), nil
	}
}
