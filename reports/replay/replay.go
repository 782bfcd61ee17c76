// Package replay puts recorded traffic through the limiter's own decision
// ([admission.Decide]) in virtual time: what would have been rejected under
// other allowances, how much of today's allowance users take, what today's
// rejections are made of, and for a log of our own whether each recorded
// decision comes out the same when it is taken again (RATE-1 to RATE-10,
// CHG-1 to CHG-3, CONC-1, CONC-3, CONC-6, POOL-3, HDR-5).
//
// Most callers want [Run] on what package accesslog has read; a report asks a
// [Traffic], plan by plan. Attempts are streamed in order of time, and users,
// whose buckets share nothing, are dealt out to as many workers as there are
// processors: memory grows with users, not with attempts.
//
// Users appear in results as ranks alone ("the busiest is 1") or as numbers of
// the roster: nothing is derived from an address or a name.
package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/roster"
)

// Question is what is asked of a log: every rate with every burst and, where
// concurrency is asked for at all, with every cap. Without rates and bursts each
// decision is taken again with the allowance recorded for it, or each plan's
// attempts are replayed with its allowance of today.
type Question struct {
	Rates       []int64 // requests per minute
	Bursts      []int64
	Concurrency []int64
	Roster      *roster.Roster // nil: everybody is on one plan
	ClosedLoop  bool           // also with clients that obey Retry-After
	Progress    func(done, of int64)
}

// ErrNoAllowance says that a log records no allowances and none was asked for.
var ErrNoAllowance = errors.New("an access log records no allowances")

// RefusedError says why a question cannot be answered from this log.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return e.Why }

// Run answers q. Where it returns a [*RefusedError], the result still says what
// was read. Any other error is one of the question, of the context or of reading
// the attempts.
func Run(ctx context.Context, log *accesslog.Log, q Question) (record.Replay, error) {
	cells, err := q.cells()
	if err != nil {
		return record.Replay{}, err
	}
	ours := log.Quality.Format == record.FormatAPI
	if len(cells) == 0 && !ours && q.Roster == nil {
		return record.Replay{}, ErrNoAllowance
	}
	t := TrafficOf(log, q.Roster)
	t.Progress = q.Progress
	if t.Roster == nil {
		t.Roster = roster.Single("", nil, log.Pools)
	}
	if t.Attempts.Len() == 0 {
		return record.Replay{}, noAttempts(log)
	}
	if why := refusal(log, q); why != "" {
		return t.refuse(ctx, log, q, why)
	}
	var agreement *record.Agreed
	if ours {
		agreed, asRecorded := again(log)
		agreement = &agreed
		if len(cells) == 0 && q.Roster == nil {
			seen, err := t.Survey(ctx)
			result := describe(log, seen, q)
			result.Agreement, result.Cell = agreement, &asRecorded
			return result, err
		}
	}
	asks := t.asks(cells, q)
	answers, seen, err := t.whatIf(ctx, asks, maxMemory)
	if err != nil {
		return record.Replay{}, err
	}
	result := describe(log, seen, q)
	result.Agreement = agreement
	if q.Roster != nil {
		if seen.LeftOut == t.Attempts.Len() {
			result.Refused = "the plan map knows the plan of none of the log's clients"
			return result, &RefusedError{Why: result.Refused}
		}
		result.Plans = t.plans(answers, seen)
		return result, nil
	}
	a := answers[0]
	result.BurstNeeded, result.ClosedLoop = a.BurstNeeded, a.ClosedLoop
	if len(a.Cells) == 1 {
		result.Cell = &a.Cells[0]
	} else {
		result.Cells = a.Cells
	}
	return result, nil
}

// Describe says what was read of a log, or in Refused why it cannot carry a replay,
// and of a log of our own whether its decisions come out as recorded. Nothing is
// replayed under another allowance.
func Describe(ctx context.Context, log *accesslog.Log) (record.Replay, error) {
	if log.Attempts.Len() == 0 {
		return record.Replay{}, noAttempts(log)
	}
	seen, err := TrafficOf(log, roster.Single("", nil, log.Pools)).Survey(ctx)
	if err != nil {
		return record.Replay{}, err
	}
	result := describe(log, seen, Question{})
	if result.Refused = refusal(log, Question{}); result.Refused == "" && log.Quality.Format == record.FormatAPI {
		agreed, _ := again(log)
		result.Agreement = &agreed
	}
	return result, nil
}

// refuse tells what was read, and why it does not answer.
func (t Traffic) refuse(ctx context.Context, log *accesslog.Log, q Question, why string) (record.Replay, error) {
	seen, err := t.Survey(ctx)
	if err != nil {
		return record.Replay{}, err
	}
	result := describe(log, seen, q)
	result.Refused = why
	return result, &RefusedError{Why: why}
}

// asks asks every plan the same, or each for its own allowance.
func (t Traffic) asks(cells []record.ReportAllowance, q Question) []Ask {
	asks := make([]Ask, len(t.Roster.Plans))
	for i, p := range t.Roster.Plans {
		asks[i] = Ask{Cells: cells, Rates: q.Rates}
		if len(cells) == 0 && p.Today != nil {
			asks[i] = Ask{Cells: []record.ReportAllowance{t.asTold(*p.Today)}, Rates: []int64{p.Today.RequestsPerMinute}}
		}
		if q.ClosedLoop {
			asks[i].ClosedLoop = asks[i].Cells
		}
	}
	return asks
}

func (t Traffic) plans(answers []Answer, seen Survey) (list []record.ReplayPlan) {
	for i, a := range answers {
		p, s := t.Roster.Plans[i], seen.Plans[i]
		list = append(list, record.ReplayPlan{
			Plan: p.Name, Allowance: p.Today, Users: s.Users, Attempts: s.Attempts, AlreadyRefused: s.Refused, LeftOut: s.LeftOut,
			Cells: a.Cells, BurstNeeded: a.BurstNeeded, ClosedLoop: a.ClosedLoop,
		})
	}
	return list
}

// asTold is an allowance without its cap where the log cannot tell of it.
func (t Traffic) asTold(a record.ReportAllowance) record.ReportAllowance {
	if !t.Durations {
		a.Concurrency = 0
	}
	return a
}

func (q Question) cells() ([]record.ReportAllowance, error) {
	if grid := len(q.Rates) + len(q.Bursts) + len(q.Concurrency); grid > 0 && (len(q.Rates) == 0 || len(q.Bursts) == 0) {
		return nil, errors.New("a rate and a burst are needed together")
	}
	caps := q.Concurrency
	if len(caps) == 0 {
		caps = []int64{0}
	}
	var cells []record.ReportAllowance
	for _, rate := range q.Rates {
		for _, burst := range q.Bursts {
			for _, c := range caps {
				a := record.ReportAllowance{RequestsPerMinute: rate, Burst: burst, Concurrency: c}
				if _, err := newLimit(a); err != nil {
					return nil, err
				}
				cells = append(cells, a)
			}
		}
	}
	return cells, nil
}

func noAttempts(log *accesslog.Log) error {
	return fmt.Errorf("none of the %d entries is an attempt%s", log.Quality.Entries, below(log.Scope))
}

func below(scope string) string {
	if scope == "" {
		return ""
	}
	return " below " + scope
}
