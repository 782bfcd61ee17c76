// Package clock is the one clock that limiter, policy and log share. It comes in
// three kinds: real, shifted (real time plus an offset that only an operator of
// a test moves) and frozen (only such an operator moves it).
//
// A clock gives two readings. Now is the date, for expiries, billing periods and
// log entries, and may step back. Instant is the limiter's timeline: it counts
// elapsed time and never steps back, so that a date set back neither hands out
// tokens nor makes anybody wait for time to catch up.
package clock

import (
	"sync"
	"time"

	"github.com/invoicespec/brimline/reference/bucket"
)

// Clock is what the reference asks for the time.
type Clock interface {
	Now() time.Time
	Instant() bucket.Instant
}

// Movable is a clock that a test can move.
type Movable interface {
	Clock
	Advance(d time.Duration)
}

// Real is the machine's clock. Make one with [NewReal].
type Real struct{ start time.Time }

// NewReal returns a real clock whose timeline begins now.
func NewReal() *Real { return &Real{start: time.Now()} }

// Now is the date.
func (c *Real) Now() time.Time { return time.Now() }

// Instant is the microseconds since the clock was made, by the monotonic clock.
func (c *Real) Instant() bucket.Instant {
	return bucket.Instant(time.Since(c.start) / time.Microsecond)
}

// Shifted is a running clock with an offset.
type Shifted struct {
	base Clock

	mu     sync.Mutex
	date   time.Duration // added to the date; may be negative
	leaped time.Duration // added to the timeline: the forward moves alone
}

// NewShifted returns a clock that runs as base does, with no offset yet.
func NewShifted(base Clock) *Shifted { return &Shifted{base: base} }

// Now is the date of the base clock plus the offset.
func (c *Shifted) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base.Now().Add(c.date)
}

// Instant is the timeline of the base clock plus every forward move so far.
func (c *Shifted) Instant() bucket.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.base.Instant() + bucket.Instant(c.leaped/time.Microsecond)
}

// Advance moves the date by d; the timeline moves along only where d is positive.
func (c *Shifted) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.date += d
	c.leaped += max(d, 0)
}

// still is a base clock that does not run.
type still struct{ date time.Time }

func (s still) Now() time.Time          { return s.date }
func (s still) Instant() bucket.Instant { return 0 }

// NewFrozen returns a clock that stands at date until it is moved.
func NewFrozen(date time.Time) *Shifted { return NewShifted(still{date: date.Round(0)}) }
