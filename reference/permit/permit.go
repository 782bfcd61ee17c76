// Package permit is the table of requests in flight: how many slots each subject
// holds, and by which request ids. It carries out CONC-1, CONC-6, PERMIT-8,
// CHG-4 and the permit half of CACHE-2.
//
// A subject has an entry only while it has something in flight, so the table is
// never larger than what is in flight now and needs no eviction that could lose
// a permit. Nothing here waits: a slot is there, or it is refused.
package permit

import (
	"hash/maphash"
	"sync"
)

// Table holds the permits of one limiter. Make one with [New].
type Table struct {
	seed   maphash.Seed
	shards [64]shard
}

type shard struct {
	mu       sync.Mutex
	inFlight map[string]int64
	held     map[permit]struct{}
	_        [40]byte // a cache line of its own
}

// permit is one slot: a request is known by its subject and id together, so an
// id never frees another subject's slot.
type permit struct{ subject, id string }

// New returns an empty table.
func New() *Table {
	t := &Table{seed: maphash.MakeSeed()}
	for i := range t.shards {
		t.shards[i].inFlight = map[string]int64{}
		t.shards[i].held = map[permit]struct{}{}
	}
	return t
}

// Take takes a slot for request id of subject unless limit slots or more are
// taken already; a limit lower than what is in flight refuses and does not
// wait. An id of the subject that is in flight already is refused as well:
// counting it twice would leave a slot that its one release cannot free, and
// counting it once would let two requests share a slot.
//
// It returns the subject's requests in flight before this one, and whether the
// slot was taken. A refusal with inFlight below limit is a doubled id.
func (t *Table) Take(subject, id string, limit int64) (inFlight int64, ok bool) {
	s := t.shard(subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	inFlight = s.inFlight[subject]
	if inFlight >= limit {
		return inFlight, false
	}
	p := permit{subject: subject, id: id}
	if _, doubled := s.held[p]; doubled {
		return inFlight, false
	}
	s.held[p] = struct{}{}
	s.inFlight[subject] = inFlight + 1
	return inFlight, true
}

// Release gives back the slot that subject's request id holds. It reports false,
// and changes nothing, when that request holds none: it never took one, or it
// gave it back before.
func (t *Table) Release(subject, id string) bool {
	s := t.shard(subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	p := permit{subject: subject, id: id}
	if _, ok := s.held[p]; !ok {
		return false
	}
	delete(s.held, p)
	if n := s.inFlight[subject]; n > 1 {
		s.inFlight[subject] = n - 1
	} else {
		delete(s.inFlight, subject)
	}
	return true
}

// InFlight is the slots that subject holds.
func (t *Table) InFlight(subject string) int64 {
	s := t.shard(subject)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inFlight[subject]
}

// Subjects is how many subjects have something in flight.
func (t *Table) Subjects() int {
	n := 0
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += len(s.inFlight)
		s.mu.Unlock()
	}
	return n
}

func (t *Table) shard(subject string) *shard {
	return &t.shards[maphash.String(t.seed, subject)%uint64(len(t.shards))]
}
