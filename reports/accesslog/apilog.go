package accesslog

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
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

// apiReading is what an API log takes to be read.
type apiReading struct {
	plans    map[string]string // one text for all entries of a plan
	decided  []Decided
	run      int
	runFirst int               // the place in decided at which this run begins
	orders   map[uint64]string // request ids by order, of this run
}

func newAPIReading() apiReading {
	return apiReading{plans: map[string]string{}, orders: map[uint64]string{}}
}

// isOurs reports whether a JSON object is an entry of our API log, and an error
// where it is one that cannot be read.
func isOurs(text []byte) (bool, error) {
	var probe struct {
		Schema  int    `json:"schema"`
		ID      string `json:"request_id"`
		Outcome string `json:"outcome"`
	}
	if json.Unmarshal(text, &probe) != nil || probe.ID == "" || probe.Outcome == "" || probe.Schema == 0 {
		return false, nil
	}
	if probe.Schema != apiSchema {
		return false, fmt.Errorf("API log of schema %d; accepted: %d", probe.Schema, apiSchema)
	}
	return true, nil
}

// decisions reads the rest of a source of our own, line by line: the order of its
// entries is part of what it says.
func (b *book) decisions(ctx context.Context, p *piece) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := b.decisionsOf(p); err != nil {
			return err
		}
		if err := b.from.next(p); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("after %d lines: %w", b.from.line, err)
		}
	}
}

func (b *book) decisionsOf(p *piece) error {
	if p.long {
		b.clerk.read(p)
		return nil
	}
	n := p.first - 1
	lines(p.text, func(text []byte) {
		n++
		b.clerk.tally.lines++
		b.sums.add(b.clerk.hash.of(text), n)
		switch {
		case len(text) >= maxLine:
			b.clerk.drop(tooLong, n, nil)
		case blankLine(text):
			b.clerk.drop(blank, n, nil)
		default:
			if why := b.keepAPI(text); why != kept {
				b.clerk.drop(why, n, text)
			}
		}
	})
	if len(b.api.decided) > MaxDecided {
		return fmt.Errorf("more than %d decisions: read a part of the log", MaxDecided)
	}
	return nil
}

// keepAPI keeps an entry of the API log. Only a decision of a user's limiter is
// an attempt: a request without a valid key or with an unresolved policy spent
// nothing.
func (b *book) keepAPI(text []byte) reason {
	var e contract.LogEntry
	if json.Unmarshal(text, &e) != nil || !wholeEntry(&e) {
		return badEntry
	}
	r := b.reading
	if e.Decision != nil {
		switch id, ok := r.api.orders[e.Decision.Order]; {
		case ok && id == e.RequestID:
			return duplicate
		case ok: // the server was started anew, and counts from 1 again
			r.api.restarted(&e)
		}
		r.api.orders[e.Decision.Order] = e.RequestID
	}

	t := &b.clerk.tally
	t.entries++
	t.held++
	t.finest = 1
	t.minutes[e.Received.Minute()]++
	t.seconds[e.Received.Second()]++
	t.statuses[e.Status]++
	t.methods[methodPlace([]byte(e.Method))]++
	pool := NoPool
	if e.User != "" {
		pool = r.pool([]byte(e.User))
		r.counts[pool]++
	}
	outside := r.opt.Scope != "" && !inScope([]byte(e.Path), r.prefix)
	received := e.Received.UnixMicro()
	if b.begun && received < b.last {
		r.backward++
	}
	b.last, b.begun = received, true
	if e.Decision != nil {
		r.api.decided = append(r.api.decided, Decided{
			LogDecision: *e.Decision, Run: r.api.run, Pool: pool, Plan: r.api.plan(e.Plan), RequestID: e.RequestID,
			Attempt: !outside && pool != NoPool, received: received, hold: e.Duration, status: e.Status,
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

// plan returns the text that all entries of a plan share.
func (r *apiReading) plan(name string) string {
	if kept, ok := r.plans[name]; ok {
		return kept
	}
	r.plans[name] = name
	return name
}

// restarted begins a new run with e. Entries are in the order in which requests
// ended, so the new run's may have begun already, with an order that the one
// before never came to: the latest entries go over as long as the beginning of
// their timeline lies nearer to that of e.
func (r *apiReading) restarted(e *contract.LogEntry) {
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
	decided := r.api.decided
	slices.SortStableFunc(decided, func(a, b Decided) int {
		return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.Order, b.Order))
	})
	var base, last int64
	for i := range decided {
		d := &decided[i]
		if i == 0 || d.Run != decided[i-1].Run {
			base = d.begin()
			if i > 0 {
				base = max(base, last-d.Instant)
			}
		}
		last = base + d.Instant
		if !d.Attempt {
			continue
		}
		d.At = last
		if err := r.attempts.Add(timeline.Attempt{At: last, Hold: d.hold, Pool: d.Pool, Status: uint16(d.status), Fate: d.fate()}); err != nil {
			return err
		}
	}
	return nil
}

// fate is what the limiter, or what comes behind it, did.
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
