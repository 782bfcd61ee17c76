package target

import (
	"fmt"
	"sync/atomic"
)

// silence counts the requests in a row that got no answer at all, whoever sent
// them. A server that is up and whose API never answers is away as much as one that
// nobody can connect to; each request would tell so after a minute and a half.
type silence struct{ n atomic.Int64 }

// mostSilent is how many of them say that the target is away.
const mostSilent = 3

// heard takes in how a request ended: whether anything came back, and whether it
// was waited for.
func (s *silence) heard(answered, waited bool) {
	switch {
	case answered:
		s.n.Store(0)
	case waited:
		s.n.Add(1)
	}
}

// away is the error of whoever is about to send one more.
func (s *silence) away() error {
	if n := s.n.Load(); n >= mostSilent {
		return fmt.Errorf("%w: %d requests in a row got no answer", ErrAway, n)
	}
	return nil
}

// Unanswered is how many of the latest requests, in a row, got no answer.
func (t *Target) Unanswered() int64 { return t.silence.n.Load() }
