package replay

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/roster"
	"github.com/invoicespec/brimline/reports/timeline"
)

// verdict is a decision as far as the live limiter and a desk can be compared.
type verdict struct {
	outcome  admission.Outcome
	level    int64
	inFlight int64
}

// running is the reference's limiter on a clock of the test, and what is in
// flight there.
type running struct {
	t       *rapid.T
	clock   *clock.Shifted
	limiter *limiter.Local
	now     int64
	ends    []ending
}

type ending struct {
	at       int64
	user, id string
}

func (r *running) restart() {
	r.limiter, r.ends = limiter.NewLocal(r.clock, limiter.Config{}), nil
}

func (r *running) to(at int64) {
	r.clock.Advance(time.Duration(at-r.now) * time.Microsecond)
	r.now = at
}

// until lets the clock run to an instant; what ends on the way is released then.
func (r *running) until(at int64) {
	slices.SortStableFunc(r.ends, func(a, b ending) int { return int(a.at - b.at) })
	for len(r.ends) > 0 && r.ends[0].at <= at {
		r.to(r.ends[0].at)
		require.NoError(r.t, r.limiter.Release(context.Background(), r.ends[0].user, r.ends[0].id))
		r.ends = r.ends[1:]
	}
	r.to(at)
}

// admit asks for an attempt of a user.
func (r *running) admit(user, id string, l limit, a *timeline.Attempt) verdict {
	d, err := r.limiter.Admit(context.Background(), user, l.Allowance, id)
	require.NoError(r.t, err)
	if d.Outcome == admission.Admitted {
		r.ends = append(r.ends, ending{a.At + max(0, a.Hold), user, id})
	}
	return verdict{d.Outcome, d.Level, d.InFlight}
}

// spy notes what a desk decides, user by user.
type spy struct{ seen map[int][]verdict }

func (s *spy) take(v *visit) {
	if !v.limit.IsZero() {
		s.seen[v.user] = append(s.seen[v.user], verdict{v.decision.Outcome, v.decision.Level, v.decision.InFlight})
	}
}

// A desk decides as the running limiter did: the same outcome, level and number
// in flight for each attempt, through changes of plan, overrides and restarts.
func TestDeskAgainstTheRunningLimiter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		traffic := traffics(t)
		traffic.Durations = true
		limits, err := traffic.today()
		require.NoError(t, err)

		ref := &running{t: t, clock: clock.NewFrozen(time.Unix(0, 0))}
		ref.restart()
		want, restarts, n := map[int][]verdict{}, traffic.Roster.Restarts, 0
		for batch := range traffic.Attempts.Batches(t.Context()) {
			for i := range batch {
				a, user := &batch[i], int(traffic.Roster.UserOf[batch[i].Pool])
				for len(restarts) > 0 && restarts[0] <= a.At {
					ref.until(restarts[0])
					ref.restart()
					restarts = restarts[1:]
				}
				ref.until(a.At)
				if user < 0 {
					continue
				}
				l := limit{}
				for _, p := range traffic.Roster.Phases[user] {
					if p.From > a.At {
						break
					}
					if l = limits[p.Plan]; p.Override != nil {
						l, err = newLimit(*p.Override)
						require.NoError(t, err)
					}
				}
				if l.IsZero() {
					continue
				}
				n++
				want[user] = append(want[user], ref.admit(fmt.Sprint(user), fmt.Sprint(n), l, a))
			}
		}

		seen := &spy{seen: map[int][]verdict{}}
		d := newDesk(traffic, limits, seen)
		d.workers, d.users = 1, make([]standing, traffic.Roster.Users)
		_, err = traffic.pass(t.Context(), everybody, []taker{d.take})
		require.NoError(t, err)
		require.Equal(t, want, seen.seen)
	})
}

// Pauses and instants at the ends of what an int64 holds.
func TestExtremeInstants(t *testing.T) {
	small := free()
	small.Concurrency = 1
	traffic := Traffic{
		Attempts: timeline.Of(
			timeline.Attempt{At: math.MinInt64, Hold: math.MaxInt64}, timeline.Attempt{At: math.MinInt64},
			timeline.Attempt{At: math.MaxInt64, Hold: math.MaxInt64}, timeline.Attempt{At: math.MaxInt64, Hold: math.MaxInt64},
		),
		Roster: roster.Single("", &small, 1), Durations: true,
	}
	list := []record.ReportAllowance{small}
	ask := Ask{Rates: []int64{1}, Cells: list, ClosedLoop: list}
	answers, err := traffic.WhatIf(t.Context(), []Ask{ask})
	require.NoError(t, err)
	require.EqualValues(t, 1, answers[0].Cells[0].RejectedConcurrency, "at the end of time everything is over at once")
	require.EqualValues(t, 2, answers[0].BurstNeeded[0].Max)
	today, err := traffic.Today(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2.0/1, today.Plans[0].Utilization.Rate.Max)
	_, err = traffic.Peaks(t.Context(), []*record.ReportAllowance{nil})
	require.NoError(t, err)
}
