package reassess

import (
	"slices"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
)

// scores lists how the plan's users fared by each input: as recorded, under
// today's allowance where the log cannot say how it was, and in each run that
// tells.
func (s *subject) scores(today *record.Cell, w *record.ReportWhatIf) []record.ReportScore {
	list := []record.ReportScore{}
	if s.log != nil && len(s.log.Attempts) > 0 {
		ours := s.log.Quality.Format == record.FormatAPI
		recorded := s.recorded()
		if ours || recorded.Rejected > 0 || today == nil {
			list = append(list, recorded)
		}
		if !ours && today != nil {
			list = append(list, s.replayed(*today, recorded))
		}
	}
	for _, r := range s.runs {
		if len(r.doubts) == 0 {
			list = append(list, r.score())
		}
	}
	return list
}

// recorded is what the log itself says.
func (s *subject) recorded() record.ReportScore {
	users := make([]met, s.log.Pools)
	if s.log.Quality.Format != record.FormatAPI {
		for _, a := range s.log.Attempts {
			u := &users[a.Pool]
			u.attempts++
			if a.Refused {
				u.rate++
			}
		}
		score := sums(users)
		score.RejectedRate, score.RejectedConcurrency = nil, nil // a 429 does not tell its cause
		score.Source, score.Basis, score.Pool = s.source, record.BasisRecorded, record.PoolClient
		return score
	}
	for _, d := range s.log.Decided {
		u := &users[d.Pool]
		u.attempts++
		switch d.Outcome {
		case accesslog.RateRejected:
			u.rate++
		case accesslog.ConcurrencyRejected:
			u.concurrency++
		}
	}
	score := sums(users)
	score.Source, score.Basis, score.Pool, score.Allowance = s.source, record.BasisRecorded, record.PoolUser, s.allowance
	admitted := score.Attempts - score.Rejected
	score.Admitted = &admitted
	score.Latency = s.holds()
	return score
}

// holds is how long the server had the requests that it admitted.
func (s *subject) holds() *record.ReportLatency {
	var times []int64
	for i, a := range s.log.Attempts {
		if !a.Refused {
			times = append(times, s.log.Holds[i])
		}
	}
	if len(times) == 0 {
		return nil
	}
	slices.Sort(times)
	return &record.ReportLatency{P50US: nearestRank(times, 50), P99US: nearestRank(times, 99), From: "received"}
}

// replayed is what today's allowance does to an access log.
func (s *subject) replayed(c record.Cell, recorded record.ReportScore) record.ReportScore {
	admitted := recorded.Attempts - c.Rejected
	score := record.ReportScore{
		Source: s.source, Basis: record.BasisReplayed, Allowance: s.allowance, Pool: recorded.Pool, Users: recorded.Users,
		UsersAffected:  record.UserShare{N: c.UsersAffected, Share: c.UsersAffectedShare, Share95: c.UsersAffected95},
		UsersOK:        record.UserShare{N: c.UsersOK, Share: c.UsersOKShare, Share95: c.UsersOK95},
		EffectiveUsers: recorded.EffectiveUsers, Attempts: recorded.Attempts, Admitted: &admitted,
		Rejected: c.Rejected, RejectedRate: &c.RejectedRate, RejectedShare: c.RejectedShare,
	}
	if c.Rejected > 0 {
		score.TopShare = &c.TopShare
	}
	return score
}

// score is what a run measured of the plan.
func (r planRun) score() record.ReportScore {
	var users []met
	for _, u := range r.run.Users {
		if u.Plan == r.plan.Plan {
			users = append(users, met{attempts: u.Sent, rate: u.RejectedRate, concurrency: u.RejectedConcurrency, other: u.RejectedOtherwise})
		}
	}
	s := sums(users)
	s.Source, s.Basis, s.Pool = r.name, record.BasisMeasured, record.PoolUser
	if a, ok := r.run.Target.Allowances[r.plan.Plan]; ok {
		s.Allowance = runAllowance(a)
	}
	admitted, missing := r.plan.Admitted, r.plan.Missing
	rate, concurrency := r.plan.RateJudged, r.plan.ConcurrencyJudged
	s.Admitted, s.WithoutToken, s.RateJudged, s.ConcurrencyJudged = &admitted, &missing, &rate, &concurrency
	for _, l := range r.plan.Latency {
		if l.Outcome == record.OutcomeAdmitted {
			s.Latency = &record.ReportLatency{P50US: l.FromDue.P50US, P99US: l.FromDue.P99US, From: "due"}
		}
	}
	return s
}

// days is how many different days, in UTC, have traffic.
func days(l *accesslog.Log) int {
	const day = 24 * 3600 * 1_000_000
	seen, last := 0, int64(-1)
	for i, a := range l.Attempts {
		if d := a.At / day; i == 0 || d != last {
			seen, last = seen+1, d
		}
	}
	return seen
}
