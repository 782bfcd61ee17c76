package arrival_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/loadgen/arrival"
)

func rate(t require.TestingT, requests, per int64) arrival.Rate {
	r, err := arrival.NewRate(requests, per)
	require.NoError(t, err)
	return r
}

// processes draws any process whose requests are not closer than the run is long.
func processes(t *rapid.T) arrival.Process {
	requests, per := rapid.Int64Range(1, 3000).Draw(t, "requests"), rapid.Int64Range(1, 1000).Draw(t, "per")
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return arrival.Constant(rate(t, requests, per))
	case 1:
		return arrival.Poisson(rate(t, requests, per))
	case 2:
		c, _ := curves(t)
		return along(t, c)
	case 3:
		list := rapid.SliceOfN(rapid.Int64Range(0, 1e11), 0, 50).Draw(t, "times")
		slices.Sort(list)
		times := make([]time.Duration, len(list))
		for i, at := range list {
			times[i] = time.Duration(at)
		}
		return arrival.Times(times)
	}
	return arrival.Bursts(rapid.Int64Range(1, 50).Draw(t, "size"), time.Duration(rapid.Int64Range(1e8, 1e11).Draw(t, "every")))
}

func dues(p arrival.Process, seed int64, user string, end time.Duration) []time.Duration {
	var list []time.Duration
	for s := p.Schedule(seed, user); ; {
		due := s.Next()
		if due >= end {
			return list
		}
		list = append(list, due)
	}
}

func TestSchedulesArePure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, seed, user := processes(t), rapid.Int64().Draw(t, "seed"), rapid.String().Draw(t, "user")
		first := dues(p, seed, user, time.Minute)
		require.Equal(t, first, dues(p, seed, user, time.Minute))
		require.True(t, slices.IsSorted(first))
		require.EqualValues(t, len(first), p.Count(seed, user, time.Minute))
		require.True(t, len(first) == 0 || first[0] >= 0)
	})
}

func TestConstantKeepsItsRateExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		requests, per := rapid.Int64Range(1, 1_000_000).Draw(t, "requests"), rapid.Int64Range(1, 1000).Draw(t, "per")
		wanted := rapid.Float64Range(0, 5000).Draw(t, "wanted")
		end := time.Duration(wanted * float64(per) / float64(requests) * float64(time.Minute))
		p := arrival.Constant(rate(t, requests, per))
		n := p.Count(rapid.Int64().Draw(t, "seed"), "u", end)
		require.InDelta(t, wanted, n, 1.001)
	})
}

func TestConstantStartsAtItsOwnPhase(t *testing.T) {
	p := arrival.Constant(rate(t, 60, 1)) // one a second
	var phases []float64
	for i := range 1000 {
		list := dues(p, 7, fmt.Sprint("free-", i), 3*time.Second)
		require.Len(t, list, 3)
		require.Less(t, list[0], time.Second)
		require.Equal(t, time.Second, list[1]-list[0])
		phases = append(phases, list[0].Seconds())
	}
	requireUniform(t, phases)
}

// requireUniform looks for a seed or phase that is not spread over [0, 1): the
// Kolmogorov distance of 1,000 uniform numbers stays below 0.062 in 999 of 1,000
// draws, and these draws never change.
func requireUniform(t *testing.T, xs []float64) {
	t.Helper()
	slices.Sort(xs)
	for i, x := range xs {
		require.InDelta(t, float64(i)/float64(len(xs)), x, 0.062)
	}
}

func TestPoissonIsMemoryless(t *testing.T) {
	p := arrival.Poisson(rate(t, 90, 1))
	var gaps, first []float64 // in mean gaps, put through the exponential distribution
	for i := range 1000 {
		list := dues(p, 3, fmt.Sprint("pro-", i), 10*time.Minute)
		gap := func(d time.Duration) float64 { return -math.Expm1(-1.5 * d.Seconds()) }
		first = append(first, gap(list[0]))
		gaps = append(gaps, gap(list[5]-list[4]))
	}
	requireUniform(t, first)
	requireUniform(t, gaps)

	// Counts in ten minutes have mean and variance 900.
	var sum, squares float64
	const users = 500
	for i := range users {
		n := float64(p.Count(3, fmt.Sprint("pro-", i), 10*time.Minute))
		sum += n
		squares += (n - 900) * (n - 900)
	}
	require.InDelta(t, 900, sum/users, 5)
	require.InDelta(t, 1, squares/users/900, 0.2)
}

func TestBurstsComeTogether(t *testing.T) {
	p := arrival.Bursts(3, 10*time.Second)
	list := dues(p, 1, "u", 30*time.Second)
	require.Len(t, list, 9)
	require.Less(t, list[0], 10*time.Second)
	for i, due := range list {
		require.Equal(t, list[0]+time.Duration(i/3)*10*time.Second, due)
	}
	require.EqualValues(t, 3, p.Together())
	require.InDelta(t, 18, p.Peak(), 1e-9)
	require.InDelta(t, 18, p.Expected(time.Minute), 1e-9)
}

// TestSchedulesStayWhatTheyAre pins due times: a run is repeated from its seed
// by later versions too.
func TestSchedulesStayWhatTheyAre(t *testing.T) {
	for name, c := range map[string]struct {
		process arrival.Process
		want    []string
	}{
		"constant": {arrival.Constant(rate(t, 25, 2)), []string{"2.703464s", "7.503464s", "12.303464s"}},
		"poisson":  {arrival.Poisson(rate(t, 25, 2)), []string{"3.975982s", "4.112091s", "8.856631s"}},
		"bursts":   {arrival.Bursts(2, 5*time.Second), []string{"2.816109s", "2.816109s", "7.816109s"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, got := c.process.Schedule(7, "free-001"), []string{}
			for range c.want {
				got = append(got, s.Next().Round(time.Microsecond).String())
			}
			require.Equal(t, c.want, got)
		})
	}
}

// TestShardsMakeTheWhole splits the users any way and finds every request where
// it was.
func TestShardsMakeTheWhole(t *testing.T) {
	type request struct {
		due  time.Duration
		user string
	}
	rapid.Check(t, func(t *rapid.T) {
		seed, end := rapid.Int64().Draw(t, "seed"), 20*time.Second
		users := rapid.IntRange(1, 20).Draw(t, "users")
		shard := rapid.SliceOfN(rapid.IntRange(0, 2), users, users).Draw(t, "shards")
		list := make([]arrival.Process, users)
		for i := range list {
			list[i] = processes(t)
			if list[i].Peak() > 3000 {
				list[i] = arrival.Bursts(2, 3*time.Second)
			}
		}
		merged := func(in func(user int) bool) []request {
			var schedules []*arrival.Schedule
			var names []string
			numbers := map[string]int64{}
			for i, p := range list {
				if in(i) {
					names = append(names, fmt.Sprintf("u-%03d", i))
					schedules = append(schedules, p.Schedule(seed, names[len(names)-1]))
				}
			}
			var all []request
			for tl := arrival.NewTimeline(schedules, end); ; {
				r, ok := tl.Next()
				if !ok {
					return all
				}
				require.True(t, len(all) == 0 || all[len(all)-1].due <= r.Due, "due times descend")
				require.Equal(t, numbers[names[r.User]], r.Number)
				numbers[names[r.User]]++
				all = append(all, request{r.Due, names[r.User]})
			}
		}
		whole := merged(func(int) bool { return true })
		var parts []request
		for s := range 3 {
			parts = append(parts, merged(func(i int) bool { return shard[i] == s })...)
		}
		slices.SortStableFunc(parts, func(a, b request) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.user, b.user)) })
		require.Equal(t, whole, parts)
		n := int64(0)
		for i, p := range list {
			n += p.Count(seed, fmt.Sprintf("u-%03d", i), end)
		}
		require.EqualValues(t, n, len(whole))
	})
}

func TestRatesOutOfRangeAreRefused(t *testing.T) {
	for _, c := range [][2]int64{{0, 1}, {-1, 1}, {1, 0}, {1, 1_000_001}, {1_000_001, 1}, {math.MaxInt64, 1}} {
		_, err := arrival.NewRate(c[0], c[1])
		require.Error(t, err, c)
	}
	_, err := arrival.NewRate(1_000_000, 1)
	require.NoError(t, err)
}

func TestSchedulesDoNotWrapAround(t *testing.T) {
	slow := arrival.Bursts(1, math.MaxInt64/2).Schedule(1, "u")
	last := time.Duration(0)
	for range 10 {
		due := slow.Next()
		require.GreaterOrEqual(t, due, last)
		last = due
	}
	require.EqualValues(t, math.MaxInt64, last)
}

func ExampleTimeline() {
	perMinute, _ := arrival.NewRate(6, 1)
	var schedules []*arrival.Schedule
	for _, user := range []string{"free-001", "free-002"} {
		schedules = append(schedules, arrival.Constant(perMinute).Schedule(7, user))
	}
	for t := arrival.NewTimeline(schedules, 20*time.Second); ; {
		r, ok := t.Next()
		if !ok {
			return
		}
		fmt.Println(r.Due.Round(time.Millisecond), "user", r.User)
	}
	// Output:
	// 5.632s user 0
	// 9.867s user 1
	// 15.632s user 0
	// 19.867s user 1
}
