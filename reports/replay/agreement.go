package replay

import (
	"fmt"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
)

// memory is what is known of a user's bucket in the current run.
type memory struct {
	state   bucket.State
	run     int
	missing uint64 // decisions absent from the log before the user's latest one
}

// again takes every recorded decision once more, on its recorded grounds, and
// compares outcome and level. Where they differ it goes on from the recorded
// level, so that one wrong decision is counted once.
//
// Entries can be missing. A difference that the missing ones may explain, since
// some lie between it and the user's previous decision, proves nothing and is
// counted apart.
func again(log *accesslog.Log) (record.Agreed, record.Cell) {
	var agreed record.Agreed
	users := make([]memory, log.Pools)
	outcomes := make([]outcome, log.Pools)
	seen := PlanTraffic{attempts: make([]uint32, log.Pools)}
	var missing, last uint64
	for i, d := range log.Decided {
		if i == 0 || d.Run != log.Decided[i-1].Run {
			agreed.Runs++
			missing, last = 0, 0
		}
		missing += d.Order - last - 1
		agreed.Missing += int64(d.Order - last - 1)
		last = d.Order
		if d.Pool == accesslog.NoPool {
			continue
		}
		user := &users[d.Pool]
		if user.run != agreed.Runs { // a restart forgets every bucket
			*user = memory{run: agreed.Runs}
		}
		decided := user.decide(d)
		if d.Attempt {
			outcomes[d.Pool].count(decided.Outcome)
		}
		agreed.Compared++
		recorded := record.Decision{Outcome: d.Outcome, Level: d.Level}
		switch {
		case decided == recorded:
			agreed.Agreed++
		case missing != user.missing:
			agreed.Untold++
		default:
			agreed.Disagreed++
			if agreed.First == nil {
				agreed.First = &record.Disagreement{
					RequestID: d.RequestID, Order: d.Order, Grounds: grounds(d), Recorded: recorded, Decided: decided,
				}
			}
		}
		user.state.Level = min(d.Level, user.state.Burst*bucket.Token)
		user.missing = missing
	}
	var t tally
	for id, o := range outcomes {
		t.add(id, o)
		seen.attempts[id] = uint32(o.attempts)
	}
	return agreed, record.Cell{Rejections: t.summary(seen.rank)}
}

// decide takes one recorded decision again.
func (m *memory) decide(d accesslog.Decided) record.Decision {
	a, err := policy.NewAllowance(d.RequestsPerMinute, d.Burst, d.Concurrency)
	if err != nil {
		return record.Decision{Outcome: err.Error()}
	}
	var decision admission.Decision
	m.state, decision = admission.Decide(m.state, d.InFlight, a, bucket.Instant(d.Instant))
	return record.Decision{Outcome: decision.Outcome.String(), Level: decision.Level}
}

func (o *outcome) count(word string) {
	o.attempts++
	switch word {
	case accesslog.RateRejected:
		o.rate++
	case accesslog.ConcurrencyRejected:
		o.concurrency++
	}
}

func grounds(d accesslog.Decided) string {
	return fmt.Sprintf("%d requests/minute, burst %d, concurrency %d, %d in flight",
		d.RequestsPerMinute, d.Burst, d.Concurrency, d.InFlight)
}
