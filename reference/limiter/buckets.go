package limiter

import (
	"hash/maphash"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/invoicespec/brimline/reference/bucket"
)

// The bounds that apply where a [Config] says nothing else.
const (
	DefaultMaximumSize = 100_000
	DefaultIdleExpiry  = 15 * time.Minute
)

// Config bounds the memory of [Buckets]. A field that is not positive takes its
// default, so that no configuration is unbounded; whoever reads one from a file
// refuses such a value by name.
type Config struct {
	MaximumSize int           // most buckets kept
	IdleExpiry  time.Duration // least time a bucket is kept after its last use
}

// Buckets is a bounded store of bucket states (CACHE-1, CACHE-2). A bucket that
// was not used for the idle expiry and has filled up again is dropped: it says
// nothing that a new one would not say. Only the maximum size makes it drop one
// that is not full; it then takes, of those it looks at, the one that will be
// full first, and counts it as lossy.
//
// It has no clock: the states themselves say when they were last used.
type Buckets struct {
	maximum int64
	idle    time.Duration
	seed    maphash.Seed
	shards  []shard

	size      atomic.Int64
	evictions atomic.Uint64
	lossy     atomic.Uint64
}

type shard struct {
	mu      sync.Mutex
	states  map[string]*bucket.State
	dropped int // from states, since that was made
	swept   bucket.Instant
	_       [32]byte // a cache line of its own
}

// A shard is worth its lock only when many subjects share it, and a store so
// small that it has one shard chooses its victims among all of them. A sweep
// holds the lock of one shard, which therefore stays small; so many subjects fill
// a map of 2,048 places well.
const (
	maxShards      = 1024
	subjectsAShard = 1500
)

// looks is how many buckets a forced eviction looks at. It bounds the time under
// the lock; see BenchmarkFlood.
const looks = 64

// NewBuckets returns an empty store.
func NewBuckets(cfg Config) *Buckets {
	if cfg.MaximumSize <= 0 {
		cfg.MaximumSize = DefaultMaximumSize
	}
	if cfg.IdleExpiry <= 0 {
		cfg.IdleExpiry = DefaultIdleExpiry
	}
	b := &Buckets{
		maximum: int64(cfg.MaximumSize),
		idle:    cfg.IdleExpiry,
		seed:    maphash.MakeSeed(),
		shards:  make([]shard, min(max(cfg.MaximumSize/subjectsAShard, 1), maxShards)),
	}
	for i := range b.shards {
		b.shards[i].states = map[string]*bucket.State{}
	}
	return b
}

// Update replaces the state of subject's bucket by what f makes of it, as one
// atomic step: no other update of the subject happens meanwhile. f gets the zero
// state for a bucket that is not known; a zero state returned is not kept. f
// must be quick and must not call the store.
func (b *Buckets) Update(subject string, f func(bucket.State) bucket.State) {
	sh := &b.shards[maphash.String(b.seed, subject)%uint64(len(b.shards))]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	kept, known := sh.states[subject]
	var state bucket.State
	if known {
		state = *kept
	}
	state = f(state)
	switch {
	case known && state == bucket.State{}:
		sh.drop(subject)
		b.size.Add(-1)
	case known:
		*kept = state
	case state != bucket.State{} && (b.place() || b.evictOne(sh, state.At)):
		newcomer := state // of its own, so that only a newcomer costs an allocation
		sh.states[subject] = &newcomer
	}
	if elapsed(sh.swept, state.At) >= b.idle {
		b.sweep(sh, state.At)
	}
	sh.compact()
}

// place takes one of the places left, if there is one.
func (b *Buckets) place() bool {
	for {
		n := b.size.Load()
		if n >= b.maximum {
			return false
		}
		if b.size.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// evictOne drops a bucket of sh to pass its place on: the first full one it
// meets, or the one that will be full soonest. It requires that sh.mu is held.
func (b *Buckets) evictOne(sh *shard, now bucket.Instant) bool {
	victim, wait, looked := "", int64(0), 0
	for subject, s := range sh.states {
		if w := s.ToFull(now); looked == 0 || w < wait {
			victim, wait = subject, w
		}
		if looked++; wait == 0 || looked == looks {
			break
		}
	}
	if looked == 0 {
		b.lossy.Add(1) // the newcomer itself
		b.evictions.Add(1)
		return false
	}
	sh.drop(victim)
	b.evictions.Add(1)
	if wait > 0 {
		b.lossy.Add(1)
	}
	return true
}

// Sweep drops every bucket that has been idle for long enough at now and is
// full. Updates sweep by themselves the part they touch, once per idle expiry;
// calling it is for those who want the memory or the size at once.
func (b *Buckets) Sweep(now bucket.Instant) {
	for i := range b.shards {
		sh := &b.shards[i]
		sh.mu.Lock()
		b.sweep(sh, now)
		sh.mu.Unlock()
	}
}

// sweep requires that sh.mu is held.
func (b *Buckets) sweep(sh *shard, now bucket.Instant) {
	sh.swept = now
	before := len(sh.states)
	for subject, s := range sh.states {
		if elapsed(s.At, now) >= b.idle && s.ToFull(now) == 0 {
			sh.drop(subject)
		}
	}
	dropped := before - len(sh.states)
	b.size.Add(-int64(dropped))
	b.evictions.Add(uint64(dropped))
	sh.compact()
}

// drop and compact require that sh.mu is held.
func (sh *shard) drop(subject string) {
	delete(sh.states, subject)
	sh.dropped++
}

// compact makes the map anew once more was dropped from it than is left: a map
// keeps the memory of its largest size, and grows by being changed.
func (sh *shard) compact() {
	if sh.dropped <= max(len(sh.states), looks) {
		return
	}
	kept := make(map[string]*bucket.State, len(sh.states))
	maps.Copy(kept, sh.states)
	sh.states, sh.dropped = kept, 0
}

// elapsed is the time from one instant to a later one; it is not positive where
// the second is not later, and huge where it does not fit.
func elapsed(from, to bucket.Instant) time.Duration {
	if to <= from {
		return 0
	}
	micros := uint64(to) - uint64(from)
	return time.Duration(min(micros, math.MaxInt64/1000)) * time.Microsecond
}

// Stats says how full a store is, and what it has dropped.
type Stats struct {
	Size      int    // buckets kept
	Maximum   int    // most that are ever kept
	Evictions uint64 // buckets dropped so far
	Lossy     uint64 // those of them that were not full: their subject got tokens it had spent
}

// Stats returns the figures as they are now.
func (b *Buckets) Stats() Stats {
	return Stats{
		Size:      int(b.size.Load()),
		Maximum:   int(b.maximum),
		Evictions: b.evictions.Load(),
		Lossy:     b.lossy.Load(),
	}
}
