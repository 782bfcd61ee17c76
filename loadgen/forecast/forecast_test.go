package forecast_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/loadgen/forecast"
	"github.com/invoicespec/brimline/loadgen/traffic"
	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
)

var allowances = map[string]target.Allowance{
	"free":   {RequestsPerMinute: 10, Burst: 10, Concurrency: 2},
	"narrow": {RequestsPerMinute: 6000, Burst: 50, Concurrency: 1},
}

// exact decides as the contract does.
func exact(a oracle.Allowance) forecast.Bucket {
	allowance, err := policy.NewAllowance(a.RequestsPerMinute, a.Burst, a.Concurrency)
	if err != nil {
		panic(err)
	}
	var state bucket.State
	return func(at time.Duration, inFlight int64) (forecast.Outcome, time.Duration) {
		var d admission.Decision
		state, d = admission.Decide(state, inFlight, allowance, bucket.Instant(at.Microseconds()))
		switch d.Outcome {
		case admission.Admitted:
			return forecast.Admitted, 0
		case admission.RateRejected:
			return forecast.RateRejected, time.Duration((d.ToToken+999_999)/1_000_000) * time.Second
		}
		return forecast.ConcurrencyRejected, time.Second
	}
}

func scenario(t require.TestingT, text string) (traffic.Scenario, []traffic.Member) {
	s, err := traffic.Parse("load.yaml", []byte(text))
	require.NoError(t, err)
	members, err := s.Cast(allowances)
	require.NoError(t, err)
	return s, members
}

func run(t require.TestingT, text string, latency time.Duration) forecast.Plan {
	s, members := scenario(t, text)
	p, err := forecast.Run(context.Background(), forecast.Question{
		Members: members, Duration: s.Duration, Seed: s.Seed, Limiter: exact, Latency: latency, Slow: 2 * time.Second,
	})
	require.NoError(t, err)
	return p
}

// event is a request or the end of an answer, in a model that goes user by user
// through the reference's live limiter.
type event struct {
	at     time.Duration
	ends   string // the request whose answer ends then
	number int
}

// lived is what a user meets who asks on whatever they are told, at a limiter on a
// clock that is moved by hand.
func lived(t require.TestingT, m traffic.Member, seed int64, d, latency, slow time.Duration) (c forecast.Count) {
	now := clock.NewFrozen(time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC))
	live := limiter.NewLocal(now, limiter.Config{})
	allowance, err := policy.NewAllowance(m.Allowance.RequestsPerMinute, m.Allowance.Burst, m.Allowance.Concurrency)
	require.NoError(t, err)
	var events []event
	for s, n := m.Process.Schedule(seed, m.Name), 0; ; n++ {
		due := s.Next()
		if due >= d {
			break
		}
		events = append(events, event{at: due, number: n})
	}
	passed := time.Duration(0)
	for len(events) > 0 {
		first := 0
		for i, e := range events {
			if e.at < events[first].at || e.at == events[first].at && e.ends != "" && events[first].ends == "" {
				first = i
			}
		}
		e := events[first]
		events = slices.Delete(events, first, first+1)
		now.Advance(e.at.Truncate(time.Microsecond) - passed)
		passed = e.at.Truncate(time.Microsecond)
		if e.ends != "" {
			require.NoError(t, live.Release(context.Background(), m.Name, e.ends))
			continue
		}
		c.Planned++
		operation := m.Operation(int64(e.number))
		if operation == traffic.Unauthenticated {
			c.Strangers++
			continue
		}
		id := fmt.Sprint(e.number)
		decision, err := live.Admit(context.Background(), m.Name, allowance, id)
		require.NoError(t, err)
		switch decision.Outcome {
		case admission.Admitted:
			c.Admitted++
			took := latency
			if operation == traffic.Slow {
				took += slow
			}
			events = append(events, event{at: e.at + took, ends: id})
		case admission.RateRejected:
			c.RejectedRate++
		default:
			c.RejectedConcurrency++
		}
	}
	return c
}

// TestTheForecastIsWhatALimiterDoes holds it against the reference's live limiter,
// user by user.
func TestTheForecastIsWhatALimiterDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan := rapid.SampledFrom([]string{"free", "narrow"}).Draw(t, "plan")
		arrives := rapid.SampledFrom([]string{
			"arrival: poisson, rate: 2x", "arrival: constant, rate: 60", "arrival: { bursts: 15, every: 5s }",
			"arrival: { ramp: { from: 0, to: 120 }, process: poisson }",
		}).Draw(t, "arrival")
		mix := rapid.SampledFrom([]string{"", ", mix: { valid: 5, slow: 1, unauthenticated: 1 }"}).Draw(t, "mix")
		text := fmt.Sprintf("duration: 30s\nseed: %d\npopulations:\n  - { plan: %s, users: %d, %s%s, on-429: ignore }\n",
			rapid.Int64().Draw(t, "seed"), plan, rapid.IntRange(1, 5).Draw(t, "users"), arrives, mix)
		latency := time.Duration(rapid.Int64Range(0, 3e9).Draw(t, "latency")).Truncate(time.Microsecond)
		p := run(t, text, latency)
		s, members := scenario(t, text)
		var want forecast.Count
		for _, m := range members {
			c := lived(t, m, s.Seed, s.Duration, latency, 2*time.Second)
			want.Planned += c.Planned
			want.Strangers += c.Strangers
			want.Admitted += c.Admitted
			want.RejectedRate += c.RejectedRate
			want.RejectedConcurrency += c.RejectedConcurrency
		}
		got := p.All
		got.Peak = 0
		require.Equal(t, want, got)
		require.Equal(t, p.All, p.Populations[0])
		require.Equal(t, p.All, p.Plans[0].Count)
	})
}

// TestManners: who waits is refused less, and what they do not ask is counted.
func TestManners(t *testing.T) {
	with := func(reaction string) forecast.Count {
		c := run(t, "duration: 5m\nseed: 7\npopulations:\n  - { plan: free, users: 20, arrival: constant, rate: 60, on-429: "+reaction+" }\n", 50*time.Millisecond).All
		require.Equal(t, c.Planned, c.HeldOff+c.Admitted+c.RejectedRate+c.RejectedConcurrency)
		require.EqualValues(t, 6000, c.Planned)
		return c
	}
	ignore, obey := with("ignore"), with("obey-retry-after")
	require.Zero(t, ignore.HeldOff)
	// A token every six seconds and 10 at the start: 60 of 300 each.
	require.InDelta(t, 20*60, ignore.Admitted, 20)
	rate, concurrency := ignore.Rejected()
	require.InDelta(t, 0.8, rate, 0.01)
	require.Zero(t, concurrency)
	// After each wait one is let in, and the next is refused.
	require.InDelta(t, obey.Admitted-20*10, obey.RejectedRate, 60)
	// 1 s, 2 s, 4 s: two or three are refused until one is let in.
	backoff := with("{ backoff: { first: 1s, max: 1m } }")
	require.Greater(t, backoff.RejectedRate, obey.RejectedRate)
	require.Less(t, backoff.RejectedRate, 3*obey.RejectedRate)
	require.LessOrEqual(t, with("obey-with-jitter").RejectedRate, obey.RejectedRate)
	gone := with("{ give-up-after: 3 }")
	// Ten at the start, and one or two more before three in a row are refused.
	require.InDelta(t, 20*11, gone.Admitted, 20)
	require.InDelta(t, 20*4, gone.RejectedRate, 20)
}

// TestAnswersComeLate: who waits for an answer does not know yet that it is a 429.
func TestAnswersComeLate(t *testing.T) {
	text := "duration: 10s\nseed: 7\npopulations:\n  - { plan: free, users: 1, arrival: constant, rate: 600, on-429: obey-retry-after }\n"
	quick, slow := run(t, text, 0).All, run(t, text, 2*time.Second).All
	require.Less(t, quick.RejectedRate, int64(5))
	require.Greater(t, slow.RejectedRate+slow.RejectedConcurrency, int64(20), "those of two seconds are on their way already")
}

func TestPeak(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := fmt.Sprintf("duration: 10s\nseed: %d\npopulations:\n  - { plan: free, users: %d, arrival: poisson, rate: %d, on-429: ignore }\n  - { plan: narrow, users: 2, arrival: { bursts: 3, every: 1s }, on-429: ignore }\n",
			rapid.Int64().Draw(t, "seed"), rapid.IntRange(1, 9).Draw(t, "users"), rapid.IntRange(1, 300).Draw(t, "rate"))
		s, members := scenario(t, text)
		var dues []time.Duration
		for _, m := range members {
			for schedule := m.Process.Schedule(s.Seed, m.Name); ; {
				due := schedule.Next()
				if due >= s.Duration {
					break
				}
				dues = append(dues, due)
			}
		}
		most := int64(0)
		for _, from := range dues { // the busiest second can begin with a request
			n := int64(0)
			for _, due := range dues {
				if due >= from && due < from+time.Second {
					n++
				}
			}
			most = max(most, n)
		}
		peak, err := forecast.Peak(context.Background(), members, s.Duration, s.Seed)
		require.NoError(t, err)
		require.Equal(t, most, peak)
		p := run(t, text, 0)
		require.Equal(t, most, p.All.Peak)
		require.EqualValues(t, len(dues), p.All.Planned)
		require.GreaterOrEqual(t, p.Populations[1].Peak, int64(3))
		require.Equal(t, []string{"free", "narrow"}, []string{p.Plans[0].Plan, p.Plans[1].Plan})
	})
}

func TestItCanBeStopped(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	s, members := scenario(t, "duration: 10s\npopulations:\n  - { plan: free, users: 1, arrival: poisson, rate: 60, on-429: ignore }\n")
	_, err := forecast.Peak(ctx, members, s.Duration, s.Seed)
	require.ErrorIs(t, err, context.Canceled)
}
