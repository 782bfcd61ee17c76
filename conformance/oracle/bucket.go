package oracle

import "github.com/invoicespec/brimline/conformance/contract"

// Bucket is what is known of one user's bucket. It wants one request at a time
// of that user, and nobody else on that user; it is not safe for concurrent use.
type Bucket struct {
	allowance Allowance
	lo, hi    int64
}

// NewFull is the bucket of a user who is known to be rested.
func NewFull(a Allowance) *Bucket {
	return &Bucket{allowance: a, lo: a.Burst * Token, hi: a.Burst * Token}
}

// NewUnknown is the bucket of a user whose past is not known.
func NewUnknown(a Allowance) *Bucket { return &Bucket{allowance: a, hi: a.Burst * Token} }

// Allowance is what the user's next request is decided under.
func (b *Bucket) Allowance() Allowance { return b.allowance }

// Judge takes in one answer and says which clauses it breaks. A concurrency
// rejection, a 4xx and a 5xx of the engine have spent a token like a success; a
// 401 and a configuration failure (503) have not.
func (b *Bucket) Judge(a contract.Answer, s Span) []Finding { return nil }

// JudgeParallel takes in simultaneous requests, of which only the bounds are
// known: no more tokens were spent than the bucket can have held and gained from
// the first send to the last answer, and none was refused while one was
// certainly there (RATE-9). It returns one claim per sample still in flight, in
// their order.
func (b *Bucket) JudgeParallel(samples []Sample) ([]Claim, []Finding) { return nil, nil }

// Spend takes in a request that was seen to be in flight, so its token is spent
// although its answer is still to come.
func (b *Bucket) Spend(s Span) (Claim, []Finding) { return Claim{}, nil }

// Lose takes in a request that got no answer: its token may be spent or not.
func (b *Bucket) Lose(s Span) {}

// Change puts the user on another allowance from the next request on: time until
// then is paid at the old rate and the share of the burst is kept (CHG-1 to
// CHG-3). Of several changes between two requests the last one counts.
func (b *Bucket) Change(a Allowance) {}

// Level is the range of units held after the last answer.
func (b *Bucket) Level() (lo, hi int64) { return b.lo, b.hi }

// LevelAt is the range of units held at an instant not before the last answer,
// under the allowance of the next request.
func (b *Bucket) LevelAt(instant int64) (lo, hi int64) { return b.lo, b.hi }

// Width is hi - lo of [Bucket.Level].
func (b *Bucket) Width() int64 { return b.hi - b.lo }

// WaitFor is the microseconds after the last answer until so many tokens are
// certainly there, at most the burst.
func (b *Bucket) WaitFor(tokens int64) int64 { return 0 }

// ShortOf is the longest wait, in microseconds after the last answer, for which
// so many tokens are certainly not there yet; false: they may be there now.
func (b *Bucket) ShortOf(tokens int64) (int64, bool) { return 0, false }
