package replay

import (
	"container/heap"
	"iter"

	"github.com/invoicespec/brimline/reports/accesslog"
)

// pools is the attempts of a log, grouped by whose they are.
type pools struct {
	log   *accesslog.Log
	order []uint32 // places in log.Attempts, pool by pool, in order of time within each
	begin []uint32 // of each pool in order; one more for the end of the last
}

// grouped sorts attempts by pool: a stable counting sort.
func grouped(log *accesslog.Log) *pools {
	p := &pools{log: log, order: make([]uint32, len(log.Attempts)), begin: make([]uint32, log.Pools+1)}
	for _, a := range log.Attempts {
		p.begin[a.Pool+1]++
	}
	for i := range log.Pools {
		p.begin[i+1] += p.begin[i]
	}
	next := make([]uint32, log.Pools)
	copy(next, p.begin)
	for i, a := range log.Attempts {
		p.order[next[a.Pool]] = uint32(i)
		next[a.Pool]++
	}
	return p
}

// attempts is how many a pool has.
func (p *pools) attempts(id uint32) uint32 { return p.begin[id+1] - p.begin[id] }

// users is the number of pools that have any.
func (p *pools) users() (n int) {
	for id := range uint32(p.log.Pools) {
		if p.attempts(id) > 0 {
			n++
		}
	}
	return n
}

// rank is the pool's place by attempts, from 1; of two alike the one seen first
// comes first.
func (p *pools) rank(id uint32) int {
	rank := 1
	for other := range uint32(p.log.Pools) {
		n := p.attempts(other)
		if n > p.attempts(id) || (n == p.attempts(id) && other < id) {
			rank++
		}
	}
	return rank
}

// pool is one user's attempts: all of them, and those that no limiter refused
// at the time.
type pool struct {
	id        uint32
	all, kept series
}

// each yields the pools that have attempts. A pool is valid until the next.
func (p *pools) each() iter.Seq[*pool] {
	return func(yield func(*pool) bool) {
		one := &pool{}
		for id := range uint32(p.log.Pools) {
			one.id = id
			one.all.reset(p.log.Holds)
			one.kept.reset(p.log.Holds)
			for _, i := range p.order[p.begin[id]:p.begin[id+1]] {
				a := p.log.Attempts[i]
				one.all.add(a.At, p.log.Holds, i)
				if !a.Refused {
					one.kept.add(a.At, p.log.Holds, i)
				}
			}
			if len(one.all.times) > 0 && !yield(one) {
				return
			}
		}
	}
}

func (s *series) reset(holds []int64) {
	s.times = s.times[:0]
	if holds != nil {
		s.holds = s.holds[:0]
	}
}

func (s *series) add(at int64, holds []int64, i uint32) {
	s.times = append(s.times, at)
	if holds != nil {
		s.holds = append(s.holds, holds[i])
	}
}

// inFlight is the ends of a user's requests in flight, the earliest on top.
type inFlight struct{ ends ends }

// at is how many are in flight at an instant; one that ends at it no longer is.
func (f *inFlight) at(t int64) int64 {
	for len(f.ends) > 0 && f.ends[0] <= t {
		heap.Pop(&f.ends)
	}
	return int64(len(f.ends))
}

func (f *inFlight) add(end int64) { heap.Push(&f.ends, end) }

type ends []int64

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i] < e[j] }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(int64)) }
func (e *ends) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}
