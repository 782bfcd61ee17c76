package reassess_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/evidence"
	"github.com/invoicespec/brimline/reports/reassess"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/roster"
)

// twoPlans is a plan map that puts so many clients of a week on free and the
// others on starter; two clients of the latter are one user's, and one client is
// nobody's.
func twoPlans(t *testing.T, free int) *roster.Map {
	t.Helper()
	var b strings.Builder
	b.WriteString("client,user,plan,billing-day\n")
	for i := range 399 {
		plan, user := "free", fmt.Sprintf("secret-%d", i)
		if i >= free {
			plan = "starter"
		}
		if i == 398 {
			user = "secret-397"
		}
		fmt.Fprintf(&b, "198.18.%d.%d,%s,%s,15\n", i/200, i%200, user, plan)
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "users.csv"), []byte(b.String()), 0o600))
	path := filepath.Join(dir, "plans.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`users-file: users.csv
plans:
  free: { requests-per-minute: 10, burst: 10, paid: false }
  starter: { requests-per-minute: 60, burst: 20, paid: true, operations: 6000 }
`), 0o600))
	m, err := roster.Read(path)
	require.NoError(t, err)
	return m
}

// With a plan map, prices and tickets one log tells of several plans at once.
func TestBeside(t *testing.T) {
	r := weighed(t, reassess.Options{Beside: reassess.Beside{
		Map: twoPlans(t, 320), Asked: true,
		Prices: []evidence.Listed{{Plan: "starter", Price: roster.Price{Amount: 19, Currency: "EUR", Period: "month"}}},
		Usage:  []evidence.Usage{{User: "secret-330", At: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC), Used: 9, Included: 9}},
		Tickets: []evidence.Ticket{
			{ID: "T-1", User: "secret-0", At: time.Date(2026, 3, 1, 10, 30, 0, 0, time.UTC), Hour: true, Symptom: "429 in the morning"},
			{ID: "T-2", User: "secret-0", At: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC), Symptom: "429 all day"},
			{ID: "T-3", User: "somebody", At: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC), Symptom: "slow"},
		},
	}}, file(t, "access.log", week(320, 200)))
	require.Equal(t, "plans.yaml", r.Coverage.From)
	require.Equal(t, 400, r.Coverage.Clients)
	require.Equal(t, 399, r.Coverage.ClientsKnown)
	require.Len(t, r.Plans, 2)
	free := r.Plans[0]
	require.Equal(t, "free", free.Plan)
	require.Equal(t, "starter", free.Next)
	require.Equal(t, record.Raise, free.Verdict.Word)
	require.Equal(t, "raise to 15 a minute, burst 15", free.Verdict.Headline)
	require.Equal(t, 320, free.WhatIf.Moved.Out)
	require.Equal(t, 7, free.WhatIf.Moved.Days)
	require.NotNil(t, free.Utilization.Burst)
	require.EqualValues(t, 1280, free.Anatomy.Rejected)
	require.Greater(t, free.WhatIf.Then.Minute, free.WhatIf.Today.Minute)
	starter := r.Plans[1]
	require.Contains(t, starter.Verdict.Because[0], "78 clients, where 300 are needed")
	require.InDelta(t, 6000./3600, *starter.Binding.HoursToExhaust, 1e-9)
	require.Equal(t, 1, starter.Binding.Operations)
	require.InDelta(t, 6., r.Fairness.Plans[1].Allowance, 1e-9)
	require.Equal(t, 320, *r.Fairness.FailAtFree)
	require.Zero(t, *r.Fairness.FailAtNext, "14 at once fit into a burst of 20")
	require.InDelta(t, (320.*10+78*60)/60, *r.Capacity.Worst, 1e-9)

	require.True(t, r.Support.Given)
	require.Equal(t, record.ReportTicket{
		ID: "T-1", User: "u0001", Plan: "free", Date: "2026-03-01 10:30", Symptom: "429 in the morning", Attempts: 14, Rejected: 4,
		Shows: "the limiter refuses 4 of 14 requests in that hour",
	}, r.Support.Tickets[0])
	require.Equal(t, "no request of the user in that day", r.Support.Tickets[1].Shows)
	require.Equal(t, "the user is not in the traffic", r.Support.Tickets[2].Shows)
	require.Equal(t, []string{"2 tickets, of which the replay bears 1 out."}, free.Evidence[5].Found)
	require.Equal(t, []string{"none"}, starter.Evidence[5].Found)
}

// What a smaller allowance of a paid plan would take, and from whom, by
// pseudonyms that a key keeps.
func TestNoticeNamesWhomAReductionWouldHit(t *testing.T) {
	rules := reassess.Rules()
	rules.UsersOK = 0.95
	r := weighed(t, reassess.Options{Gates: reassess.Gates{Rules: rules}, Beside: reassess.Beside{Map: twoPlans(t, 0)}}, file(t, "access.log", week(2, 200)))
	p := r.Plans[0]
	require.Equal(t, "starter", p.Plan)
	require.Equal(t, record.Keep, p.Verdict.Word)
	require.NotNil(t, p.Verdict.LookAt)
	require.Less(t, p.Verdict.LookAt.Burst, int64(14))
	require.True(t, p.Notice.Needed)
	require.Equal(t, "2026-03-07", r.Date)
	require.Equal(t, "2026-04-15", p.Notice.Earliest, "thirty days, and then the next billing period")
	require.Equal(t, []string{"u0001", "u0002"}, []string{p.Notice.Hit[0].User, p.Notice.Hit[1].User})
}
