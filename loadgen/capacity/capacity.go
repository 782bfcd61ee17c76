// Package capacity finds how much load a target carries: it raises what is offered
// in steps, holds each for a while against an SLO, and tells three things apart.
// The load under which the SLO held last is what can be promised; the load at
// which goodput stops to follow is where the target is full; the load at which
// latency begins to climb warns of both.
//
// Most callers [Search] with a function that offers one load, whose run [Measure]
// makes a step of, and let [Conclude] say what the steps tell.
//
// Three things are never taken for a target's capacity: that the load side could
// not send more, that the users' allowances did not let more in, and one noisy
// step, since only two failing ones in a row end a search. What the rate limit
// keeps away is no load, and what it refuses is no failure. On steps that never
// bend no knee is found.
package capacity

import (
	"context"
	"errors"
	"fmt"

	"github.com/invoicespec/brimline/reports/record"
)

// Plan is which loads to offer, in requests per second, and when to stop.
type Plan struct {
	From, To, By float64
	Beyond       int // steps to take after the two that fail, to see where goodput bends
}

// MostSteps bounds a search.
const MostSteps = 200

// Loads are the loads of a plan.
func (p Plan) Loads() ([]float64, error) {
	if !(p.From > 0 && p.To >= p.From && p.By > 0) {
		return nil, fmt.Errorf("from %g to %g by %g is no search; accepted: more than 0, and no less than where it begins", p.From, p.To, p.By)
	}
	var loads []float64
	for i := 0; ; i++ {
		load := p.From + float64(i)*p.By
		if load > p.To*(1+1e-9) {
			return loads, nil
		}
		if i == MostSteps {
			return nil, fmt.Errorf("from %g to %g by %g are more than %d steps: take longer ones", p.From, p.To, p.By, MostSteps)
		}
		loads = append(loads, load)
	}
}

// failing is how many steps in a row have to fail before the SLO is taken to be
// broken: one does by chance.
const failing = 2

// Search offers one load after the other until the SLO fails twice in a row and
// as many steps beyond are taken, a step tells nothing of the target, or the last
// load was offered. Number counts from 1. An end from outside is no error.
func Search(ctx context.Context, p Plan, offer func(ctx context.Context, number int, load float64) (record.CapacityStep, error)) ([]record.CapacityStep, record.CapacityEnd, error) {
	loads, err := p.Loads()
	if err != nil {
		return nil, "", err
	}
	var steps []record.CapacityStep
	inARow, beyond := 0, -1 // steps still to take; below 0: the SLO is not broken yet
	for i, load := range loads {
		step, err := offer(ctx, i+1, load)
		switch {
		case ctx.Err() != nil && (err == nil || errors.Is(err, ctx.Err())):
			return steps, record.EndInterrupted, nil
		case err != nil:
			return steps, "", err
		}
		steps = append(steps, step)
		switch step.Verdict {
		case record.CapacityGenerator, record.CapacityLimits:
			if beyond >= 0 { // the SLO was broken before
				return steps, record.EndSLO, nil
			}
			if step.Verdict == record.CapacityLimits {
				return steps, record.EndLimits, nil
			}
			return steps, record.EndGenerator, nil
		case record.CapacityHolds:
			inARow = 0
		default:
			inARow++
		}
		switch {
		case beyond > 0:
			beyond--
		case beyond < 0 && inARow == failing:
			beyond = p.Beyond
		}
		if beyond == 0 {
			return steps, record.EndSLO, nil
		}
	}
	if beyond > 0 {
		return steps, record.EndSLO, nil
	}
	return steps, record.EndTop, nil
}
