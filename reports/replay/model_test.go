package replay

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/reference/bucket/buckettest"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/roster"
	"github.com/invoicespec/brimline/reports/timeline"
)

// The model is the engine told a second time, one user after another: buckets in
// rational numbers, requests in flight in a list, nothing shared with the engine
// and nothing streamed.
type model struct {
	Traffic
	kept bool
}

// modelBucket is a bucket and what is in flight.
type modelBucket struct {
	bucket buckettest.Model
	ends   []int64
}

func (b modelBucket) copy() modelBucket { return modelBucket{b.bucket, slices.Clone(b.ends)} }

// decide tells "", "rate" or "concurrency", and how many were in flight before.
func (b *modelBucket) decide(a record.ReportAllowance, at, hold int64) (word string, flying int64) {
	for _, end := range b.ends {
		if end > at {
			flying++
		}
	}
	if !b.bucket.Take(a.RequestsPerMinute, a.Burst, at) {
		return "rate", flying
	}
	if a.Concurrency > 0 && flying >= a.Concurrency {
		return "concurrency", flying
	}
	if hold != timeline.NoHold {
		b.ends = append(b.ends, at+hold)
	}
	return "", flying
}

// modelVisit is an attempt of a user on a plan.
type modelVisit struct {
	at, hold int64
	enters   *modelBucket // what the user brings: the first attempt of a phase, or after a restart
	moved    bool         // the first of a phase
	today    string
	override bool
	plan     int
}

// visits are all attempts of a user, decided under the allowances of today.
func (m model) visits(user int) (list []modelVisit) {
	var spine modelBucket
	last, phase := int64(math.MinInt64), -1
	for batch := range m.Attempts.Batches(context.Background()) {
		for _, a := range batch {
			if int(m.Roster.UserOf[a.Pool]) != user || m.kept && a.Refused() {
				continue
			}
			v := modelVisit{at: a.At, hold: a.Hold}
			restarted := slices.ContainsFunc(m.Roster.Restarts, func(r int64) bool { return last < r && r <= a.At })
			now := 0
			for i, p := range m.Roster.Phases[user] {
				if p.From <= a.At {
					now = i
				}
			}
			if restarted {
				spine = modelBucket{}
			}
			if v.moved = now != phase; v.moved || restarted {
				brought := spine.copy()
				v.enters = &brought
			}
			p := m.Roster.Phases[user][now]
			v.plan, v.override = p.Plan, p.Override != nil
			allowance := m.Roster.Plans[p.Plan].Today
			if v.override {
				allowance = p.Override
			}
			if !m.Durations {
				v.hold = timeline.NoHold
			}
			if allowance != nil {
				v.today, _ = spine.decide(*allowance, a.At, v.hold)
			}
			last, phase = a.At, now
			list = append(list, v)
		}
	}
	return list
}

// on are the visits to one plan.
func on(list []modelVisit, plan int) []modelVisit {
	return slices.DeleteFunc(slices.Clone(list), func(v modelVisit) bool { return v.plan != plan || v.override })
}

// outcome is what becomes of a user's visits to a plan under an allowance.
func (m model) outcome(visits []modelVisit, a record.ReportAllowance) (o outcome) {
	var b modelBucket
	for _, v := range visits {
		if v.enters != nil {
			b = v.enters.copy()
		}
		o.attempts++
		switch word, _ := b.decide(a, v.at, v.hold); word {
		case "rate":
			o.rate++
		case "concurrency":
			o.concurrency++
		}
	}
	return o
}

func (m model) tally(plan int, a record.ReportAllowance) (t tally) {
	for user := range m.Roster.Users {
		t.add(user, m.outcome(on(m.visits(user), plan), a))
	}
	return t
}

// allowances are such as decide differently within a few dozen attempts.
func allowances(t *rapid.T, name string, capped bool) record.ReportAllowance {
	a := record.ReportAllowance{
		RequestsPerMinute: rapid.SampledFrom([]int64{1, 7, 10, 60, 600}).Draw(t, name+" rate"),
		Burst:             rapid.Int64Range(1, 6).Draw(t, name+" burst"),
	}
	if capped {
		a.Concurrency = rapid.Int64Range(1, 3).Draw(t, name+" concurrency")
	}
	return a
}

// traffics draws traffic of several users on two plans, with changes of plan,
// overrides, several clients of one user, clients of nobody, restarts and
// requests that take their time.
func traffics(t *rapid.T) Traffic {
	durations := rapid.Bool().Draw(t, "durations")
	r := &roster.Roster{Users: rapid.IntRange(1, 5).Draw(t, "users")}
	for range 2 {
		a := allowances(t, "today", durations && rapid.Bool().Draw(t, "capped"))
		r.Plans = append(r.Plans, roster.Plan{Today: &a})
	}
	if rapid.IntRange(0, 4).Draw(t, "unknown") == 0 {
		r.Plans[1].Today = nil
	}
	pools := r.Users + 2
	for range pools {
		r.UserOf = append(r.UserOf, int32(rapid.IntRange(-1, r.Users-1).Draw(t, "user")))
	}
	const span = 400 * second
	instant := rapid.Int64Range(0, span)
	for range r.Users {
		phases := []roster.Phase{{From: math.MinInt64, Plan: rapid.IntRange(0, 1).Draw(t, "plan")}}
		changes := rapid.SliceOfN(instant, 0, 3).Draw(t, "changes")
		slices.Sort(changes)
		for _, at := range slices.Compact(changes) {
			p := roster.Phase{From: at, Plan: rapid.IntRange(0, 1).Draw(t, "plan")}
			if rapid.IntRange(0, 3).Draw(t, "override") == 0 {
				a := allowances(t, "override", false)
				p.Override = &a
			}
			phases = append(phases, p)
		}
		r.Phases = append(r.Phases, phases)
	}
	r.Restarts = rapid.SliceOfN(instant, 0, 2).Draw(t, "restarts")
	slices.Sort(r.Restarts)
	at, list := int64(0), []timeline.Attempt{}
	for range rapid.IntRange(1, 80).Draw(t, "attempts") {
		at += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, second), rapid.Int64Range(0, 10*second), rapid.SampledFrom([]int64{second, 6 * second})).Draw(t, "pause")
		list = append(list, timeline.Attempt{
			At: at, Pool: uint32(rapid.IntRange(0, pools-1).Draw(t, "pool")),
			Hold: rapid.OneOf(rapid.Just(int64(timeline.NoHold)), rapid.Int64Range(0, 9*second)).Draw(t, "hold"),
			Fate: rapid.SampledFrom([]timeline.Fate{timeline.Passed, timeline.Passed, timeline.RefusedRate, timeline.OutOfOperations}).Draw(t, "fate"),
		})
	}
	return Traffic{Attempts: timeline.Of(list...), Roster: r, Durations: durations}
}

// What is streamed in one pass, over several workers and in parts, is what the
// model says of each user alone.
func TestWhatIfAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		traffic := traffics(t)
		var asks []Ask
		for range traffic.Roster.Plans {
			var ask Ask
			for range rapid.IntRange(1, 6).Draw(t, "cells") {
				ask.Cells = append(ask.Cells, allowances(t, "cell", traffic.Durations && rapid.Bool().Draw(t, "capped cell")))
			}
			ask.Each = ask.Cells[:1]
			asks = append(asks, ask)
		}
		memory := rapid.SampledFrom([]int{1, 300, maxMemory}).Draw(t, "memory")
		answers, seen, err := traffic.whatIf(t.Context(), asks, memory)
		require.NoError(t, err)
		alone, err := traffic.Survey(t.Context())
		require.NoError(t, err)
		require.Equal(t, alone, seen, "counted beside the replay or alone")
		all, kept := model{traffic, false}, model{traffic, true}
		for plan, ask := range asks {
			for i, a := range ask.Cells {
				want := all.tally(plan, a)
				got := answers[plan].Cells[i]
				require.Equal(t, want.summary(seen.Plans[plan].rank), got.Rejections, "plan %d, %v", plan, a)
				if seen.Plans[plan].Refused > 0 {
					without := kept.tally(plan, a)
					require.Equal(t, without.summary(seen.Plans[plan].rank), *got.WithoutRefused)
				}
			}
			for _, u := range answers[plan].Each {
				o := all.outcome(on(all.visits(u.User), plan), ask.Each[0])
				require.Equal(t, []int64{o.attempts, o.rate + o.concurrency}, []int64{u.Attempts, u.Rejected[0]})
			}
			require.Len(t, answers[plan].Each, seen.Plans[plan].Users)
		}
	})
}

// loop sends one request after another, each again and again until it is
// admitted.
func (m model) loop(visits []modelVisit, a record.ReportAllowance) (sum record.ReportClosed, delays []int64) {
	var b modelBucket
	free, restarted := int64(math.MinInt64), int64(math.MinInt64) // when the client is done with what came before
	for _, v := range visits {
		if v.moved && free <= v.at {
			b, restarted = v.enters.copy(), v.at
		}
		for t := max(v.at, free); ; {
			if t > m.Attempts.Last() {
				sum.Unserved++
				free = math.MaxInt64
				break
			}
			for _, r := range m.Roster.Restarts {
				if restarted < r && r <= t {
					b, restarted = modelBucket{}, r
				}
			}
			sum.Sendings++
			word, _ := b.decide(a, t, v.hold)
			if word == "" {
				delays, free = append(delays, t-v.at), t
				break
			}
			sum.Rejected++
			wait := int64(1)
			if word == "rate" {
				wait = max(1, (buckettest.Ceil(b.bucket.ToToken(t)).Int64()+second-1)/second)
			}
			t += wait * second
		}
	}
	return sum, delays
}

func TestClosedLoopAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		traffic := traffics(t)
		var asks []Ask
		for range traffic.Roster.Plans {
			a := allowances(t, "loop", traffic.Durations && rapid.Bool().Draw(t, "capped loop"))
			asks = append(asks, Ask{ClosedLoop: []record.ReportAllowance{a}, Cells: []record.ReportAllowance{a}})
		}
		answers, err := traffic.WhatIf(t.Context(), asks)
		require.NoError(t, err)
		m := model{traffic, false}
		for plan, ask := range asks {
			a := ask.ClosedLoop[0]
			want, delays := record.ReportClosed{Rate: a.RequestsPerMinute, Burst: a.Burst, Concurrency: a.Concurrency}, spread{}
			for user := range traffic.Roster.Users {
				sum, late := m.loop(on(m.visits(user), plan), a)
				want.Sendings += sum.Sendings
				want.Rejected += sum.Rejected
				want.Unserved += sum.Unserved
				if sum.Rejected > 0 {
					want.UsersAffected++
				}
				for _, d := range late {
					delays.add(thousandths(d))
				}
			}
			want.Delay = delays.quart(1_000)
			require.Equal(t, want, answers[plan].ClosedLoop[0])
		}
	})
}
