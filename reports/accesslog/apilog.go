package accesslog

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reports/timeline"
)

const apiSchema = 1

// The outcomes of a recorded decision.
const (
	Admitted            = "admitted"
	RateRejected        = "rate"
	ConcurrencyRejected = "concurrency"
)

// keepAPI keeps an entry of the API log. Only a decision of a user's limiter is
// an attempt: a request without a valid key or with an unresolved policy spent
// nothing.
func (r *reading) keepAPI(b []byte) reason {
	var e contract.LogEntry
	if json.Unmarshal(b, &e) != nil || !wholeEntry(&e) {
		return badEntry
	}
	if e.Decision != nil {
		switch id, ok := r.orders[e.Decision.Order]; {
		case ok && id == e.RequestID:
			return duplicate
		case ok: // the server was started anew, and counts from 1 again
			r.restarted(&e)
		}
		r.orders[e.Decision.Order] = e.RequestID
	}

	t := &r.tally
	t.minutes[e.Received.Minute()]++
	t.statuses[e.Status]++
	t.methods[methodName([]byte(e.Method))]++
	pool := NoPool
	if e.User != "" {
		pool = r.pool([]byte(e.User))
	}
	outside := r.opt.Scope != "" && !inScope([]byte(e.Path), r.prefix)
	received := e.Received.UnixMicro()
	r.stamped(timeline.Attempt{At: received, Pool: pool}, outside)
	if e.Decision != nil {
		r.decided = append(r.decided, Decided{
			LogDecision: *e.Decision, Run: r.run, Pool: pool, Plan: r.plan(e.Plan), RequestID: e.RequestID,
			Attempt: !outside && pool != NoPool, received: received, hold: e.Duration, status: uint16(e.Status),
		})
	}
	switch {
	case outside:
		t.not[outOfScope]++
	case e.Outcome == contract.LogUnauthenticated:
		t.not[unauthenticated]++
	case e.Outcome == contract.LogUnresolved:
		t.not[unresolved]++
	case e.Decision == nil || pool == NoPool:
		t.not[undecided]++
	}
	return kept
}

// restarted begins a new run with e. Entries are in the order in which requests
// ended, so the new run's may have begun already, with an order that the one
// before never came to: the latest entries go over as long as the beginning of
// their timeline lies nearer to that of e.
func (r *reading) restarted(e *contract.LogEntry) {
	r.run++
	r.orders = map[uint64]string{e.Decision.Order: e.RequestID}
	begin := e.Received.UnixMicro() - e.Decision.Instant
	i := len(r.decided) - 1
	for ; i > r.runFirst; i-- {
		d := &r.decided[i]
		if _, ok := r.orders[d.Order]; ok || distance(d.begin(), begin) >= distance(d.begin(), r.decided[r.runFirst].begin()) {
			break
		}
		d.Run = r.run
		r.orders[d.Order] = d.RequestID
	}
	r.runFirst = i + 1
}

// begin is when the timeline of the decision's process began, give or take the
// time that the request waited to be decided.
func (d *Decided) begin() int64 { return d.received - d.Instant }

func distance(a, b int64) int64 { return max(a-b, b-a) }

// wholeEntry reports whether e has what every entry has, in range.
func wholeEntry(e *contract.LogEntry) bool {
	outcomes := []string{contract.LogAdmitted, contract.LogRejected, contract.LogUnauthenticated, contract.LogUnresolved}
	if e.Schema != apiSchema || e.RequestID == "" || e.Received.IsZero() || e.Duration < 0 ||
		e.Status < 0 || e.Status > 999 || !slices.Contains(outcomes, e.Outcome) {
		return false
	}
	d := e.Decision
	if d == nil {
		return true
	}
	switch d.Outcome { // constants, lest each entry keep a text of its own
	case Admitted:
		d.Outcome = Admitted
	case RateRejected:
		d.Outcome = RateRejected
	case ConcurrencyRejected:
		d.Outcome = ConcurrencyRejected
	default:
		return false
	}
	return d.Order > 0 && d.Order <= math.MaxInt64 && d.InFlight >= 0 && d.Level >= 0
}

// timeline sorts the decisions into the order in which they were taken and lays
// the attempts among them, run after run, on one timeline: that of the limiter,
// moved so that each run begins at its date, or where the run before ended.
func (r *reading) timeline() error {
	slices.SortStableFunc(r.decided, func(a, b Decided) int {
		return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.Order, b.Order))
	})
	var base, last int64
	for i := range r.decided {
		d := &r.decided[i]
		if i == 0 || d.Run != r.decided[i-1].Run {
			base = d.begin()
			if i > 0 {
				base = max(base, last-d.Instant)
			}
		}
		last = base + d.Instant
		d.At = last
		if !d.Attempt {
			continue
		}
		if err := r.attempts.Add(timeline.Attempt{At: last, Hold: d.hold, Pool: d.Pool, Status: d.status, Fate: d.fate()}); err != nil {
			return err
		}
	}
	return nil
}

// fate is what the server's own limiter decided, and the engine after it.
func (d *Decided) fate() timeline.Fate {
	switch {
	case d.Outcome == RateRejected:
		return timeline.RefusedRate
	case d.Outcome == ConcurrencyRejected:
		return timeline.RefusedConcurrency
	case d.status == 402:
		return timeline.OutOfOperations
	case d.status == 503:
		return timeline.Overloaded
	}
	return timeline.Passed
}
