package render_test

import (
	"github.com/invoicespec/brimline/reports/record"
)

func ptr[T any](v T) *T { return &v }

// tell gives a plan what a replay and a plan map would.
func tell(p *record.ReportPlan) {
	p.Decision = []record.ReportDimension{
		{Dimension: record.DimensionRate, Word: record.Raise, Today: ptr[int64](10), Uncapped: ptr[int64](30), Target: ptr[int64](20), HeldBy: "the plan starter", Why: "as far as it goes"},
		{Dimension: record.DimensionBurst, Word: record.Raise, Today: ptr[int64](10), Uncapped: ptr[int64](30), Target: ptr[int64](20), HeldBy: "the plan starter", Why: "as far as it goes"},
		{Dimension: record.DimensionConcurrency, Word: record.NotEnoughEvidence, HeldBy: "durations", Why: "the log has none"},
	}
	p.Paid, p.Next = ptr(false), "starter"
	ecdf := func(most float64) *record.ReportECDF {
		return &record.ReportECDF{P50: 0.1, P90: 0.3, P95: 0.6, P99: most / 2, Max: most, Near: 0.028, Generous: 0.9366,
			Points: []record.ReportPoint{{X: most / 90, Y: 0.62}, {X: most / 60, Y: 0.86}, {X: most / 20, Y: 0.94}, {X: most / 10, Y: 0.975}, {X: most / 2, Y: 0.99}, {X: most, Y: 1}}}
	}
	p.Utilization = &record.ReportUtilization{Users: 917, Burst: ecdf(37), Rate: ecdf(17), Sustained: ecdf(0.92), Missing: []string{"concurrency: the log has no durations that could carry it"}}
	a := &record.ReportAnatomy{
		Rejected: 340, Affected: 17, Users: 917, Top1: 0.62, Top1Pct: 0.98, Gini: 0.9967,
		Lorenz: []record.ReportPoint{{X: 0, Y: 0}, {X: 0.9815, Y: 0}, {X: 0.99, Y: 0.02}, {X: 0.9989, Y: 0.38}, {X: 1, Y: 1}},
		Causes: record.ReportCauses{Burst: 300, Sustained: 40}, TooEarly: 210, Followed: 330, Undefined: []string{},
		Episodes: record.ReportEpisode{N: 81, Rejections: record.ReportQuart{P50: 2, P95: 12, P99: 31, Max: 146}, Seconds: record.ReportQuart{P50: 1, P95: 17, P99: 28, Max: 60}, Recovery: record.ReportQuart{P50: 5, P95: 14, P99: 108, Max: 3600}},
	}
	for i := range a.Minutes {
		a.Minutes[i] = int64(i * 7 % 11)
		a.Hours[i%7][i%24] += a.Minutes[i]
	}
	a.Minutes[0] = 60
	p.Anatomy = a
	w := p.WhatIf
	w.Moved = &record.ReportMoved{Rate: 20, Burst: 20, Out: 14, Out95: [2]float64{7, 21}, Share: 0.2287, Share95: [2]float64{0.0545, 0.3028}, Draws: 1000, Clusters: "users", Days: 9}
	w.BurstNeeded = []record.Needs{{Rate: 10, P50: 1, P90: 1, P95: 1.67, P99: 22.5, Max: 372.17}, {Rate: 20, P50: 1, P90: 1, P95: 1, P99: 15.33, Max: 315.33}}
	w.Closed = []record.ReportClosed{{Rate: 10, Burst: 10, Rejected: 500, Sendings: 10_979, UsersAffected: 17, Delay: record.ReportQuart{P50: 2, P95: 40, P99: 90, Max: 400}}, {Rate: 20, Burst: 20, Rejected: 90, Sendings: 10_569, UsersAffected: 3}}
	p.Verdict.Uncapped, p.Verdict.HeldBy = ptr(reportCell(30, 30, 1)), "the plan starter"
	p.Binding = &record.ReportBinding{Users: 917, Burst: 15, Rate: 2, None: 900, HoursToExhaust: ptr(8.5), Missing: []string{}}
	p.Cost = &record.ReportCost{AdmittedPerHour: ptr(1200.0), ServiceS: ptr(0.9), EngineSPerHour: ptr(1080.0), Workers: ptr(0.3), Missing: []string{}}
	p.Notice = &record.ReportNotice{Needed: true, Days: 30, Earliest: "2027-01-01", First: "a shadow run", Hit: []record.ReportHit{{User: "u0007", Rejected: 12, Share: 0.04, Boundary: "2027-01-01"}}, Exempt: []string{}, Missing: []string{}}
}

func capacity() *record.ReportCapacity {
	peaks := func(times float64) *record.ReportPeaks {
		return &record.ReportPeaks{Second: 40 * times, Ten: 21 * times, Minute: 12 * times, Source: "logs/access.log"}
	}
	c := &record.ReportCapacity{
		Source: "capacity", SLO: []string{"p99 < 250ms"}, Holds: ptr(180.0), Saturation: &record.CapacityKnee{At: 200, From: 195, To: 204}, Worst: ptr(916.0), Oversubscription: ptr(5.09),
		Today: peaks(1), Candidate: peaks(1.5), Share: ptr(0.175), P99US: ptr[int64](48_000), MostShare: 0.7, Runs: []string{}, Missing: []string{},
		Observed: []record.ReportObserved{{Name: "requests in flight", Unit: "requests", P50: 3, P95: 7, Max: 8, Points: 600, Source: "prometheus"}},
		Latency:  []record.ReportPlanLatency{{Plan: "pro", Source: "runs/one", All: record.ReportLatency{P50US: 2_100, P99US: 98_000, From: "due"}, Peak: &record.ReportLatency{P50US: 4_000, P99US: 140_000, From: "due"}}},
	}
	for i, p99 := range []int64{22_000, 26_000, 31_000, 48_000, 210_000, 900_000} {
		load, verdict := float64(40*(i+1)), record.CapacityHolds
		if i > 3 {
			verdict = record.CapacityFails
		}
		c.Steps = append(c.Steps, record.ReportCapacityStep{Offered: load, Goodput: min(load, 198), P50US: 9_000 + int64(i*i)*2_000, P99US: p99, Verdict: verdict})
	}
	return c
}

func fairness() *record.ReportFairness {
	return &record.ReportFairness{
		Plans:      []record.ReportFair{{Plan: "all clients", Allowance: 1, Price: ptr(1.0), Demand: ptr(1.0), Jain: ptr(0.9963)}, {Plan: "pro", Allowance: 30, Price: ptr(40.0), EngineShare: ptr(0.4), RevenueShare: ptr(0.6)}},
		FailAtFree: ptr(17), FailAtNext: ptr(3), UpgradePressure: ptr(0.0153), Missing: []string{"engine seconds of the smallest plan"},
	}
}

func support() *record.ReportSupport {
	return &record.ReportSupport{Given: true, Missing: []string{}, Tickets: []record.ReportTicket{{ID: "T-104", User: "u0001", Plan: "all clients", Date: "2024-05-14", Symptom: "=refused at night", Attempts: 120, Rejected: 44, Shows: "44 of 120 rejected in that hour"}}}
}

func against() *record.ReportAgainst {
	return &record.ReportAgainst{Old: "8d", Said: []string{"The answer is the same."}, Rows: []record.ReportAgainstRow{
		{Plan: "all clients", Figure: "users affected", Unit: "share", Old: ptr(0.02), New: ptr(0.0185), P: ptr(0.61), NOld: 880, NNew: 917},
		{Plan: "all clients", Figure: "attempts", Unit: "a day", Old: ptr(900.0), New: ptr(1164.0), Delta: ptr(0.293), P: ptr(0.001), NOld: 9, NNew: 9},
	}}
}

func migration() *record.ReportMigration {
	return &record.ReportMigration{Verdict: record.MigrationStay, Why: "Nothing that is known asks for it.", Signals: []record.ReportMigrationSignal{
		{Name: "limiter latency beside the engine's", Value: "4 µs of 9 ms", Says: "stay"}, {Name: "planned replicas", Missing: "the gates file may name them"},
	}}
}

// hostileSections puts text where an input's could be.
func hostileSections(r *record.Report, text string) {
	p := &r.Plans[1]
	p.Decision[0].HeldBy, p.Utilization.Missing, p.Anatomy.Undefined = text, []string{text}, []string{text}
	p.Binding.Missing, p.Cost.Missing, p.WhatIf.Moved.Clusters = []string{text}, []string{text}, text
	p.Notice.Hit[0].User, p.Notice.Hit[0].Boundary, p.Notice.First, p.Notice.Exempt, p.Notice.Missing = text, text, text, []string{text}, []string{text}
	r.Coverage.From, r.Coverage.Pseudonyms = text, text
	r.Gates[0].Name, r.Gates[0].Need, r.Gates[0].Found = text, text, text
	r.Capacity.Missing, r.Capacity.Runs, r.Capacity.Latency[0].Plan, r.Capacity.Observed[0].Name, r.Capacity.Observed[0].Unit = []string{text}, []string{text}, text, text, text
	r.Fairness.Missing, r.Fairness.Plans[0].Plan = []string{text}, text
	t := &r.Support.Tickets[0]
	t.ID, t.User, t.Plan, t.Date, t.Symptom, t.Shows = text, text, text, text, text, text
	r.Against.Said, r.Against.Rows[0].Plan, r.Against.Rows[0].Figure, r.Against.Rows[0].Unit = []string{text}, text, text, text
	r.Migration.Why, r.Migration.Signals[0].Name, r.Migration.Signals[0].Value = text, text, text
}
