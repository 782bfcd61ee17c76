package measure

import (
	"math/bits"
	"net/http"
	"strconv"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reports/record"
)

// Headers are those that say what the bucket holds, as they came.
type Headers struct {
	carried                             bool // the answer has to carry them
	instant                             bool // Reset is no count of seconds, so it is not held against any
	limit, remaining, reset, retryAfter number
}

// number is a header that has to be a plain non-negative decimal integer (HDR-8).
type number struct {
	state contract.State
	value int64
}

func (r *Reader) headers(h http.Header) Headers {
	return Headers{
		carried: true, instant: r.wording.Reset != contract.ResetSeconds,
		limit: readNumber(h[r.limit]), remaining: readNumber(h[r.remaining]),
		reset: readNumber(h[r.reset]), retryAfter: readNumber(h[r.retryAfter]),
	}
}

func readNumber(lines []string) number {
	switch len(lines) {
	case 0:
		return number{}
	case 1:
	default:
		return number{state: contract.Doubled}
	}
	line := lines[0]
	for i := range len(line) {
		if line[i] < '0' || line[i] > '9' {
			return number{state: contract.Malformed} // ParseInt would take a sign
		}
	}
	v, err := strconv.ParseInt(line, 10, 64)
	if err != nil {
		return number{state: contract.Malformed}
	}
	return number{contract.Good, v}
}

// Bounds are what the headers of an answer may say, by the level of the bucket:
// each from the least to the most that no order of decisions goes beyond.
type Bounds struct {
	known            bool // the level is; else only the form can be wrong
	burst            int64
	remaining, reset [2]int64
	wait             [2]int64 // of a 429 for lack of a token
	refused          bool     // it is one
}

// Faults are what is wrong with the headers of one answer.
type Faults uint32

// The faults, one bit each, in the order of [faultNames].
const (
	noLimit Faults = 1 << iota
	noRemaining
	noReset
	noRetryAfter
	oddLimit
	oddRemaining
	oddReset
	oddRetryAfter
	wrongLimit
	highRemaining
	lowRemaining
	longReset
	shortReset
	zeroRetryAfter
	longRetryAfter
	shortRetryAfter
	allFaults = iota
)

func faultNames() [allFaults]string {
	return [...]string{
		"no RateLimit-Limit", "no RateLimit-Remaining", "no RateLimit-Reset", "no Retry-After",
		"RateLimit-Limit no single integer", "RateLimit-Remaining no single integer", "RateLimit-Reset no single integer", "Retry-After no single integer",
		"RateLimit-Limit not the burst", "RateLimit-Remaining too high", "RateLimit-Remaining too low",
		"RateLimit-Reset too long", "RateLimit-Reset too short", "Retry-After 0", "Retry-After too long", "Retry-After too short",
	}
}

// Against holds the headers against what they may say (HDR-1 to HDR-5 and HDR-8).
func (h Headers) Against(b Bounds) Faults {
	if !h.carried {
		return 0
	}
	f := h.limit.form(noLimit, oddLimit) | h.remaining.form(noRemaining, oddRemaining)
	if h.limit.state == contract.Good && h.limit.value != b.burst {
		f |= wrongLimit
	}
	zero := b.refused && h.retryAfter == (number{contract.Good, 0})
	switch {
	case !h.instant:
		f |= h.reset.form(noReset, oddReset)
	case h.reset.state == contract.Absent:
		f |= noReset
	}
	switch {
	case zero:
		f |= zeroRetryAfter
	case b.refused:
		f |= h.retryAfter.form(noRetryAfter, oddRetryAfter)
	}
	if !b.known {
		return f
	}
	f |= h.remaining.within(b.remaining, lowRemaining, highRemaining)
	if !h.instant {
		f |= h.reset.within(b.reset, shortReset, longReset)
	}
	if b.refused && !zero {
		f |= h.retryAfter.within(b.wait, shortRetryAfter, longRetryAfter)
	}
	return f
}

func (n number) form(absent, odd Faults) Faults {
	switch n.state {
	case contract.Good:
		return 0
	case contract.Absent:
		return absent
	}
	return odd
}

func (n number) within(b [2]int64, below, above Faults) Faults {
	switch {
	case n.state != contract.Good:
		return 0
	case n.value < b[0]:
		return below
	case n.value > b[1]:
		return above
	}
	return 0
}

// bounds are what the headers of an exchange may say. The caller has the lock, and
// the exchange has just ended: what else is in flight may have taken a token each
// already. (No transport of ours sends again what a server may have looked at.)
func (j *Judge) bounds(x *Exchange) Bounds {
	b := Bounds{burst: j.full / token}
	taken := x.before + x.during
	for _, w := range j.window {
		if w.ended == 0 {
			taken++
		}
	}
	least, most := max(0, x.low.least(j.rate)-taken*token), min(j.full, j.above(x))
	switch {
	case x.kind == RefusedRate:
		b.refused, b.known = true, least < token // else it is undue
		most = min(most, token-1)
		b.wait = [2]int64{max(1, j.seconds(token-most)), j.seconds(token - least)}
	case x.kind.takes():
		b.known = most >= token // else it is missing
		least, most = max(least, token)-token, most-token
	}
	b.known = b.known && least <= most
	b.remaining = [2]int64{least / token, most / token}
	b.reset = [2]int64{j.seconds(j.full - most), j.seconds(j.full - least)}
	return b
}

// seconds is how long so many units take to come in, rounded up.
func (j *Judge) seconds(units int64) int64 {
	a := j.rate * 1_000_000_000
	return (units + a - 1) / a
}

// faultCounts is how many answers of a plan had each fault.
type faultCounts [allFaults]int64

func (c *faultCounts) add(f Faults) {
	for ; f != 0; f &= f - 1 {
		c[bits.TrailingZeros32(uint32(f))]++
	}
}

func (c *faultCounts) named() (list []record.Count) {
	names := faultNames()
	for i, n := range c {
		if n > 0 {
			list = append(list, record.Count{Name: names[i], N: n})
		}
	}
	return list
}
