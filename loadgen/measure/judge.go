package measure

import (
	"math"
	"sync"
	"time"

	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/reports/record"
)

// Kind is what an answer says about the user's bucket and cap.
type Kind uint8

// The kinds.
const (
	Passed             Kind = iota // spent a token and held a permit
	RefusedRate                    // a 429 for lack of a token
	RefusedConcurrency             // a 429 for lack of a place: spent a token
	Untouched                      // never came to the bucket
	Unclear                        // an answer that may have spent a token or not
	Lost                           // no answer: may spend a token at any time, or hold a permit
)

func (k Kind) mayTake() bool { return k != RefusedRate && k != Untouched }
func (k Kind) takes() bool   { return k == Passed || k == RefusedConcurrency }
func (k Kind) mayHold() bool { return k == Passed || k == Unclear || k == Lost }

// Verdicts are what came of judging one user's answers.
type Verdicts struct {
	Rate        record.Judged
	Concurrency record.Judged
	Missing     int64 // got past the rate limit though there was surely no token
}

// Judge says of every 429 of one user whether the exact limiter would have
// rejected as well. It knows when requests left and when their answers were
// there, not when, in between, the server decided; so it keeps two bounds of the
// bucket's level and calls undue only what no order of decisions explains.
//
// The lower bound spends every token as late as it can have been spent, the upper
// one as early; takes that overlap a 429 count against it whole. No level is
// negative, and at a 429 that may be right it was below one token: so a start that
// is not known, and clocks that run apart, are soon forgotten. The requests that
// still matter are those not older than the oldest one in flight; nothing else is
// kept.
//
// It is safe for concurrent use. [Judge.Begin] and [Judge.End] read the clock
// under their lock, so that their order is that of the instants.
type Judge struct {
	now     func() time.Duration
	slowest *Slowest
	rate    int64 // units a nanosecond
	full    int64 // units
	cap     int64

	mu       sync.Mutex
	seq      uint64          // events so far
	low      low             // the takes that have ended, at their ends
	high     high            // the sure takes older than the window, at their beginnings
	window   []*Exchange     // in the order of their beginnings, from the oldest that matters
	lost     int64           // tokens that may yet be spent
	ends     []time.Duration // of late requests that may have held a permit: when their answers came
	dropped  int             // of these, the older ones
	verdicts Verdicts
}

// Exchange is one request from its first byte to its answer.
type Exchange struct {
	began, ended uint64 // place among the user's events; 0: in flight
	begin, end   time.Duration
	kind         Kind
	settled      bool // judged, or nothing to judge
	undue, due   bool
	missing      bool // passed, but the exact limiter would have kept its token

	low  low // bounds of the level when it began, without what overlaps
	high high

	before, during int64 // overlapping takes that began before it; after it
	ends           int   // requests that may have held a permit and had ended when it began
	holders        int64 // requests that may have held a permit while it was in flight
	through        int64 // requests that held or took one from before it until after it

	bounds Bounds
}

// Bounds are what the headers of the answer may say, once it has ended.
func (x *Exchange) Bounds() Bounds { return x.bounds }

// NewJudge is the judge of a user. Rested says that the bucket is known to be full;
// slowest is shared by all judges of a target.
func NewJudge(a oracle.Allowance, rested bool, slowest *Slowest, now func() time.Duration) *Judge {
	j := &Judge{now: now, slowest: slowest, rate: a.RequestsPerMinute, full: a.Burst * token, cap: a.Concurrency}
	j.high.units = j.full
	if rested {
		j.low.units = j.full
	}
	return j
}

// Begin notes that a request is about to be written and says when that was.
func (j *Judge) Begin() (*Exchange, time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now()
	j.seq++
	x := &Exchange{began: j.seq, begin: now, before: j.lost}
	x.low = j.low.until(now, j.rate, j.full)
	x.high = j.high
	for _, w := range j.window {
		if w.ended != 0 {
			x.high = j.cross(x.high, w)
		}
	}
	x.high = x.high.until(now, j.rate, j.full)
	x.holders = j.lost
	x.ends = j.dropped + len(j.ends)
	j.window = append(j.window, x)
	return x, now
}

// End notes the answer and says when it was there. Of a request that left more
// than once, every attempt but the last may spend a token at any time.
func (j *Judge) End(x *Exchange, kind Kind, attempts int) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now()
	j.seq++
	x.ended, x.end, x.kind = j.seq, now, kind
	if kind.takes() && j.above(x) < token {
		x.missing = true
		j.verdicts.Missing++
	}
	for range attempts - 1 {
		j.overlap(x, Lost)
		x.before++
		x.holders++
		j.lost++
	}
	j.overlap(x, kind)
	x.bounds = j.bounds(x)
	j.spend(x)
	j.slowest.note(now - x.begin)
	if kind.mayHold() {
		j.ends = append(j.ends, now)
	}
	if kind != RefusedRate && kind != RefusedConcurrency {
		x.settled = true
	}
	j.settle()
	j.forget(now)
	return now
}

// Verdicts are those reached so far.
func (j *Judge) Verdicts() Verdicts {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.verdicts
}

// cross takes an upper bound past an exchange that has ended.
func (j *Judge) cross(l high, x *Exchange) high {
	l = l.until(x.begin, j.rate, j.full)
	switch {
	case x.kind.takes() && !x.missing:
		l.units -= token
	case x.kind == RefusedRate && !x.undue:
		// Below one token somewhere in the exchange. Takes that began during it
		// may have come before that, and are yet to be subtracted.
		l.units = min(l.units, token-1+x.during*token)
	}
	return l
}

// above is the highest level that can have been met anywhere in the exchange.
func (j *Judge) above(x *Exchange) int64 {
	return x.high.until(x.end, j.rate, j.full).most(j.rate)
}

// left is the highest level that can be left where the exchange ends, once every
// request that overlaps it has had its token: below one token, no other order of
// decisions would have let more of them through.
func (j *Judge) left(x *Exchange) int64 {
	l := j.high
	for _, w := range j.window {
		switch {
		case w.began > x.ended:
		case w.ended < x.began:
			l = j.cross(l, w)
		case w.kind.takes() && !w.missing:
			l = l.until(w.begin, j.rate, j.full)
			l.units -= token
		}
	}
	return l.until(x.end, j.rate, j.full).most(j.rate)
}

// below is the lowest, once all that overlaps the exchange has ended.
func (j *Judge) below(x *Exchange) int64 {
	return x.low.least(j.rate) - (x.before+x.during)*token
}

// overlap tells the exchanges that x overlaps what kind of request x was.
func (j *Judge) overlap(x *Exchange, kind Kind) {
	for _, w := range j.window {
		if w == x || w.ended != 0 && w.ended < x.began {
			continue
		}
		first := x.began < w.began
		switch {
		case !kind.mayTake():
		case first:
			w.before++
		default:
			w.during++
		}
		if kind.mayHold() {
			w.holders++
		}
		if kind == Passed && first && w.ended != 0 {
			w.through++
		}
	}
}

// spend brings the lower bound past the end of x.
func (j *Judge) spend(x *Exchange) {
	switch {
	case x.kind == Lost:
		j.lost++
	case x.kind.mayTake():
		j.low = j.low.until(x.end, j.rate, j.full)
		j.low.units -= token
		if j.low.least(j.rate) < 0 { // no bucket is
			j.low.units, j.low.gain = 0, 0
		}
	}
}

// lingering is how many permits may still have been held when x began though
// their answers were there.
func (j *Judge) lingering(x *Exchange) int64 {
	n, since := int64(0), x.begin-j.slowest.grace()
	for i := x.ends - j.dropped - 1; i >= 0 && j.ends[i] >= since && n < j.cap; i-- {
		n++
	}
	return n
}

// forget lets go of ends that nobody looks back to any more: from the oldest
// request that matters, as many as there are places are looked at, and none that
// is too old.
func (j *Judge) forget(now time.Duration) {
	seen := j.dropped + len(j.ends)
	if len(j.window) > 0 {
		seen = j.window[0].ends
	}
	half, n := (len(j.ends)+1)/2, seen-j.dropped-int(min(j.cap, math.MaxInt32))
	if half > 0 && j.ends[half-1] < now-longestGrace-longestExchange {
		n = max(n, half)
	}
	if n > 0 && n >= half {
		j.ends = append(j.ends[:0], j.ends[n:]...)
		j.dropped += n
	}
}

// settle judges what nothing in flight overlaps any more, then lets go of what
// is older than everything in flight.
func (j *Judge) settle() {
	oldest := j.seq + 1 // the first event of a request in flight
	for _, x := range j.window {
		if x.ended == 0 {
			oldest = x.began
			break
		}
	}
	for _, x := range j.window {
		if x.ended != 0 && !x.settled && x.ended < oldest {
			j.judge(x)
		}
	}
	n := 0
	for n < len(j.window) && j.window[n].settled {
		j.high = j.cross(j.high, j.window[n])
		n++
	}
	if n > 0 {
		rest := copy(j.window, j.window[n:])
		clear(j.window[rest:])
		j.window = j.window[:rest]
	}
}

func (j *Judge) judge(x *Exchange) {
	x.settled = true
	var count *record.Judged
	var undue, due bool
	if x.kind == RefusedRate {
		count = &j.verdicts.Rate
		undue, due = j.below(x) >= token, j.left(x) < token
	} else {
		count = &j.verdicts.Concurrency
		undue, due = x.holders+j.lingering(x) < j.cap, x.through >= j.cap
	}
	switch {
	case undue:
		count.Undue++
		x.undue = true
	case due:
		count.Due++
		x.due = true
	default:
		count.Undecided++
	}
}
