package reassess

import (
	"github.com/invoicespec/brimline/reports/record"
)

// S2, the scoreboard: how the users of a plan fared by each input.

// scores lists them: as recorded, under today's allowance where the log cannot
// say how it was, overrides, and each run that tells.
func (s *subject) scores(today *record.Cell) []record.ReportScore {
	list := []record.ReportScore{}
	if s.src != nil && s.seen.Attempts > 0 {
		ours := s.src.log.Quality.Format == record.FormatAPI
		was := s.part.score(s.allowance)
		if ours || was.Rejected > 0 || today == nil {
			list = append(list, was)
		}
		if !ours && today != nil {
			list = append(list, s.replayed(*today, was))
		}
	}
	if s.src != nil {
		if own := s.overridden(); own != nil {
			list = append(list, *own)
		}
	}
	for _, o := range s.others {
		if o.seen.Attempts > 0 {
			list = append(list, o.score(o.src.traffic.Roster.Plans[o.at].Today))
		}
	}
	for _, r := range s.runs {
		if len(r.doubts) == 0 {
			list = append(list, r.score())
		}
	}
	return list
}

// score is what the log itself says, under an allowance if it was the server's own
// log.
func (p part) score(allowance *record.ReportAllowance) record.ReportScore {
	score := sums(p.was.users)
	score.Source, score.Basis, score.Pool = p.src.name, record.BasisRecorded, p.src.pool()
	score.Latency = p.was.latency()
	score.OutOfOperations, score.CapacityUnavailable = p.src.told(p.was.lost), p.src.told(p.was.full)
	if p.src.log.Quality.Format == record.FormatAPI {
		admitted := score.Attempts - score.Rejected
		score.Admitted, score.Allowance = &admitted, allowance
	} else if score.Rejected == 0 {
		score.RejectedRate, score.RejectedConcurrency = nil, nil // a log without 429s may have left them out
	}
	return score
}

// overridden is the users with an allowance of their own, decided by that.
func (s *subject) overridden() *record.ReportScore {
	var users []met
	for _, o := range s.overrides {
		users = append(users, met{attempts: o.Attempts, other: o.Rejected})
	}
	if len(users) == 0 {
		return nil
	}
	score := sums(users)
	score.Source, score.Basis, score.Pool, score.Override = s.src.name, record.BasisReplayed, s.src.pool(), true
	return &score
}

// replayed is what today's allowance does to an access log.
func (s *subject) replayed(c record.Cell, was record.ReportScore) record.ReportScore {
	admitted := was.Attempts - c.Rejected
	score := record.ReportScore{
		Source: s.src.name, Basis: record.BasisReplayed, Allowance: s.allowance, Pool: was.Pool, Users: was.Users,
		UsersAffected:  record.UserShare{N: c.UsersAffected, Share: c.UsersAffectedShare, Share95: c.UsersAffected95},
		UsersOK:        record.UserShare{N: c.UsersOK, Share: c.UsersOKShare, Share95: c.UsersOK95},
		EffectiveUsers: was.EffectiveUsers, Attempts: was.Attempts, Admitted: &admitted,
		Rejected: c.Rejected, RejectedRate: &c.RejectedRate, RejectedShare: c.RejectedShare, Latency: was.Latency,
		OutOfOperations: was.OutOfOperations, CapacityUnavailable: was.CapacityUnavailable,
	}
	if c.Concurrency > 0 {
		score.RejectedConcurrency = &c.RejectedConcurrency
	}
	if c.Rejected > 0 {
		score.TopShare = &c.TopShare
	}
	if len(s.each) > 0 {
		users := make([]met, len(s.each))
		for i, u := range s.each {
			users[i] = met{attempts: u.Attempts, other: u.Rejected[0]}
		}
		score.RejectedShare95, score.DesignEffect = clustered(users)
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
	admitted, missing, config := r.plan.Admitted, r.plan.Missing, r.plan.ConfigUnavailable
	rate, concurrency := r.plan.RateJudged, r.plan.ConcurrencyJudged
	s.Admitted, s.WithoutToken, s.RateJudged, s.ConcurrencyJudged, s.ConfigUnavailable = &admitted, &missing, &rate, &concurrency, &config
	lost, full := answers(r.plan.OtherStatuses, exhausted), answers(r.plan.ErrorCodes, "CAPACITY_UNAVAILABLE")
	s.OutOfOperations, s.CapacityUnavailable = &lost, &full
	for _, l := range r.plan.Latency {
		if l.Outcome == record.OutcomeAdmitted {
			s.Latency = &record.ReportLatency{P50US: l.FromDue.P50US, P99US: l.FromDue.P99US, From: "due"}
		}
	}
	return s
}

// service is how long the server took for what it admitted, on average and in
// seconds; nil: the run does not tell.
func (r planRun) service() *float64 {
	for _, l := range r.plan.Latency {
		if l.Outcome == record.OutcomeAdmitted && l.FromSend.Count > 0 && l.FromSend.SumUS > 0 {
			x := float64(l.FromSend.SumUS) / float64(l.FromSend.Count) / 1e6
			return &x
		}
	}
	return nil
}
