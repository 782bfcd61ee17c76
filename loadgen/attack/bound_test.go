package attack

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/loadgen/arrival"
	"github.com/invoicespec/brimline/loadgen/traffic"
)

// TestMaxRateHoldsWhateverIsPlanned: a plan that asks for twice as much gets what
// is allowed, and the rest is dropped and counted.
func TestMaxRateHoldsWhateverIsPlanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const d = 10 * time.Second
		process := arrival.Bursts(40, time.Second)
		a, err := New(Config{
			Members: []traffic.Member{{Name: "u", Plan: "p", Process: process, Planned: process.Count(1, "u", d)}},
			Site:    Site{BaseURLs: []string{"http://127.0.0.1:1"}, Requests: map[traffic.Operation]Request{traffic.Valid: {Path: "/"}}},
		})
		require.NoError(t, err)
		a.started = time.Now()
		p := &pacer{attack: a, bound: newBound(20), timeline: arrival.NewTimeline([]*arrival.Schedule{process.Schedule(1, "u")}, d), stop: make(chan struct{})}
		var went []time.Duration
		for {
			if _, stop := p.Pace(0, 0); stop {
				break
			}
			a.slots.free(<-a.slots.queue)
			went = append(went, a.now())
			if n := len(went); n > 20 {
				require.GreaterOrEqual(t, went[n-1]-went[n-21], time.Second)
			}
		}
		s := a.Meter.Snapshot()[0]
		require.EqualValues(t, 200, len(went))
		require.EqualValues(t, 200, s.Dropped)
		require.Zero(t, s.DroppedBusy)
	})
}

func TestNoBoundIsNone(t *testing.T) {
	var b bound
	b.take(time.Hour)
	require.Less(t, b.next(), -time.Hour)
}
