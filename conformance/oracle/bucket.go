package oracle

import (
	"slices"

	"github.com/invoicespec/brimline/conformance/contract"
)

// Bucket is what is known of one user's bucket. It wants one request at a time
// of that user, or [Bucket.JudgeParallel], and nobody else on that user; it is
// not safe for concurrent use.
type Bucket struct {
	was   Allowance // what kept was settled under
	is    Allowance // what the next request is decided under
	kept  kept
	last  Span // in which the latest decision fell
	past  past
	doubt *doubt // nil: none
	vague bool   // nothing is known, not even under which allowance it is settled
	crowd bool   // other requests of the user may be in flight
}

// kept is what is known after a decision that fell somewhere in a span: two
// lines that rise with the rate, one that the level is never below and one that
// it is never above. They are kept by where they are at opposite ends of the
// span, lo at its end and hi at its beginning, so that the width of many spans
// does not add up.
type kept struct{ lo, hi int64 }

// past is what the choice of a clause to blame depends on, and nothing else.
type past struct {
	asked      bool      // a request was judged before
	from       Allowance // the allowance before a change that no answer has shown yet; zero: none
	kind       kind      // of the latest answer
	status     int
	retryAfter contract.Number
	reset      contract.Number
	rejections int64    // rate rejections in a row, up to the latest answer
	fullRun    bool     // no rate rejection since the bucket was certainly full
	promised   bool     // that full bucket was there since a RateLimit-Reset had said so
	sure       int64    // units that are there though nothing has come back since an answer last confirmed the level
	slow       bool     // what had to come back did not, once
	blamed     []string // the clauses that were broken so far
	liars      []string // the headers that were wrong by themselves
}

// lies reports whether a header was found to be wrong by itself: Remaining and
// Reset of one answer told of different levels, and one of them was right.
func (p past) lies(header string) bool { return slices.Contains(p.liars, header) }

// late reports whether nothing worse than late tokens was found so far.
func (p past) late() bool {
	return slices.Contains(p.blamed, "RATE-2") && !slices.Contains(p.blamed, "RATE-4")
}

// NewFull is the bucket of a user who is known to be rested.
func NewFull(a Allowance) *Bucket {
	return &Bucket{was: a, is: a, kept: kept{a.full(), a.full()}, past: past{fullRun: true, sure: a.full()}}
}

// NewUnknown is the bucket of a user of whom nothing is known up to an instant.
func NewUnknown(a Allowance, instant int64) *Bucket {
	return &Bucket{was: a, is: a, kept: kept{0, a.full()}, last: Span{instant, instant}, past: past{asked: true}}
}

// Alone says that nothing of the user is in flight, so that no cap can be full: a
// 429 that names no cause is one of the bucket. It holds until the oracle is told
// of a request that may go on beside the next one: one that was seen in flight,
// one of several at once, one whose answer was lost or tells of work that failed.
func (b *Bucket) Alone() { b.crowd = false }

// Late reports whether what had to come back to the bucket once did not.
func (b *Bucket) Late() bool { return b.past.slow }

// Allowance is what the user's next request is decided under.
func (b *Bucket) Allowance() Allowance { return b.is }

// Change puts the user on another allowance from the next request on: time until
// then is paid at the old rate and the share of the burst is kept (CHG-1 to
// CHG-3). Of several changes between two requests the last one counts.
func (b *Bucket) Change(a Allowance) {
	b.is, b.past.from = a, Allowance{}
	if a != b.was {
		b.past.from, b.past.fullRun = b.was, false
	}
}

// Level is the range of units held when the last answer was complete.
func (b *Bucket) Level() (lo, hi int64) {
	return b.kept.lo, min(b.was.full(), b.kept.hi+gain(b.was.RequestsPerMinute, b.last.To-b.last.From))
}

// LevelAt is the range of units held at an instant not before the last answer,
// under the allowance of the next request.
func (b *Bucket) LevelAt(instant int64) (lo, hi int64) {
	l, _ := b.at(Span{instant, instant})
	return l.lo, l.hi
}

// Width is how far apart the two ends of [Bucket.Level] are.
func (b *Bucket) Width() int64 {
	lo, hi := b.Level()
	return hi - lo
}

// WaitFor is the microseconds after the last answer until so many tokens are
// certainly there for the next request. More than the burst are never there:
// then it is the time until the bucket is full.
func (b *Bucket) WaitFor(tokens int64) int64 {
	want := unscaled(min(tokens, b.is.Burst)*Token, b.is.Burst, b.was.Burst)
	return max(0, roundUp(want-b.kept.lo, b.was.RequestsPerMinute))
}

// ReadyAt is the instant at which [Bucket.WaitFor] is over. A bucket to which once
// did not come back what had to is given the time that it asks for as well.
func (b *Bucket) ReadyAt(tokens int64) int64 {
	wait := b.WaitFor(tokens)
	most := 2*roundUp(b.is.full(), b.is.perSecond()) + 60
	if n := b.past.reset; wait > 0 && b.past.slow && n.State == contract.Good && n.Value+n.Slack <= most {
		wait = max(wait, (n.Value+n.Slack)*1_000_000)
	}
	return b.last.To + wait
}

// ShortOf is the longest time, in microseconds after the last answer, at which
// so many tokens are certainly not there yet; false: they may be there already.
func (b *Bucket) ShortOf(tokens int64) (int64, bool) {
	want := unscaled(tokens*Token, b.is.Burst, b.was.Burst)
	_, hi := b.Level()
	if hi >= want {
		return 0, false
	}
	return (want - 1 - hi) / b.was.RequestsPerMinute, true
}

// SpentBy is how many tokens have certainly been spent since the latest answer
// that was judged, given an answer that was not: its own among them.
func (b *Bucket) SpentBy(a contract.Answer, s Span) int64 {
	if a.Remaining.State != contract.Good {
		return 0
	}
	met, _ := b.at(s)
	return max(0, roundUp(met.lo-(a.Remaining.Value+1)*Token+1, Token))
}

// Narrow takes in what an answer says is left, of requests that were judged
// together the one that is known to have been decided last.
func (b *Bucket) Narrow(a contract.Answer, s Span) {
	if a.Remaining.State != contract.Good || s.To != b.last.To || s.From < b.last.From {
		return
	}
	most := b.kept.hi + gain(b.was.RequestsPerMinute, s.From-b.last.From)
	b.kept = kept{max(b.kept.lo, a.Remaining.Value*Token), min(most, (a.Remaining.Value+1)*Token-1)}
	b.last = s
}

// LevelWidth is how far apart the ends of the level are with which a request is
// decided somewhere in s.
func (b *Bucket) LevelWidth(s Span) int64 {
	met, _ := b.at(s)
	return met.hi - met.lo
}

// Lose takes in a request that got no answer: its token may be spent or not, but
// not later than at the end of s. If it was the first one after a change, nothing
// is known of the bucket until the next answer, however long one waits.
func (b *Bucket) Lose(s Span) {
	before, k := b.at(s)
	vague := b.vague || b.is != b.was // a change may have reached the bucket or not
	if before.hi >= Token {
		k.lo = max(k.lo, Token) - Token
	}
	if vague {
		k = kept{0, b.is.full()}
	}
	b.settle(s, k)
	b.forget(1)
	b.vague, b.crowd = vague, true
}

// Forget says that nothing is known of the bucket at an instant, whatever was known
// before: its limiter may have begun anew.
func (b *Bucket) Forget(instant int64) {
	vague := b.vague || b.is != b.was
	b.settle(Span{instant, instant}, kept{0, b.is.full()})
	b.forget(b.is.Burst)
	b.past.fullRun, b.vague = false, vague
}

// forget drops what requests of unknown outcome make worthless: so many may have
// spent a token.
func (b *Bucket) forget(spent int64) {
	p := b.past
	b.past = past{asked: true, from: p.from, kind: unclear, fullRun: p.fullRun, sure: max(0, p.sure-spent*Token), slow: p.slow, blamed: p.blamed, liars: p.liars}
	b.doubt = nil
}

// at is the range of levels with which a request is decided somewhere in s, and
// what is kept of it if the request takes nothing.
func (b *Bucket) at(s Span) (levels, kept) { return b.from(b.kept, s) }

// from is at for something else than what is kept.
func (b *Bucket) from(k kept, s Span) (levels, kept) {
	full := b.was.full()
	lo := func(instant int64) int64 {
		return min(full, max(0, k.lo+gain(b.was.RequestsPerMinute, instant-b.last.To)))
	}
	hi := func(instant int64) int64 {
		return min(full, k.hi+gain(b.was.RequestsPerMinute, instant-b.last.From))
	}
	met := levels{lo(s.From), hi(s.To)}
	switch {
	case b.vague:
		return levels{0, b.is.full()}, kept{0, b.is.full()}
	case b.is == b.was:
		return met, kept{lo(s.To), hi(s.From)}
	}
	// The change bends both lines somewhere in s: keep what is right for any bend.
	met = levels{scaled(met.lo, b.is.Burst, b.was.Burst), scaled(met.hi, b.is.Burst, b.was.Burst)}
	return met, kept(met)
}

// elapsed is the least and the most time between the last decision and one in s.
func (b *Bucket) elapsed(s Span) (least, most int64) {
	return max(0, s.From-b.last.To), max(0, s.To-b.last.From)
}

// settle takes over what is known after a request that was decided in s.
func (b *Bucket) settle(s Span, k kept) {
	if b.is != b.was {
		b.past.sure = 0
	}
	b.was, b.kept, b.last, b.vague = b.is, k, s, false
}
