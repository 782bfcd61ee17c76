package reassess

import (
	"math/rand/v2"
	"slices"

	"github.com/invoicespec/brimline/reports/record"
)

// daysForClusters is from how many days on days are drawn in place of users: a
// busy day is busy for many at once.
const daysForClusters = 14

// fewestDraws is the least that an interval is taken from, and mostDrawn bounds
// draws times what is drawn, so that a million users do not take minutes.
const (
	fewestDraws = 200
	mostDrawn   = 200_000_000
)

// pairing is what one user met on one day under two allowances, with the same
// attempts.
type pairing struct {
	user, day   int
	attempts    int64
	today, then int64 // rejected
}

// moved is what a change from one allowance to the other does to users, with
// intervals by drawing users, or days, again and again.
func moved(list []pairing, draws int, seed uint64) record.ReportMoved {
	list = slices.Clone(list)
	users, days := dense(list, func(p *pairing) *int { return &p.user }), dense(list, func(p *pairing) *int { return &p.day })
	m := record.ReportMoved{Clusters: "users", Draws: draws}
	clusters, of := users, func(p pairing) int { return p.user }
	if days >= daysForClusters {
		m.Clusters, clusters, of = "days", days, func(p pairing) int { return p.day }
	}
	sums := newPaired(list, users, clusters, of)
	sums.byUser = m.Clusters == "users"
	once := slices.Repeat([]int32{1}, clusters)
	all := sums.drawn(once)
	m.Out, m.In, m.Share = int(all.out), int(all.in), all.share()
	m.Days = sparing(list, days)
	if clusters == 0 {
		m.Draws = 0
		return m
	}
	m.Draws = max(fewestDraws, min(draws, mostDrawn/clusters))
	dice := rand.New(rand.NewPCG(seed, uint64(clusters)))
	outs, ins, shares := make([]float64, m.Draws), make([]float64, m.Draws), make([]float64, m.Draws)
	times := make([]int32, clusters)
	for i := range m.Draws {
		clear(times)
		for range clusters {
			times[dice.IntN(clusters)]++
		}
		d := sums.drawn(times)
		outs[i], ins[i], shares[i] = d.out, d.in, d.share()
	}
	m.Out95, m.In95, m.Share95 = middle(outs), middle(ins), middle(shares)
	return m
}

// paired sums draws up quickly: attempts are added per cluster, and only users who
// met a rejection are gone through one by one.
type paired struct {
	byUser   bool // a cluster is a user
	clusters []clusterSum
	hit      [][]hit // of each user with a rejection
}

type clusterSum struct {
	attempts, fewer int64 // fewer: rejected today less rejected then
}

// hit is what a user was rejected in one cluster.
type hit struct {
	cluster     int
	today, then int64
}

func newPaired(list []pairing, users, clusters int, of func(pairing) int) *paired {
	p := &paired{clusters: make([]clusterSum, clusters)}
	hits := make([][]hit, users)
	for _, x := range list {
		c := &p.clusters[of(x)]
		c.attempts += x.attempts
		c.fewer += x.today - x.then
		if x.today+x.then > 0 {
			hits[x.user] = append(hits[x.user], hit{of(x), x.today, x.then})
		}
	}
	for _, h := range hits {
		if len(h) > 0 {
			p.hit = append(p.hit, h)
		}
	}
	return p
}

// sum is what came of one draw.
type sum struct {
	attempts, fewer float64
	out, in         float64
}

func (s sum) share() float64 {
	if s.attempts == 0 {
		return 0
	}
	return s.fewer / s.attempts
}

// drawn sums up clusters, each as often as it was drawn. A user who is a cluster
// counts as often; one whose days are drawn counts once.
func (p *paired) drawn(times []int32) (s sum) {
	for i, c := range p.clusters {
		n := float64(times[i])
		s.attempts += n * float64(c.attempts)
		s.fewer += n * float64(c.fewer)
	}
	for _, user := range p.hit {
		var today, then int64
		for _, h := range user {
			today += int64(times[h.cluster]) * h.today
			then += int64(times[h.cluster]) * h.then
		}
		weight := 1.0
		if p.byUser {
			weight = float64(times[user[0].cluster])
		}
		if today > 0 && then == 0 {
			s.out += weight
		}
		if today == 0 && then > 0 {
			s.in += weight
		}
	}
	return s
}

// dense renumbers what of names from 0 and says how many there are.
func dense(list []pairing, of func(*pairing) *int) int {
	place := map[int]int{}
	for i := range list {
		at := of(&list[i])
		if _, ok := place[*at]; !ok {
			place[*at] = len(place)
		}
		*at = place[*at]
	}
	return len(place)
}

// sparing is on how many days the change would have spared somebody.
func sparing(list []pairing, days int) (n int) {
	seen := make([]bool, days)
	for _, p := range list {
		if p.then < p.today && !seen[p.day] {
			seen[p.day] = true
			n++
		}
	}
	return n
}

// middle is the middle 95 % of values, which it sorts: the nearest ranks of 2.5
// and 97.5 %.
func middle(values []float64) [2]float64 {
	slices.Sort(values)
	n := len(values)
	return [2]float64{values[n*25/1000], values[(n*975+999)/1000-1]}
}
