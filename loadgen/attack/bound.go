package attack

import (
	"math"
	"time"
)

// bound lets no more than so many requests go in any second, however late or
// bunched they have become: a ring of when the latest of them went. The zero value
// is no bound.
type bound struct {
	went []time.Duration
	at   int // of the oldest
}

func newBound(perSecond int64) bound {
	b := bound{went: make([]time.Duration, perSecond)}
	for i := range b.went {
		b.went[i] = math.MinInt64 / 2
	}
	return b
}

// next is when one more may go.
func (b *bound) next() time.Duration {
	if len(b.went) == 0 {
		return math.MinInt64
	}
	return b.went[b.at] + time.Second
}

// take notes that one goes now.
func (b *bound) take(now time.Duration) {
	if len(b.went) > 0 {
		b.went[b.at] = now
		b.at = (b.at + 1) % len(b.went)
	}
}
