// Package replay puts recorded traffic through the limiter's own decision
// ([admission.Decide]) in virtual time: what would have been rejected under
// other allowances, and for a log of our own whether each recorded decision
// comes out the same when it is taken again (RATE-1 to RATE-10, CONC-1,
// CONC-3, CONC-6, POOL-3).
//
// Most callers want [Run] on what package accesslog has read. Pools share
// nothing, so one user is replayed after another, each through every allowance;
// memory beside the log is 4 bytes an attempt and 8 bytes a user and rate.
//
// Users appear in results as ranks alone ("the busiest is 1"): nothing that is
// printed or stored is derived from an address or a name.
package replay

import (
	"errors"
	"fmt"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
)

// Question is what is asked of a log: every rate with every burst and, where
// concurrency is asked for at all, with every cap. Without rates and bursts
// each decision is taken again with the allowance recorded for it.
type Question struct {
	Rates       []int64 // requests per minute
	Bursts      []int64
	Concurrency []int64
	Pairs       [][2]int64 // further rates, each with a burst; replayed without concurrency
}

// ErrNoAllowance says that a log records no allowances and none was asked for.
var ErrNoAllowance = errors.New("an access log records no allowances")

// RefusedError says why a question cannot be answered from this log.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return e.Why }

// Run answers q. Where it returns a [*RefusedError], the result still says what
// was read. Any other error is one of the question.
func Run(log *accesslog.Log, q Question) (record.Replay, error) {
	cells, err := q.cells()
	if err != nil {
		return record.Replay{}, err
	}
	ours := log.Quality.Format == record.FormatAPI
	if len(cells) == 0 && !ours {
		return record.Replay{}, ErrNoAllowance
	}
	if len(log.Attempts) == 0 {
		return record.Replay{}, noAttempts(log)
	}
	result, pools := describe(log, q), grouped(log)
	result.Users = pools.users()
	if why := refusal(log, q); why != "" {
		result.Refused = why
		return result, &RefusedError{Why: why}
	}
	if ours {
		agreed, asRecorded := again(log, pools)
		result.Agreement = &agreed
		if len(cells) == 0 {
			result.Cell = &asRecorded
			return result, nil
		}
	}
	whatIf(&result, pools, cells, q)
	return result, nil
}

// cell is an allowance that is asked for.
type cell struct {
	allowance policy.Allowance
	record.Cell
}

func (q Question) cells() ([]cell, error) {
	if grid := len(q.Rates) + len(q.Bursts) + len(q.Concurrency); grid > 0 && (len(q.Rates) == 0 || len(q.Bursts) == 0) {
		return nil, errors.New("a rate and a burst are needed together")
	}
	caps := q.Concurrency
	if len(caps) == 0 {
		caps = []int64{0}
	}
	var cells []cell
	for _, rate := range q.Rates {
		for _, burst := range q.Bursts {
			for _, concurrency := range caps {
				c, err := newCell(rate, burst, concurrency)
				if err != nil {
					return nil, err
				}
				cells = append(cells, c)
			}
		}
	}
	for _, pair := range q.Pairs {
		c, err := newCell(pair[0], pair[1], 0)
		if err != nil {
			return nil, err
		}
		cells = append(cells, c)
	}
	return cells, nil
}

// newCell takes 0 for a concurrency that is not asked for.
func newCell(rate, burst, concurrency int64) (c cell, err error) {
	c.Cell = record.Cell{Rate: rate, Burst: burst, Concurrency: concurrency}
	c.allowance, err = policy.NewAllowance(rate, burst, max(concurrency, 1))
	return c, err
}

// decide takes the decisions of one series. Where concurrency is not asked for
// nothing is ever in flight, so no cap can bind.
func (c cell) decide(s series) outcome {
	if c.Concurrency == 0 {
		s.holds = nil
	}
	return s.decide(c.allowance)
}

func noAttempts(log *accesslog.Log) error {
	if log.Scope != "" {
		return fmt.Errorf("none of the %d entries is an attempt below %s", log.Quality.Entries, log.Scope)
	}
	return fmt.Errorf("none of the %d entries is an attempt", log.Quality.Entries)
}

// whatIf replays every user through every cell.
func whatIf(result *record.Replay, pools *pools, cells []cell, q Question) {
	all, kept := make([]tally, len(cells)), make([]tally, len(cells))
	peaks := make([][]int64, len(q.Rates))
	for pool := range pools.each() {
		for i, c := range cells {
			all[i].add(pool.id, c.decide(pool.all))
			if result.AlreadyRefused > 0 {
				kept[i].add(pool.id, c.decide(pool.kept))
			}
		}
		for i, rate := range q.Rates {
			peaks[i] = append(peaks[i], burstNeeded(pool.all.times, rate))
		}
	}
	for i := range cells {
		cells[i].Rejections = all[i].summary(pools)
		if result.AlreadyRefused > 0 {
			without := kept[i].summary(pools)
			cells[i].WithoutRefused = &without
		}
	}
	for i, rate := range q.Rates {
		result.BurstNeeded = append(result.BurstNeeded, needs(rate, peaks[i]))
	}
	if len(cells) == 1 {
		result.Cell = &cells[0].Cell
		return
	}
	for _, c := range cells {
		result.Cells = append(result.Cells, c.Cell)
	}
}

// series is the attempts of one user.
type series struct {
	times []int64
	holds []int64 // how long each is in flight once admitted; nil: not at all
}

// decide takes the decisions of one series under one allowance.
func (s series) decide(a policy.Allowance) outcome {
	o := outcome{attempts: int64(len(s.times))}
	var state bucket.State
	var decision admission.Decision
	var flying inFlight
	for i, at := range s.times {
		state, decision = admission.Decide(state, flying.at(at), a, bucket.Instant(at))
		switch decision.Outcome {
		case admission.RateRejected:
			o.rate++
		case admission.ConcurrencyRejected:
			o.concurrency++
		case admission.Admitted:
			if s.holds != nil {
				flying.add(at + s.holds[i])
			}
		}
	}
	return o
}
