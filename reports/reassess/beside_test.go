package reassess_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/reassess"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/replay"
	"github.com/invoicespec/brimline/reports/roster"
)

// twoPlans puts the busy clients of a week on the plan free and the others on
// starter.
func twoPlans(busy int) func(*accesslog.Log) (reassess.People, error) {
	return func(l *accesslog.Log) (reassess.People, error) {
		r := roster.Single("free", &record.ReportAllowance{RequestsPerMinute: 10, Burst: 10}, l.Pools)
		r.Plans = append(r.Plans, roster.Plan{Name: "starter", Today: &record.ReportAllowance{RequestsPerMinute: 60, Burst: 20}})
		attempts := make([]int, l.Pools)
		for batch, err := range replay.TrafficOf(l, r).Attempts.Batches(context.Background()) {
			if err != nil {
				return reassess.People{}, err
			}
			for _, a := range batch {
				attempts[a.Pool]++
			}
		}
		first := -1
		for i, n := range attempts {
			if n == 1 {
				r.Phases[i] = []roster.Phase{{From: r.Phases[i][0].From, Plan: 1}}
			} else if first < 0 {
				first = i
			}
		}
		return reassess.People{
			Roster: r, Coverage: record.ReportCoverage{From: "plans.yaml", Clients: l.Pools, ClientsKnown: l.Pools},
			User: func(name string) (int, bool) { return first, name == "busy" },
		}, nil
	}
}

// With a plan map, prices and tickets one log tells of several plans at once.
func TestBeside(t *testing.T) {
	paid, unpaid, price := true, false, 19.
	var operations int64 = 6000
	r := weighed(t, reassess.Options{Beside: reassess.Beside{
		People: twoPlans(40), Asked: true,
		Plans: map[string]reassess.PlanFacts{"free": {Paid: &unpaid}, "starter": {Paid: &paid, Price: &price, Operations: &operations}},
		Tickets: []reassess.Ticket{
			{ID: "T-1", User: "busy", At: time.Date(2026, 3, 1, 10, 30, 0, 0, time.UTC), Hour: true, Symptom: "429 in the morning"},
			{ID: "T-2", User: "busy", At: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC), Symptom: "429 all day"},
			{ID: "T-3", User: "somebody", At: time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC), Symptom: "slow"},
		},
	}}, file(t, "access.log", week(320, 200)))
	require.Equal(t, "plans.yaml", r.Coverage.From)
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
	require.Contains(t, starter.Verdict.Because[0], "80 clients, where 300 are needed")
	require.InDelta(t, 6000./3600, *starter.Binding.HoursToExhaust, 1e-9)
	require.InDelta(t, 6., r.Fairness.Plans[1].Allowance, 1e-9)
	require.Equal(t, 320, *r.Fairness.FailAtFree)
	require.Zero(t, *r.Fairness.FailAtNext, "14 at once fit into a burst of 20")
	require.InDelta(t, (320.*10+80*60)/60, *r.Capacity.Worst, 1e-9)

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
