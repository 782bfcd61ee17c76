package replay_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/replay"
	"github.com/invoicespec/brimline/reports/roster"
)

// erddap reads the access log of a production data API, which is not part of
// this repository.
func erddap(t *testing.T) *accesslog.Log {
	t.Helper()
	folder := os.Getenv("BRIMLINE_DATA")
	if folder == "" {
		t.Skip("BRIMLINE_DATA is unset: it names the folder that holds erddap/access.log.gz")
	}
	log, err := accesslog.Read(t.Context(), []accesslog.Source{accesslog.File(filepath.Join(folder, "erddap", "access.log.gz"))}, accesslog.Options{})
	require.NoError(t, err)
	return log
}

// round2 is a share in percent, or a number of tokens, to two decimals.
func round2(x float64) float64  { return math.Round(x*100) / 100 }
func percent(x float64) float64 { return round2(100 * x) }

func percents(interval [2]float64) [2]float64 {
	return [2]float64{percent(interval[0]), percent(interval[1])}
}

func TestERDDAPLoader(t *testing.T) {
	log := erddap(t)
	q := log.Quality
	require.Equal(t, record.FormatCombined, q.Format)
	require.EqualValues(t, 16_275, q.Lines)
	require.EqualValues(t, 10_479, q.Entries)
	require.EqualValues(t, 85, q.Extra)
	require.Equal(t, []record.Count{{Name: "no client and time at its start", N: 5_796}}, q.Dropped)
	require.Zero(t, q.Malformed)
	require.Equal(t, 917, q.Clients)
	require.Equal(t, time.Date(2024, 5, 12, 0, 0, 17, 0, time.UTC), q.First)
	require.Equal(t, time.Date(2024, 5, 20, 23, 54, 29, 0, time.UTC), q.Last)
	require.Equal(t, 215.90, round2(q.Last.Sub(q.First).Hours()))
	require.Zero(t, q.BackwardSteps)
	require.EqualValues(t, 1_000_000, q.ResolutionMicros)
	require.Equal(t, 46.8, math.Round(1000*q.TieShare)/10)
	require.EqualValues(t, 8, q.MostPerSecond)
	require.EqualValues(t, 3_600, q.LargestGap)
	require.Equal(t, 4.57, round2(q.EffectiveClients))
	require.EqualValues(t, 4_650, q.BusiestEntries)
	require.Equal(t, []record.Count{
		{Name: "200", N: 9_472}, {Name: "404", N: 758}, {Name: "499", N: 120}, {Name: "301", N: 76}, {Name: "302", N: 29}, {Name: "400", N: 24},
	}, q.Statuses)
	require.Equal(t, []record.Count{{Name: "GET", N: 10_436}, {Name: "POST", N: 36}, {Name: "HEAD", N: 7}}, q.Methods)
	require.EqualValues(t, 10_479, log.Attempts.Len())
}

func single(t *testing.T, log *accesslog.Log, rate, burst int64) record.Replay {
	t.Helper()
	r, err := replay.Run(t.Context(), log, replay.Question{Rates: []int64{rate}, Bursts: []int64{burst}})
	require.NoError(t, err)
	return r
}

func TestERDDAPTable(t *testing.T) {
	log := erddap(t)
	for _, want := range []struct {
		rate, burst   int64
		rejected      int64
		share         float64
		users         int
		usersShare    float64
		top           float64 // 0: not known beforehand
		ok            int     // 0: not known beforehand
		okShare       float64
		okLow, okHigh float64
	}{
		{5, 5, 5_078, 48.46, 25, 2.73, 61.9, 0, 0, 0, 0},
		{10, 10, 3_292, 31.42, 17, 1.85, 62.0, 900, 98.15, 97.05, 98.84},
		{15, 15, 1_801, 17.19, 13, 1.42, 57.1, 904, 98.58, 97.59, 99.17},
		{20, 20, 895, 8.54, 3, 0.33, 41.8, 914, 99.67, 99.04, 99.89},
		{60, 60, 155, 1.48, 3, 0.33, 71.0, 0, 0, 0, 0},
		{300, 300, 0, 0, 0, 0, 0, 917, 100, 99.67, 100},
		{10, 3, 4_132, 39.43, 27, 2.94, 0, 0, 0, 0, 0},
		{45, 15, 599, 5.72, 3, 0.33, 0, 914, 99.67, 99.04, 99.89},
		{10, 600, 0, 0, 0, 0, 0, 917, 100, 99.67, 100},
		{300, 5, 45, 0.43, 1, 0.11, 0, 0, 0, 0, 0},
	} {
		t.Run(fmt.Sprintf("%d per minute, burst %d", want.rate, want.burst), func(t *testing.T) {
			r := single(t, log, want.rate, want.burst)
			require.EqualValues(t, 10_479, r.Entries)
			require.EqualValues(t, 10_479, r.Attempts)
			require.Equal(t, 917, r.Users)
			require.Equal(t, want.rejected, r.Rejected)
			require.Equal(t, want.rejected, r.RejectedRate)
			require.Zero(t, r.RejectedConcurrency)
			require.Equal(t, want.share, percent(r.RejectedShare))
			require.Equal(t, want.users, r.UsersAffected)
			require.Equal(t, want.usersShare, percent(r.UsersAffectedShare))
			if want.top > 0 {
				require.Equal(t, want.top, math.Round(1000*r.TopShare)/10)
			}
			if want.ok > 0 {
				require.Equal(t, want.ok, r.UsersOK)
				require.Equal(t, want.okShare, percent(r.UsersOKShare))
				require.Equal(t, [2]float64{want.okLow, want.okHigh}, percents(r.UsersOK95))
			}
		})
	}

	r := single(t, log, 10, 10)
	require.EqualValues(t, 2_041, r.TopRejected)
	require.Equal(t, [2]float64{1.16, 2.95}, percents(r.UsersAffected95))
}

func TestERDDAPGrid(t *testing.T) {
	log := erddap(t)
	q := replay.Question{Rates: []int64{10, 20, 30, 60, 120, 300}, Bursts: []int64{10, 20, 40, 100}}
	r, err := replay.Run(t.Context(), log, q)
	require.NoError(t, err)
	require.Nil(t, r.Cell)

	want := [6][4][2]int64{ // rejected, users affected
		{{3_292, 17}, {2_521, 12}, {1_729, 4}, {531, 2}},
		{{1_472, 14}, {895, 3}, {570, 3}, {298, 2}},
		{{902, 9}, {660, 3}, {471, 3}, {216, 2}},
		{{538, 3}, {404, 3}, {237, 3}, {32, 1}},
		{{315, 2}, {219, 2}, {121, 2}, {6, 1}},
		{{35, 1}, {15, 1}, {0, 0}, {0, 0}},
	}
	require.Len(t, r.Cells, 24)
	for i, rate := range q.Rates {
		for j, burst := range q.Bursts {
			c := r.Cells[i*len(q.Bursts)+j]
			require.Equal(t, [2]int64{rate, burst}, [2]int64{c.Rate, c.Burst})
			require.Equal(t, want[i][j], [2]int64{c.Rejected, int64(c.UsersAffected)}, "%d per minute, burst %d", rate, burst)
		}
	}
}

// The quantiles are by nearest rank: interpolated ones would differ at p99.
func TestERDDAPBurstNeeded(t *testing.T) {
	log := erddap(t)
	r, err := replay.Run(t.Context(), log, replay.Question{Rates: []int64{5, 10, 20, 60, 300}, Bursts: []int64{10}})
	require.NoError(t, err)
	for i, want := range []record.Needs{
		{Rate: 5, P50: 1, P90: 1, P95: 2, P99: 24.83, Max: 400.58},
		{Rate: 10, P50: 1, P90: 1, P95: 1.67, P99: 22.5, Max: 372.17},
		{Rate: 20, P50: 1, P90: 1, P95: 1, P99: 15.33, Max: 315.33},
		{Rate: 60, P50: 1, P90: 1, P95: 1, P99: 2, Max: 132},
		{Rate: 300, P50: 1, P90: 1, P95: 1, P99: 2, Max: 28},
	} {
		got := r.BurstNeeded[i]
		require.Equal(t, want, record.Needs{
			Rate: got.Rate, P50: round2(got.P50), P90: round2(got.P90), P95: round2(got.P95), P99: round2(got.P99), Max: round2(got.Max),
		})
	}
}

// How much of 10 a minute, burst 10, the log's clients take, and what the
// rejections under it are made of.
func TestERDDAPToday(t *testing.T) {
	log := erddap(t)
	ten := record.ReportAllowance{RequestsPerMinute: 10, Burst: 10}
	traffic := replay.TrafficOf(log, roster.Single("free", &ten, log.Pools))
	today, err := traffic.Today(t.Context())
	require.NoError(t, err)

	u := today.Plans[0].Utilization
	require.Equal(t, 917, u.Users)
	require.Equal(t, 37.22, round2(u.Burst.Max), "372.17 of a burst of 10")
	require.Equal(t, 2.25, round2(u.Burst.P99))
	require.Equal(t, []float64{2.8, 17.5}, []float64{u.Rate.P99, u.Rate.Max}, "28 and 175 attempts in 60 s")
	require.Nil(t, u.Concurrency)
	require.Equal(t, []string{"concurrency: the log has no durations that could carry it"}, u.Missing)

	a := today.Plans[0].Anatomy
	require.EqualValues(t, 3_292, a.Rejected)
	require.Equal(t, 17, a.Affected)
	require.Equal(t, 62.0, round2(100*a.Top1))
	require.Equal(t, record.ReportCauses{Burst: 3_292}, a.Causes, "an hour of burst makes all of them vanish")
	var sum int64
	for _, n := range a.Minutes {
		sum += n
	}
	require.Equal(t, a.Rejected, sum)
	require.Equal(t, record.ReportBinding{Users: 917, Burst: 17, None: 900, Missing: []string{}}, today.Plans[0].Binding)
}
