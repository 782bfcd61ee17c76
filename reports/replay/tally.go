package replay

import (
	"math"

	"github.com/invoicespec/brimline/reports/record"
)

// outcome is what became of one user's attempts.
type outcome struct{ attempts, rate, concurrency int64 }

// tally sums up outcomes under one allowance.
type tally struct {
	attempts, rate, concurrency int64
	users, affected, ok         int
	top                         int64
	topUser                     int
}

// add takes users in their order: of two alike the first is the top one.
func (t *tally) add(user int, o outcome) {
	if o.attempts == 0 {
		return
	}
	rejected := o.rate + o.concurrency
	t.attempts += o.attempts
	t.rate += o.rate
	t.concurrency += o.concurrency
	t.users++
	if rejected > 0 {
		t.affected++
	}
	if rejected*1000 < o.attempts {
		t.ok++
	}
	if rejected > t.top || rejected == t.top && rejected > 0 && user < t.topUser {
		t.top, t.topUser = rejected, user
	}
}

// summary names the top user by the rank that rank tells.
func (t *tally) summary(rank func(user int) int) record.Rejections {
	r := record.Rejections{
		RejectedRate: t.rate, RejectedConcurrency: t.concurrency, Rejected: t.rate + t.concurrency,
		UsersAffected: t.affected, UsersOK: t.ok, TopRejected: t.top,
	}
	if t.users == 0 {
		return r
	}
	r.RejectedShare = float64(r.Rejected) / float64(t.attempts)
	r.UsersAffectedShare = float64(t.affected) / float64(t.users)
	r.UsersAffected95 = Wilson(t.affected, t.users)
	r.UsersOKShare = float64(t.ok) / float64(t.users)
	r.UsersOK95 = Wilson(t.ok, t.users)
	if t.top > 0 {
		r.TopShare = float64(t.top) / float64(r.Rejected)
		r.TopRank = rank(t.topUser)
	}
	return r
}

// Wilson is Wilson's 95 % interval of a share of k in n, for n > 0. Of none and of
// all its far end is that of the rule of three: 3 in n.
func Wilson(k, n int) [2]float64 {
	const z = 1.959963984540054
	share, size := float64(k)/float64(n), float64(n)
	switch k {
	case 0:
		return [2]float64{0, min(1, 3/size)}
	case n:
		return [2]float64{max(0, 1-3/size), 1}
	}
	centre := share + z*z/(2*size)
	reach := z * math.Sqrt(share*(1-share)/size+z*z/(4*size*size))
	scale := 1 + z*z/size
	return [2]float64{max(0, (centre-reach)/scale), min(1, (centre+reach)/scale)}
}
