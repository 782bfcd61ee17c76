package reassess

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
)

func ref[T any](x T) *T { return &x }

func TestFairness(t *testing.T) {
	allowance := func(rate int64) *record.ReportAllowance {
		return &record.ReportAllowance{RequestsPerMinute: rate, Burst: rate}
	}
	f := fairness([]fair{
		{plan: "free", allowance: allowance(10), users: 100, price: ref(0.), demand: ref(5.), shares: []float64{1, 1, 0}, admitted: 300, service: ref(0.1), failing: ref(20), failingToo: ref(5)},
		{plan: "starter", allowance: allowance(60), users: 10, price: ref(10.), demand: ref(20.), shares: []float64{1, 1}, admitted: 100, service: ref(0.1)},
		{plan: "pro", allowance: allowance(300), users: 5, price: ref(60.), demand: ref(25.), admitted: 100, service: ref(0.1)},
	})
	require.Empty(t, f.Missing)
	require.InDelta(t, 30., f.Plans[2].Allowance, 1e-9)
	require.InDelta(t, 6., *f.Plans[2].Price, 1e-9, "to the smallest plan that costs something")
	require.Zero(t, *f.Plans[0].Price)
	require.InDelta(t, 4., *f.Plans[1].Demand, 1e-9)
	require.InDelta(t, 2./3, *f.Plans[0].Jain, 1e-9)
	require.InDelta(t, 0.6, *f.Plans[0].EngineShare, 1e-9)
	require.InDelta(t, 0.75, *f.Plans[2].RevenueShare, 1e-9)
	require.InDelta(t, 0.15, *f.UpgradePressure, 1e-9)

	alone := fairness([]fair{{plan: "free", allowance: allowance(10)}})
	require.Len(t, alone.Missing, 3)
	require.Nil(t, alone.Plans[0].Jain)
	require.Nil(t, alone.UpgradePressure)
}

func TestCost(t *testing.T) {
	c := cost(&record.ReportPeaks{Minute: 2}, &record.ReportPeaks{Minute: 2.5}, ref(0.2))
	require.InDelta(t, 1800., *c.AdmittedPerHour, 1e-9)
	require.InDelta(t, 360., *c.EngineSPerHour, 1e-9)
	require.InDelta(t, 0.1, *c.Workers, 1e-9)
	require.Empty(t, c.Missing)
	require.Len(t, cost(nil, nil, nil).Missing, 2)
}

func TestBinding(t *testing.T) {
	free := &record.ReportAllowance{RequestsPerMinute: 10, Burst: 10}
	b := binding(record.ReportBinding{Users: 10, Operations: 5, Rate: 1, None: 4}, free, ref(int64(1200)), true)
	require.InDelta(t, 2., *b.HoursToExhaust, 1e-9)
	require.True(t, b.NotTheRateLimit)
	require.Empty(t, b.Missing)
	require.False(t, binding(record.ReportBinding{Users: 10, Operations: 4}, free, nil, true).NotTheRateLimit)
	b = binding(record.ReportBinding{Users: 10, None: 10}, free, nil, false)
	require.Nil(t, b.ExhaustedFirst, "a log without 402s says nothing of them")
	require.Len(t, b.Missing, 2)
}

func TestNotice(t *testing.T) {
	look := record.ReportVerdict{LookAt: &record.Cell{Rate: 5, Burst: 5}}
	monthly := func(day int) func(time.Time) time.Time {
		return func(from time.Time) time.Time {
			at := time.Date(from.Year(), from.Month(), day, 0, 0, 0, 0, time.UTC)
			if at.Before(from) {
				at = at.AddDate(0, 1, 0)
			}
			return at
		}
	}
	c := claim{plan: "pro"}
	n := c.notice(look, []loss{
		{user: "u0003", rejected: 4, attempts: 40, boundary: monthly(15)}, {user: "u0009", rejected: 1, attempts: 10, boundary: monthly(5)},
	}, "2026-03-01", []Exemption{{"pro", "abuse", "case 9"}, {"free", "incident", "x"}}, Rules())
	require.True(t, n.Needed)
	require.Equal(t, 30, n.Days)
	require.Equal(t, "2026-04-15", n.Earliest, "the last of their boundaries after the notice")
	require.Equal(t, []record.ReportHit{{User: "u0003", Rejected: 4, Share: 0.1, Boundary: "2026-04-15"}, {User: "u0009", Rejected: 1, Share: 0.1, Boundary: "2026-04-05"}}, n.Hit)
	require.Equal(t, []string{"abuse, which needs no notice: case 9"}, n.Exempt)
	require.Contains(t, n.First, "shadow run")
	require.Empty(t, n.Missing)

	n = c.notice(look, []loss{{user: "u0001", rejected: 1, attempts: 2}}, "2026-03-01", nil, Rules())
	require.Equal(t, "2026-03-31", n.Earliest)
	require.Contains(t, n.Missing[0], "the billing boundary of 1 user")
	require.Contains(t, c.notice(look, nil, "", nil, Rules()).Missing[0], "--date")
	require.False(t, c.notice(record.ReportVerdict{}, nil, "2026-03-01", nil, Rules()).Needed)
}

func TestMigration(t *testing.T) {
	calm := signalsOf{Decision: ref(2e-6), Engine: ref(0.02), Processors: ref(1.2)}
	one := &Deployment{Storage: "local", PlannedReplicas: ref(int64(1)), RestartsAllowed: ref(true), GrowthPerMonth: ref(Share(0.02)), Processors: ref(int64(4))}
	with := func(change func(*Deployment)) *Deployment {
		d := *one
		change(&d)
		return &d
	}
	for name, c := range map[string]struct {
		signals signalsOf
		share   *float64
		d       *Deployment
		want    record.Migration
		why     string
	}{
		"calm":              {calm, ref(0.4), one, record.MigrationStay, "No signal asks for a second instance."},
		"nothing is known":  {signalsOf{}, nil, nil, record.MigrationUntold, "6 of 6 signals are missing"},
		"some is missing":   {calm, nil, one, record.MigrationUntold, "2 of 6 signals are missing"},
		"saturated":         {calm, ref(1.2), one, record.MigrationMigrate, "engine saturation"},
		"it will be":        {calm, ref(0.9), one, record.MigrationMigrate, "traffic growth"},
		"a second replica":  {signalsOf{}, nil, with(func(d *Deployment) { d.PlannedReplicas = ref(int64(2)) }), record.MigrationMigrate, "planned replicas: 2"},
		"no restart":        {calm, ref(0.4), with(func(d *Deployment) { d.RestartsAllowed = ref(false) }), record.MigrationMigrate, "availability"},
		"a slow limiter":    {signalsOf{Decision: ref(0.01), Engine: ref(0.02), Processors: ref(3.9)}, ref(0.4), one, record.MigrationStay, "No signal"},
		"of how many":       {calm, ref(0.4), with(func(d *Deployment) { d.Processors = nil }), record.MigrationUntold, "1 of 6 signals are missing"},
		"distributed as is": {calm, ref(1.2), with(func(d *Deployment) { d.Storage = "distributed" }), record.MigrationStay, "distributed already"},
	} {
		t.Run(name, func(t *testing.T) {
			m := migration(c.signals, c.share, c.d)
			require.Equal(t, c.want, m.Verdict)
			require.Contains(t, m.Why, c.why)
			require.Len(t, m.Signals, 6)
			for _, s := range m.Signals {
				require.NotEqual(t, s.Value == "", s.Missing == "", s.Name)
			}
		})
	}
}

// Fisher's test as it is printed in books: the lady tasting tea, and others.
func TestFisher(t *testing.T) {
	for _, c := range []struct {
		a, m, b, n int
		p          float64
	}{
		{3, 4, 1, 4, 0.4857}, {4, 4, 0, 4, 0.02857}, {1, 10, 11, 14, 0.00276}, {5, 100, 5, 100, 1}, {0, 50, 0, 50, 1}, {0, 0, 3, 9, 1},
	} {
		require.InDelta(t, c.p, fisher(c.a, c.m, c.b, c.n), 0.0005, c)
		require.InDelta(t, c.p, fisher(c.b, c.n, c.a, c.m), 0.0005, "either way round")
	}
	require.Less(t, fisher(170, 9000, 17, 9000), 1e-20)
}

func TestAgainst(t *testing.T) {
	plan := func(affected, users int, headline string) record.ReportPlan {
		return record.ReportPlan{Plan: "free", Allowance: &record.ReportAllowance{RequestsPerMinute: 10, Burst: 10}, Verdict: record.ReportVerdict{Headline: headline}, Scores: []record.ReportScore{
			{Basis: record.BasisReplayed, Users: users, UsersAffected: shareOf(affected, users), UsersOK: shareOf(users-affected, users), Attempts: 1000, RejectedShare: 0.1},
		}}
	}
	old := Earlier{report: record.Report{Plans: []record.ReportPlan{plan(100, 1000, "raise"), {Plan: "gone"}}}, input: record.ReportInput{SHA256: "8d"}}
	a := against(old, record.Report{Plans: []record.ReportPlan{plan(20, 1000, "keep"), {Plan: "new"}}})
	require.Equal(t, "8d", a.Old)
	require.Equal(t, []string{"free: it was “raise” and is “keep”.", "new is not in the earlier report.", "gone is in the earlier report alone."}, a.Said)
	require.Equal(t, "users affected", a.Rows[0].Figure)
	require.InDelta(t, -0.8, *a.Rows[0].Delta, 1e-9)
	require.Less(t, *a.Rows[0].P, 1e-9)
	a = against(old, record.Report{Plans: []record.ReportPlan{plan(95, 1000, "raise")}})
	require.Nil(t, a.Rows[0].Delta, "chance does as much")
	for _, r := range a.Rows[2:] {
		require.Nil(t, r.P, "of no count of users, no test")
	}
}

// Reports on the same traffic count once, and those on another allowance not at all.
func TestAsked(t *testing.T) {
	today := &record.ReportAllowance{RequestsPerMinute: 10, Burst: 10}
	report := func(sha string, v record.ReportVerdict, allowed *record.ReportAllowance) Earlier {
		return Earlier{report: record.Report{Inputs: []record.ReportInput{{Kind: record.InputAccessLog, SHA256: sha}}, Plans: []record.ReportPlan{{Plan: "free", Allowance: allowed, Verdict: v}}}}
	}
	up := record.ReportVerdict{Word: record.NotEnoughEvidence, Uncapped: &record.Cell{Rate: 20, Burst: 20}}
	more, less := asked([]Earlier{
		report("a", up, today), report("a", up, today), report("b", up, today), report("c", up, &record.ReportAllowance{RequestsPerMinute: 15, Burst: 15}),
		report("d", record.ReportVerdict{Word: record.Keep}, today), report("e", record.ReportVerdict{Word: record.Lower}, today),
	}, "free", today)
	require.Equal(t, 2, more)
	require.Equal(t, 1, less)
}
