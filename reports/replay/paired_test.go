package replay_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/replay"
	"github.com/invoicespec/brimline/reports/roster"
	"github.com/invoicespec/brimline/reports/timeline"
)

// By user and day it adds up to what each user meets in all.
func TestPairedAddsUp(t *testing.T) {
	dice := rand.New(rand.NewPCG(3, 0))
	var list []timeline.Attempt
	for range 3000 {
		list = append(list, timeline.Attempt{At: dice.Int64N(3 * 86400 * 1_000_000), Pool: uint32(dice.IntN(7)), Hold: timeline.NoHold})
	}
	for i := range 40 { // one burst across midnight
		list = append(list, timeline.Attempt{At: 86400*1_000_000 + int64(i-20)*1000, Pool: 2, Hold: timeline.NoHold})
	}
	pair := [2]record.ReportAllowance{{RequestsPerMinute: 1, Burst: 2}, {RequestsPerMinute: 2, Burst: 10}}
	traffic := replay.Traffic{Attempts: timeline.Of(list...), Roster: roster.Single("free", &pair[0], 7)}
	days, err := traffic.Paired(t.Context(), []*[2]record.ReportAllowance{&pair})
	require.NoError(t, err)
	answers, err := traffic.WhatIf(t.Context(), []replay.Ask{{Each: pair[:]}})
	require.NoError(t, err)
	sums, crossed := map[int]replay.UserCounts{}, 0
	for _, d := range days[0] {
		u := sums[d.User]
		if u.Rejected == nil {
			u.Rejected = []int64{0, 0}
		}
		u.User, u.Attempts = d.User, u.Attempts+d.Attempts
		u.Rejected[0] += d.Rejected[0]
		u.Rejected[1] += d.Rejected[1]
		sums[d.User] = u
		if d.User == 2 && d.Day <= 1 && d.Rejected[1] > 0 {
			crossed++
		}
	}
	require.Equal(t, 2, crossed, "both days have their part of the burst's rejections")
	for _, want := range answers[0].Each {
		require.Equal(t, want, sums[want.User])
	}
	none, err := traffic.Paired(t.Context(), []*[2]record.ReportAllowance{nil})
	require.NoError(t, err)
	require.Empty(t, none[0])
}
