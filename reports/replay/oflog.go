package replay

import (
	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/timeline"
)

// AttemptsOf is the log's attempts as a timeline.
func AttemptsOf(log *accesslog.Log) *timeline.Timeline {
	list := make([]timeline.Attempt, len(log.Attempts))
	for i, a := range log.Attempts {
		list[i] = timeline.Attempt{At: a.At, Hold: timeline.NoHold, Pool: a.Pool}
		if log.Holds != nil {
			list[i].Hold = log.Holds[i]
		}
		if a.Refused {
			list[i].Status, list[i].Fate = 429, timeline.RefusedSomehow
		}
	}
	return timeline.Of(list...)
}
