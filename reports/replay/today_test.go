package replay

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/roster"
	"github.com/invoicespec/brimline/reports/timeline"
)

// most is the most of the visits in any [t, t+span), by looking at every start,
// with stamps rounded down to a unit.
func most(visits []modelVisit, span, unit int64) (most int64) {
	for i, v := range visits {
		start, n := v.at/unit*unit, int64(0)
		for _, o := range visits[i:] {
			if o.at/unit*unit < start+span {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// overlap is the most in flight at once of what got a token, without a cap.
func (m model) overlap(visits []modelVisit) (most int64) {
	var b modelBucket
	for _, v := range visits {
		if v.enters != nil {
			b = v.enters.copy()
		}
		if v.today == "rate" {
			continue
		}
		_, flying := b.decide(record.ReportAllowance{RequestsPerMinute: 1_000_000, Burst: 1_000_000}, v.at, v.hold)
		most = max(most, flying+1)
	}
	return most
}

func TestUtilizationAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		traffic := traffics(t)
		today, err := traffic.Today(t.Context())
		require.NoError(t, err)
		m := model{traffic, false}
		for plan, p := range traffic.Roster.Plans {
			got := today.Plans[plan].Utilization
			if p.Today == nil {
				require.Equal(t, []string{"today's allowance is not known"}, got.Missing)
				continue
			}
			var rate, sustained, concurrency float64
			users, over := 0, 0
			for user := range traffic.Roster.Users {
				visits := on(m.visits(user), plan)
				if len(visits) == 0 {
					continue
				}
				users++
				perMinute := float64(p.Today.RequestsPerMinute)
				rate = max(rate, float64(most(visits, 60*second, milli))/perMinute)
				sustained = max(sustained, float64(most(visits, 3600*second, second))/(60*perMinute))
				if p.Today.Concurrency > 0 {
					x := float64(m.overlap(visits)) / float64(p.Today.Concurrency)
					concurrency = max(concurrency, x)
					refused := m.outcome(visits, *p.Today).concurrency > 0
					// What was in flight when a user came may be more than the plan allows.
					if refused || x <= 1 {
						require.Equal(t, refused, x > 1, "above 1 if and only if something is rejected for concurrency")
					}
				}
				if len(traffic.Roster.Phases[user]) == 1 && m.outcome(visits, *p.Today).rate > 0 {
					over++
				}
			}
			require.Equal(t, users, got.Users)
			if users == 0 {
				continue
			}
			require.Equal(t, []float64{rate, sustained}, []float64{got.Rate.Max, got.Sustained.Max})
			if over > 0 {
				require.Greater(t, got.Burst.Max, 1.0)
			}
			if traffic.Durations && p.Today.Concurrency > 0 {
				require.Equal(t, concurrency, got.Concurrency.Max)
			}
		}
	})
}

// modelEpisodes walks the visits of one user.
func (m model) modelEpisodes(visits []modelVisit, a record.ReportAllowance, e *episodes) (followed, tooEarly int64) {
	type rejection struct{ at, wait int64 }
	var run []rejection
	var admitted []int64
	end := func() {
		if len(run) == 0 {
			return
		}
		e.n++
		e.rejections.add(int64(len(run)))
		e.seconds.add(thousandths(run[len(run)-1].at - run[0].at))
		if i := slices.IndexFunc(admitted, func(at int64) bool { return at >= run[0].at }); i >= 0 {
			e.recover.add(thousandths(admitted[i] - run[0].at))
		} else {
			e.unfinished++
		}
		run, admitted = nil, nil
	}
	var b modelBucket
	var last *rejection
	for _, v := range visits {
		if v.enters != nil {
			b = v.enters.copy()
		}
		if last != nil {
			followed++
			if v.at < last.at+last.wait {
				tooEarly++
			}
		}
		word, _ := b.decide(a, v.at, v.hold)
		last = nil
		if word == "" {
			if len(run) > 0 {
				admitted = append(admitted, v.at)
			}
			continue
		}
		wait := int64(second)
		if word == "rate" {
			f, _ := b.bucket.ToToken(v.at).Float64()
			for float64(wait) < f {
				wait += second
			}
		}
		if n := len(run); n > 0 && v.at-run[n-1].at >= 2*run[n-1].wait {
			end()
		}
		run = append(run, rejection{v.at, wait})
		last = &run[len(run)-1]
	}
	end()
	return followed, tooEarly
}

func TestAnatomyAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		traffic := traffics(t)
		today, err := traffic.Today(t.Context())
		require.NoError(t, err)
		m := model{traffic, false}
		for plan, p := range traffic.Roster.Plans {
			if p.Today == nil {
				require.Zero(t, today.Plans[plan].Anatomy.Rejected)
				continue
			}
			got := today.Plans[plan].Anatomy
			wide, unrated := *p.Today, *p.Today
			wide.Burst, wide.Concurrency = max(wide.Burst, 60*wide.RequestsPerMinute), 0
			unrated.RequestsPerMinute, unrated.Burst = 1_000_000, 1_000_000
			now, hourly, free := m.tally(plan, *p.Today), m.tally(plan, wide), tally{}
			want := record.ReportAnatomy{Users: now.users, Affected: now.affected, Rejected: now.rate + now.concurrency}
			all := newEpisodes()
			for user := range traffic.Roster.Users {
				visits := on(m.visits(user), plan)
				for i, v := range visits {
					if v.enters != nil { // only what is in flight comes along
						visits[i].enters = &modelBucket{ends: v.enters.ends}
					}
				}
				if traffic.Durations && p.Today.Concurrency > 0 {
					free.add(user, m.outcome(visits, unrated))
				}
				visits = on(m.visits(user), plan)
				followed, early := m.modelEpisodes(visits, *p.Today, &all)
				want.Followed, want.TooEarly = want.Followed+followed, want.TooEarly+early
				for _, v := range visits {
					if v.today == "" {
						continue
					}
					at := time.UnixMicro(v.at).UTC()
					want.Hours[3][at.Hour()]++ // 1970 began on a Thursday
					want.Minutes[at.Minute()]++
				}
			}
			want.Episodes = all.record()
			want.Causes.Concurrency = now.concurrency
			want.Causes.Both = min(now.rate, max(0, free.concurrency-now.concurrency))
			want.Causes.Burst = min(now.rate-hourly.rate, now.rate-want.Causes.Both)
			want.Causes.Sustained = now.rate - want.Causes.Both - want.Causes.Burst
			if now.rate+now.concurrency > 0 {
				want.Top1 = float64(now.top) / float64(now.rate+now.concurrency)
				require.Equal(t, record.ReportPoint{X: 1, Y: 1}, got.Lorenz[len(got.Lorenz)-1])
			}
			want.Lorenz, want.Gini, want.Top1Pct, want.Undefined = got.Lorenz, got.Gini, got.Top1Pct, got.Undefined
			require.Equal(t, want, got)
		}
	})
}

// The first limit that each user meets.
func TestBinding(t *testing.T) {
	const minute = 60 * second
	today := record.ReportAllowance{RequestsPerMinute: 1, Burst: 2, Concurrency: 1}
	at := func(pool uint32, at, hold int64, fate timeline.Fate) timeline.Attempt {
		return timeline.Attempt{Pool: pool, At: at, Hold: hold, Fate: fate}
	}
	list := []timeline.Attempt{
		at(0, 0, 0, timeline.Passed),
		at(1, 0, 0, timeline.OutOfOperations),
		at(3, 0, 2*second, timeline.Passed), at(3, second, 0, timeline.Passed),
		at(4, 0, 0, timeline.Overloaded),
		at(5, 0, 0, timeline.Passed), at(5, 0, 0, timeline.Passed), at(5, 0, 0, timeline.Passed), at(5, 0, 0, timeline.OutOfOperations),
	}
	for range 62 {
		list = append(list, at(2, minute, 0, timeline.Passed)) // the third is rejected, the 61st by any burst
	}
	traffic := Traffic{Attempts: timeline.Of(list...), Roster: roster.Single("free", &today, 6), Durations: true}
	got, err := traffic.Today(t.Context())
	require.NoError(t, err)
	require.Equal(t, record.ReportBinding{
		Users: 6, Operations: 1, Burst: 2, Concurrency: 1, Engine: 1, None: 1, Missing: []string{},
	}, got.Plans[0].Binding)
}

func TestOverridesHaveRowsOfTheirOwn(t *testing.T) {
	today := record.ReportAllowance{RequestsPerMinute: 1, Burst: 1}
	own := record.ReportAllowance{RequestsPerMinute: 60, Burst: 2}
	r := roster.Single("free", &today, 2)
	r.Phases[1] = []roster.Phase{{From: r.Phases[0][0].From, Override: &own}}
	var list []timeline.Attempt
	for range 3 {
		list = append(list, timeline.Attempt{Pool: 0}, timeline.Attempt{Pool: 1})
	}
	traffic := Traffic{Attempts: timeline.Of(list...), Roster: r}
	got, err := traffic.Today(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Override{{User: 1, Allowance: own, Attempts: 3, Rejected: 1}}, got.Overrides)
	require.EqualValues(t, 2, got.Plans[0].Anatomy.Rejected)
	require.Equal(t, 1, got.Plans[0].Anatomy.Users)
	seen, err := traffic.Survey(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, seen.Plans[0].LeftOut)
	require.EqualValues(t, 3, seen.Plans[0].Attempts)
}

func TestConcentration(t *testing.T) {
	_, ok := concentrated([]int64{0, 0})
	require.False(t, ok)
	even, ok := concentrated([]int64{2, 2, 2, 2})
	require.True(t, ok)
	require.InDelta(t, 0, even.gini, 1e-12)
	require.Equal(t, 0.25, even.top)
	one, _ := concentrated([]int64{0, 0, 0, 5})
	require.InDelta(t, 0.75, one.gini, 1e-12)
	require.Equal(t, []record.ReportPoint{{}, {X: 0.75}, {X: 1, Y: 1}}, one.lorenz)
	many := make([]int64, 201)
	for i := range many {
		many[i] = int64(i)
	}
	c, _ := concentrated(many)
	require.Equal(t, float64(200+199+198)/20_100, c.percent, "a percent of 201 users is three")
	require.Len(t, c.lorenz, maxPoints)
	require.Equal(t, record.ReportPoint{X: 1, Y: 1}, c.lorenz[maxPoints-1])
}
