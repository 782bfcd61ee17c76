package measure

import (
	"sync/atomic"
	"time"

	"github.com/invoicespec/brimline/conformance/oracle"
)

// What the judge allows a correct server.
const (
	// Grace is how long after an answer its permit may be held, at least; see
	// [Slowest].
	Grace = 100 * time.Millisecond
	// Resolution is how coarse the server's clock may be.
	Resolution = time.Millisecond
	// driftShare is how far the two clocks may run apart: a part in so many.
	driftShare = 2000
)

// token is one token in units; every nanosecond adds requests/minute units.
const token = oracle.Token * 1000

// A judge remembers ends for so long.
const (
	longestGrace    = 2 * time.Minute
	longestExchange = 2 * time.Minute
)

// Slowest is the longest time that an answer has taken so far. A server that is
// short of processors gives its permits back as late as it answers: so a permit
// may be held after its answer for twice that time.
type Slowest struct{ ns atomic.Int64 }

func (s *Slowest) note(d time.Duration) {
	for old := s.ns.Load(); old < int64(d) && !s.ns.CompareAndSwap(old, int64(d)); {
		old = s.ns.Load()
	}
}

func (s *Slowest) grace() time.Duration {
	return min(max(Grace, 2*time.Duration(s.ns.Load())), longestGrace)
}

// low is a level that a bucket has at least. Its gain is apart since the server's
// clock may be behind ours: time only counts beyond the clock's resolution, and
// only once, since the bucket was last known to hold its units.
type low struct {
	units, gain int64
	at          time.Duration
}

func (l low) until(at time.Duration, rate, full int64) low {
	ns := int64(at - l.at)
	l.at = at
	slack := rate * int64(Resolution)
	if ns > 2*((full-l.units+slack)/rate+1) {
		return low{units: full, at: at}
	}
	l.gain += ns*rate - ns*rate/driftShare - 1
	if l.units+l.gain-slack >= full {
		return low{units: full, at: at}
	}
	return l
}

// least is the level in units.
func (l low) least(rate int64) int64 { return l.units + max(0, l.gain-rate*int64(Resolution)) }

// high is a level that a bucket has at most, but for the clock's resolution.
type high struct {
	units int64
	at    time.Duration
}

func (l high) until(at time.Duration, rate, full int64) high {
	ns := int64(at - l.at)
	l.at = at
	if ns > (full-l.units)/rate+1 {
		l.units = full
		return l
	}
	l.units = min(full, l.units+ns*rate+ns*rate/driftShare+1)
	return l
}

// most is the level in units.
func (l high) most(rate int64) int64 { return l.units + rate*int64(Resolution) }
