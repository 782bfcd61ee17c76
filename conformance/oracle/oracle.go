// Package oracle judges the answers of a rate limiter without knowing when,
// inside a round trip, the limiter decided. It keeps the interval of levels that
// a user's bucket can have and accepts exactly the answers that some level in it
// explains: no sleep, no tolerance, no retry.
//
// It carries out RATE-1 to RATE-10, HDR-1 to HDR-9, CONC-2, CONC-3 and CHG-1 to
// CHG-3. It knows no clock and no HTTP: most callers make a [Bucket] with
// [NewFull] and hand every answer to [Bucket.Judge], with the [Span] in which it
// was decided. A slow network widens the interval, which weakens the judgment
// and never makes it wrong; [Bucket.Width] says how wide it is.
//
// The arithmetic is its own, in arbitrary-precision integers, so that a mistake
// of a limiter is not repeated here.
package oracle

import "github.com/invoicespec/brimline/conformance/contract"

// Token is one token in units; every microsecond adds requests/minute units.
const Token int64 = 60_000_000

// Allowance is what a user may do. All three are positive.
type Allowance struct {
	RequestsPerMinute int64
	Burst             int64
	Concurrency       int64
}

// Span is where on the deployment's timeline, in microseconds, a decision fell:
// not before From, not after To. On a clock that stands still both are equal.
type Span struct {
	From, To int64
}

// Finding is one observation that no level of the bucket explains.
type Finding struct {
	Clause      string   // the clause that is broken
	Also        []string // clauses that the same observation breaks as well
	Field       string   // what was looked at: a header name, "status", "errorCode" or "tokens"
	Expected    string   // the value or range that would have been right
	Ground      string   // why: what the bucket held
	Got         string   // what came
	Consequence string   // what it does to a client; may be empty
	Short       bool     // the bucket gives less than it should, or now what it held back: what comes back may not come in time
}

// Sample is one of several simultaneous requests. Answer is nil for one that has
// spent its token and is still in flight.
type Sample struct {
	Answer *contract.Answer
	Span   Span
}

// Claim is a token whose spending was witnessed before its answer came.
type Claim struct {
	judge func(contract.Answer) []Finding
}

// Judge judges the answer once it is there: its headers describe the bucket as
// it was when the token was spent.
func (c Claim) Judge(a contract.Answer) []Finding { return c.judge(a) }
