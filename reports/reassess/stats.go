package reassess

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/replay"
)

// met is what one user's attempts came to.
type met struct{ attempts, rate, concurrency, other int64 }

func (m met) rejected() int64 { return m.rate + m.concurrency + m.other }

// sums are the figures of a score that follow from what each user met.
func sums(users []met) record.ReportScore {
	var s record.ReportScore
	var rate, concurrency, other, top int64
	affected, ok := 0, 0
	users = slices.DeleteFunc(users, func(m met) bool { return m.attempts == 0 })
	for _, m := range users {
		s.Attempts += m.attempts
		rate += m.rate
		concurrency += m.concurrency
		other += m.other
		top = max(top, m.rejected())
		if m.rejected() > 0 {
			affected++
		}
		if m.rejected()*1000 < m.attempts {
			ok++
		}
	}
	s.Users, s.Rejected = len(users), rate+concurrency+other
	if other == 0 {
		s.RejectedRate, s.RejectedConcurrency = &rate, &concurrency
	}
	if s.Users == 0 {
		return s
	}
	s.UsersAffected, s.UsersOK = shareOf(affected, s.Users), shareOf(ok, s.Users)
	s.RejectedShare = float64(s.Rejected) / float64(s.Attempts)
	s.EffectiveUsers = effective(users)
	if s.Rejected > 0 {
		share := float64(top) / float64(s.Rejected)
		s.TopShare = &share
	}
	s.RejectedShare95, s.DesignEffect = clustered(users)
	return s
}

func shareOf(n, of int) record.UserShare {
	return record.UserShare{N: n, Share: float64(n) / float64(of), Share95: replay.Wilson(n, of)}
}

// effective is Kish's number of equal users who would be as uneven.
func effective(users []met) float64 {
	var sum, squares float64
	for _, m := range users {
		sum += float64(m.attempts)
		squares += float64(m.attempts) * float64(m.attempts)
	}
	return sum * sum / squares
}

// leastEffective is the fewest effective users for which an interval of a share
// of requests means something.
const leastEffective = 30

// clustered is the 95 % interval of the share of attempts that were rejected, and
// its design effect. Nil where too few users carry the share, or nothing or
// everything was rejected and no variance can be seen.
func clustered(users []met) (interval *[2]float64, designEffect *float64) {
	if len(users) == 0 || effective(users) < leastEffective {
		return nil, nil
	}
	return kornGraubard(users)
}

// kornGraubard is that interval after Korn and Graubard: a user's attempts hang
// together, so the attempts count as fewer by the design effect.
func kornGraubard(users []met) (interval *[2]float64, designEffect *float64) {
	var attempts, rejected float64
	for _, m := range users {
		attempts += float64(m.attempts)
		rejected += float64(m.rejected())
	}
	n, p := float64(len(users)), rejected/attempts
	if p == 0 || p == 1 {
		return nil, nil
	}
	var squares float64 // of the linearised residuals
	for _, m := range users {
		d := float64(m.rejected()) - p*float64(m.attempts)
		squares += d * d
	}
	variance := n / (n - 1) * squares / (attempts * attempts)
	effect := variance / (p * (1 - p) / attempts)
	quantile := func(freedom float64) float64 {
		return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile(0.975)
	}
	size := p * (1 - p) / variance * math.Pow(quantile(attempts-1)/quantile(n-1), 2)
	size = min(size, attempts)
	hits := p * size
	low := distuv.Beta{Alpha: hits, Beta: size - hits + 1}.Quantile(0.025)
	high := distuv.Beta{Alpha: hits + 1, Beta: size - hits}.Quantile(0.975)
	return &[2]float64{low, high}, &effect
}

// enough is the fewest users with whom an allowance can be shown to meet the
// goal at all: each of them is OK.
func enough(goal float64) int {
	n := 1
	for replay.Wilson(n, n)[0] < goal {
		n++
	}
	return n
}
