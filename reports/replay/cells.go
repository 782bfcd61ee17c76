package replay

import (
	"math"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/bucket"
)

// cells decides each attempt on a plan under every allowance that is asked of the
// plan. A user who comes to it brings the bucket that today's allowances left,
// in proportion, and what is in flight.
type cells struct {
	grids []*grid // by plan
	rows  ledger[row]
}

// row is one user's buckets on one plan.
type row struct {
	at                int64
	levels            []int64  // by bucket
	rate              []uint32 // rejected, by bucket
	concurrency       []uint32 // rejected, by capped setting
	flying            []inFlight
	meters            []meter // by rate
	attempts, refused uint32
}

func newCells(t Traffic, grids []*grid) *cells {
	n := workers()
	return &cells{grids: grids, rows: newLedger[row](len(grids), (t.Roster.Users+n-1)/n)}
}

func (c *cells) take(v *visit) {
	g := c.grids[v.plan]
	if v.override {
		return
	}
	r, fresh := c.rows.at(v)
	if fresh {
		r.levels, r.rate = make([]int64, len(g.buckets)), make([]uint32, len(g.buckets))
		if n := g.caps(); n > 0 {
			r.concurrency, r.flying = make([]uint32, n), make([]inFlight, n)
		}
		r.meters = make([]meter, len(g.rates))
	}
	r.attempts++
	if v.Refused() {
		r.refused++
	}
	if v.moved || v.fresh {
		for i := range r.flying {
			r.flying[i] = v.flying.copy()
		}
		for i := range r.meters {
			r.meters[i].level = 0
		}
	}
	for i := range r.meters {
		r.meters[i].add(g.rates[i], since(r.at, v.At))
	}
	now := bucket.Instant(v.At)
	for i := range g.buckets {
		b := &g.buckets[i]
		before := v.before
		if !v.moved && !v.fresh {
			before = bucket.State{Level: r.levels[i], At: bucket.Instant(r.at), Rate: b.plain.RequestsPerMinute(), Burst: b.plain.Burst()}
		}
		state, taken := before.Take(b.plain, now) // all that there is to decide without a cap
		r.levels[i] = state.Level
		if !taken {
			r.rate[i]++
			continue
		}
		for j := range b.capped {
			r.place(&b.capped[j], before, v)
		}
	}
	r.at = v.At
}

// place decides about a place in flight, once the token is there.
func (r *row) place(s *setting, before bucket.State, v *visit) {
	flying := &r.flying[s.place]
	_, d := admission.Decide(before, flying.at(v.At), s.Allowance, bucket.Instant(v.At))
	if d.Outcome == admission.ConcurrencyRejected {
		r.concurrency[s.place]++
		return
	}
	flying.add(v.At, v.Hold)
}

// outcome is what became of the user's attempts under a setting.
func (r *row) outcome(s setting) outcome {
	o := outcome{attempts: int64(r.attempts), rate: int64(r.rate[s.bucket])}
	if s.capped {
		o.concurrency = int64(r.concurrency[s.place])
	}
	return o
}

// since is the time from a to b, as far as it can be told.
func since(a, b int64) int64 {
	if b <= a {
		return 0
	}
	return int64(min(uint64(b)-uint64(a), math.MaxInt64))
}
