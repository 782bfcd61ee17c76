package reassess

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/replay"
	"github.com/invoicespec/brimline/reports/roster"
)

// covered is in how many of 100 draws an interval held the truth of its
// population.
type covered struct{ requests, kornGraubard, users float64 }

// study draws users from a population again and again. Where a draw shows no
// rejection there is no Korn-Graubard interval, which is no hit.
func study(population []met, users, draws int, seed uint64) (c covered) {
	dice := rand.New(rand.NewPCG(seed, uint64(users)))
	all := func(list []met) (attempts, rejected, affected int) {
		for _, m := range list {
			attempts += int(m.attempts)
			rejected += int(m.rejected())
			if m.rejected() > 0 {
				affected++
			}
		}
		return attempts, rejected, affected
	}
	attempts, rejected, affected := all(population)
	share, hit := float64(rejected)/float64(attempts), float64(affected)/float64(len(population))
	holds := func(i [2]float64, truth float64) float64 {
		if i[0] <= truth && truth <= i[1] {
			return 100 / float64(draws)
		}
		return 0
	}
	drawn := make([]met, users)
	for range draws {
		for i := range drawn {
			drawn[i] = population[dice.IntN(len(population))]
		}
		n, k, u := all(drawn)
		c.requests += holds(replay.Wilson(k, n), share)
		c.users += holds(replay.Wilson(u, users), hit)
		if i, _ := kornGraubard(drawn); i != nil {
			c.kornGraubard += holds(*i, share)
		}
	}
	return c
}

// TestCoverage: where a few users make most attempts, an interval of requests that
// takes them as independent is nearly always wrong, one that does not is often
// wrong while few users carry it, and one of users holds what it says. This is why
// decisions rest on users.
func TestCoverage(t *testing.T) {
	dice := rand.New(rand.NewPCG(11, 0))
	population := make([]met, 2000)
	for i := range population {
		n := min(int64(1/(1-dice.Float64())), 2000) // few are very busy
		population[i].attempts = n
		population[i].rate = max(0, n-20)
	}
	few, many := study(population, 200, 400, 1), study(population, 1000, 400, 1)
	t.Logf("200 users: %+v; 1000 users: %+v", few, many)
	require.Less(t, few.requests, 30.)
	require.Less(t, many.requests, 30.)
	require.Greater(t, few.kornGraubard, few.requests+20)
	require.Greater(t, many.kornGraubard, many.requests+20)
	require.GreaterOrEqual(t, few.users, 92.)
	require.GreaterOrEqual(t, many.users, 92.)

	even := make([]met, 2000) // nobody is much busier than others: all of them hold
	for i := range even {
		even[i].attempts = 10 + dice.Int64N(10)
		if dice.IntN(5) == 0 {
			even[i].rate = 1
		}
	}
	c := study(even, 500, 400, 2)
	t.Logf("even: %+v", c)
	require.GreaterOrEqual(t, c.kornGraubard, 92.)
	require.GreaterOrEqual(t, c.users, 92.)
}

// TestCoverageERDDAP is the same on the clients of a production API at 10/10, as
// if they were the population. The shares were found by other means, with other
// draws.
func TestCoverageERDDAP(t *testing.T) {
	folder := os.Getenv("BRIMLINE_DATA")
	if folder == "" {
		t.Skip("BRIMLINE_DATA is unset: it names the folder that holds erddap/access.log.gz")
	}
	log, err := accesslog.Read(t.Context(), []accesslog.Source{accesslog.File(filepath.Join(folder, "erddap", "access.log.gz"))}, accesslog.Options{})
	require.NoError(t, err)
	today := record.ReportAllowance{RequestsPerMinute: 10, Burst: 10}
	answers, err := replay.TrafficOf(log, roster.Single("", &today, log.Pools)).WhatIf(t.Context(), []replay.Ask{{Each: []record.ReportAllowance{today}}})
	require.NoError(t, err)
	var population []met
	for _, u := range answers[0].Each {
		population = append(population, met{attempts: u.Attempts, rate: u.Rejected[0]})
	}
	require.Len(t, population, 917)
	few, many := study(population, 200, 1000, 1), study(population, 1000, 1000, 1)
	require.InDelta(t, 5.9, few.requests, 3)
	require.InDelta(t, 47.9, few.kornGraubard, 5)
	require.InDelta(t, 97.1, few.users, 4) // of none the rule of three's 3/200 is just short of the truth, which Wilson's bound is not
	require.InDelta(t, 11.7, many.requests, 4)
	require.InDelta(t, 88.1, many.kornGraubard, 4)
	require.InDelta(t, 93.6, many.users, 3)
}
