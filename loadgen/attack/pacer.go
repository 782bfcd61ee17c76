package attack

import (
	"time"

	"github.com/invoicespec/brimline/loadgen/arrival"
)

// pacer is vegeta's pacer: it blocks until the next slot is due or the run is
// stopped, so that a stop takes effect at once and sends nothing more.
type pacer struct {
	attack   *Attack
	timeline *arrival.Timeline
	bound    bound
	stop     <-chan struct{}

	timer   *time.Timer
	busy    bool  // the last slot found every worker busy, and there was no pause since
	reached int64 // slots that did
}

// Pace carries out vegeta's Pacer. Vegeta's own clock and count are not needed.
func (p *pacer) Pace(time.Duration, uint64) (wait time.Duration, stop bool) {
	a := p.attack
	for {
		r, ok := p.timeline.Next()
		if !ok {
			return 0, true
		}
		if !p.until(max(r.Due, p.bound.next())) {
			a.Meter.Unsent(r.User)
			return 0, true
		}
		switch {
		case a.held(r.User, r.Due):
			a.Meter.HeldOff(r.User, r.Due)
		case a.now()-r.Due > MostLate:
			a.Meter.Dropped(r.User, r.Due, p.busy)
		default:
			p.bound.take(a.now())
			p.busy = a.slots.push(r)
			if p.busy {
				p.reached++
			}
			return 0, false
		}
	}
}

// Rate is not known, and vegeta does not ask.
func (p *pacer) Rate(time.Duration) float64 { return 0 }

// until waits for an instant; false: the run was stopped first.
func (p *pacer) until(due time.Duration) bool {
	wait := due - p.attack.now()
	if wait <= 0 {
		select {
		case <-p.stop:
			return false
		default:
			return true
		}
	}
	p.busy = false
	if p.timer == nil {
		p.timer = time.NewTimer(wait)
	} else {
		p.timer.Reset(wait)
	}
	select {
	case <-p.timer.C:
		return true
	case <-p.stop:
		p.timer.Stop()
		return false
	}
}
