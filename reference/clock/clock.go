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
	"math"
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
	date   time.Duration  // added to the date; may be negative
	leaped bucket.Instant // added to the timeline: the forward moves alone
	rest   time.Duration  // of the forward moves, less than a microsecond
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
	return c.base.Instant() + c.leaped
}

// Advance moves the date by d; the timeline moves along only where d is positive.
// However far a clock is moved in all, its date stays within 292 years of the
// base clock's; the timeline has no such end.
func (c *Shifted) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.date = saturatingSum(c.date, d)
	c.rest = saturatingSum(c.rest, max(d, 0))
	c.leaped += bucket.Instant(c.rest / time.Microsecond)
	c.rest %= time.Microsecond
}

func saturatingSum(a, b time.Duration) time.Duration {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	}
	return sum
}

// still is a base clock that does not run.
type still struct{ date time.Time }

func (s still) Now() time.Time          { return s.date }
func (s still) Instant() bucket.Instant { return 0 }

// NewFrozen returns a clock that stands at date until it is moved.
func NewFrozen(date time.Time) *Shifted { return NewShifted(still{date: date.Round(0)}) }
