package replay

import (
	"fmt"

	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/roster"
	"github.com/invoicespec/brimline/reports/timeline"
)

// Traffic is recorded attempts and whose they are. Each of its methods reads the
// attempts in order of time, once or a few times, and keeps what it knows of
// users, never the attempts: memory grows with users alone.
//
// A plan's attempts are those that its users made while they were on it.
// Attempts under an override are outside every plan's figures; see [Override].
type Traffic struct {
	Attempts *timeline.Timeline
	Roster   *roster.Roster
	// Durations: the log says how long each attempt was in flight, well enough for
	// claims on concurrency. Without it nothing is ever in flight.
	Durations bool
	// Progress, where it is set, is told now and then how many attempts of a
	// reading are done, and of how many.
	Progress func(done, of int64)
}

// TrafficOf is a log's attempts and whose they are.
func TrafficOf(log *accesslog.Log, r *roster.Roster) Traffic {
	return Traffic{Attempts: log.Attempts, Roster: r, Durations: log.Durations}
}

// today is the allowance in force on each plan.
func (t Traffic) today() ([]limit, error) {
	list := make([]*record.ReportAllowance, len(t.Roster.Plans))
	for i := range list {
		list[i] = t.Roster.Plans[i].Today
	}
	return t.limits(list)
}

// limits are allowances by plan; nil is unknown.
func (t Traffic) limits(allowances []*record.ReportAllowance) ([]limit, error) {
	if len(allowances) != len(t.Roster.Plans) {
		return nil, fmt.Errorf("%d allowances for %d plans", len(allowances), len(t.Roster.Plans))
	}
	list := make([]limit, len(allowances))
	for i, a := range allowances {
		if a == nil {
			continue
		}
		var err error
		if list[i], err = newLimit(*a); err != nil {
			return nil, fmt.Errorf("plan %q: %w", t.Roster.Plans[i].Name, err)
		}
	}
	return list, nil
}

// limit is an allowance that may leave concurrency open.
type limit struct {
	policy.Allowance
	capped bool
}

// newLimit takes 0 for a concurrency that is left open: nothing that a log holds
// comes near the most that the contract has.
func newLimit(a record.ReportAllowance) (limit, error) {
	c := a.Concurrency
	if c == 0 {
		c = policy.Concurrency.Max()
	}
	allowance, err := policy.NewAllowance(a.RequestsPerMinute, a.Burst, c)
	return limit{Allowance: allowance, capped: a.Concurrency > 0}, err
}
