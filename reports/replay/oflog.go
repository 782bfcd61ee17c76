package replay

import (
	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/roster"
	"github.com/invoicespec/brimline/reports/timeline"
)

// TrafficOf is a log's attempts and whose they are.
func TrafficOf(log *accesslog.Log, r *roster.Roster) Traffic {
	return Traffic{Attempts: attemptsOf(log), Roster: r, Durations: log.Holds != nil}
}

// attemptsOf is the log's attempts as a timeline.
func attemptsOf(log *accesslog.Log) *timeline.Timeline {
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
	next := 0
	for _, d := range log.Decided {
		if !d.Attempt {
			continue
		}
		switch d.Outcome {
		case accesslog.RateRejected:
			list[next].Fate = timeline.RefusedRate
		case accesslog.ConcurrencyRejected:
			list[next].Fate = timeline.RefusedConcurrency
		}
		next++
	}
	return timeline.Of(list...)
}
