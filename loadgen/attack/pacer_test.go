package attack

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/loadgen/arrival"
	"github.com/invoicespec/brimline/loadgen/traffic"
	"github.com/invoicespec/brimline/reports/record"
)

// TestStallOnOurSideIsNotCaughtUp: a pacer that was not asked for half a second
// drops what it missed and says that it was not the target.
func TestStallOnOurSideIsNotCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const d = 10 * time.Second
		rate, err := arrival.NewRate(6000, 1) // 100 a second
		require.NoError(t, err)
		process := arrival.Constant(rate)
		a, err := New(Config{
			Members: []traffic.Member{{Name: "u", Plan: "p", Process: process, Planned: 1000}},
			Site:    Site{BaseURLs: []string{"http://127.0.0.1:1"}, Requests: map[traffic.Operation]Request{traffic.Valid: {Path: "/"}}},
		})
		require.NoError(t, err)
		a.started = time.Now()
		p := &pacer{attack: a, timeline: arrival.NewTimeline([]*arrival.Schedule{process.Schedule(1, "u")}, d), stop: make(chan struct{})}
		var gaps []time.Duration
		var last time.Duration
		for n := 0; ; n++ {
			if n == 300 {
				time.Sleep(500 * time.Millisecond)
			}
			wait, stop := p.Pace(0, 0)
			require.Zero(t, wait)
			if stop {
				break
			}
			s := <-a.slots.queue
			a.slots.free(s)
			now := a.now()
			require.LessOrEqual(t, now-s.due, MostLate)
			gaps = append(gaps, now-last)
			last = now
		}
		s := a.Meter.Snapshot()[0]
		require.EqualValues(t, 39, s.Dropped, "50 were missed, and 100 ms of them could still be sent")
		require.Zero(t, s.DroppedBusy)
		require.EqualValues(t, 961, len(gaps))
		together := 0
		for _, g := range gaps {
			if g == 0 {
				together++
			}
		}
		require.LessOrEqual(t, together, 11)
		var r record.Run
		require.NoError(t, a.Meter.Fill(&r, d))
		require.Contains(t, a.Meter.Limits(r)[3], "39 of 39 requests were dropped because this machine was late")
	})
}

func TestWorkersFollowLittlesLaw(t *testing.T) {
	member := func(p arrival.Process) traffic.Member { return traffic.Member{Process: p} }
	rate := func(perMinute int64) arrival.Process {
		r, err := arrival.NewRate(perMinute, 1)
		require.NoError(t, err)
		return arrival.Poisson(r)
	}
	for name, c := range map[string]struct {
		members []traffic.Member
		n       int
		wanted  int
	}{
		"a few are always there":       {[]traffic.Member{member(rate(10))}, 16, 16},
		"those of the longest wait":    {[]traffic.Member{member(rate(6000)), member(rate(3000))}, 150, 150},
		"and a burst on top":           {[]traffic.Member{member(rate(6000)), member(arrival.Bursts(60, time.Minute))}, 161, 161},
		"never so many that they melt": {[]traffic.Member{member(rate(1_000_000))}, 2000, 16_667},
	} {
		t.Run(name, func(t *testing.T) {
			n, wanted := workers(c.members, Site{})
			require.Equal(t, c.n, n)
			require.Equal(t, c.wanted, wanted)
		})
	}
}
