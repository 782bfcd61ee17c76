package target

import (
	"fmt"
	"sync"
)

// budget counts the operations that the target can have charged.
type budget struct {
	most int64

	mu      sync.Mutex
	charged int64
}

// reserve is called before a request that may be charged.
func (b *budget) reserve() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.charged >= b.most {
		return fmt.Errorf("%w: %d", ErrBudget, b.most)
	}
	b.charged++
	return nil
}

// giveBack is called when an answer shows that nothing was to be charged.
func (b *budget) giveBack() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.charged--
}

// MaxOperations is how many operations may be charged.
func (t *Target) MaxOperations() int64 { return t.budget.most }

// BoundsOperations reports whether the target file says how many.
func (t *Target) BoundsOperations() bool { return t.file.Limits.MaxOperations != 0 }

// Sent is how many requests have left so far.
func (t *Target) Sent() int64 { return t.sent.Load() }

// Charged is how many operations the target can have charged so far, at most: a
// success, and whatever got no answer, may have been.
func (t *Target) Charged() int64 {
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	return t.budget.charged
}
