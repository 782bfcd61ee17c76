package oracle

import (
	"fmt"
	"net/http"

	"github.com/invoicespec/brimline/conformance/contract"
)

// Attempts is what is known of the pool of one client address, on which requests
// draw that do not authenticate (ANON-1). Their answers have no headers to learn
// from, only whether they were let through. It wants one attempt at a time; those
// that authenticate leave the pool as it was.
type Attempts struct{ pool *Bucket }

// NewRestedAttempts is the pool of an address that nobody has tried anything from.
func NewRestedAttempts(a Allowance) *Attempts { return &Attempts{NewFull(a)} }

// NewUnknownAttempts is a pool of which nothing is known up to an instant.
func NewUnknownAttempts(a Allowance, instant int64) *Attempts {
	return &Attempts{NewUnknown(a, instant)}
}

// Allowance is what one address may try.
func (t *Attempts) Allowance() Allowance { return t.pool.Allowance() }

// Judge takes in the answer to one attempt. A rejection for want of a place has
// spent nothing, a 401 has spent one token, and anything else may have: what a
// good key took is given back.
func (t *Attempts) Judge(a contract.Answer, s Span) []Finding {
	before, left := t.pool.at(s)
	code := a.Body.ErrorCode.Value
	switch {
	case a.Status != http.StatusTooManyRequests:
		if before.spent().empty() {
			t.pool.settle(s, kept{0, t.pool.is.full() - Token})
			return []Finding{{Clause: "ANON-1", Field: "status", Expected: "429 RATE_LIMIT_EXCEEDED", Ground: t.held(before),
				Got: fmt.Sprint(a.SaidStatus()), Consequence: "keys can be guessed faster than one address may try"}}
		}
		after := left.spent()
		if a.Status != http.StatusUnauthorized {
			after.hi = left.hi
		}
		t.pool.settle(s, after)
	case code == contract.CodeConcurrencyLimited:
		t.pool.settle(s, left)
	case before.short().empty():
		t.pool.settle(s, kept{0, Token - 1})
		return []Finding{{Clause: "ANON-1", Field: "status", Expected: "no rejection", Ground: t.held(before),
			Got: statusAndCode(a), Consequence: "an address gets fewer attempts than it may have", Short: true}}
	default:
		t.pool.settle(s, left.short())
	}
	return nil
}

// held is what the pool held, for people.
func (t *Attempts) held(l levels) string {
	return fmt.Sprintf("the address's pool held %s, %d a minute", l, t.pool.is.RequestsPerMinute)
}

// Lose takes in an attempt that got no answer.
func (t *Attempts) Lose(s Span) { t.pool.Lose(s) }

// Forget says that nothing is known of the pool at an instant.
func (t *Attempts) Forget(instant int64) { t.pool.Forget(instant) }

// ReadyAt is the instant from which so many attempts, or the whole burst if that
// is less, are certainly let through.
func (t *Attempts) ReadyAt(n int64) int64 { return t.pool.ReadyAt(n) }

// Empty reports whether no attempt can be let through at an instant not before
// the last answer.
func (t *Attempts) Empty(instant int64) bool {
	_, hi := t.pool.LevelAt(instant)
	return hi < Token
}
