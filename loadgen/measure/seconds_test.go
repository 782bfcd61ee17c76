package measure_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/loadgen/measure"
	"github.com/invoicespec/brimline/reports/record"
)

// TestSecondsKeepTheirOwnTimes: each second's quantiles are of its own answers,
// in whatever order those of two neighbours come.
func TestSecondsKeepTheirOwnTimes(t *testing.T) {
	m := measure.NewMeter(subjects(100, "free"), func() time.Duration { return 0 })
	answer := func(outcome record.Outcome, done, took time.Duration) {
		m.Answered(measure.Answer{Outcome: outcome, Due: done - took, Sent: done - took/2, First: done - took/4, Done: done, Attempts: 1})
	}
	const ms = time.Millisecond
	answer(record.OutcomeAdmitted, 500*ms, 2*ms)
	answer(record.OutcomeAdmitted, 1500*ms, 9*ms)
	answer(record.OutcomeAdmitted, 999*ms, 4*ms) // late, and of the first second all the same
	answer(record.OutcomeRejectedRate, 1600*ms, 80*ms)
	answer(record.OutcomeTransportError, 1700*ms, 80*ms)
	answer(record.OutcomeAdmitted, 5100*ms, 7*ms)
	answer(record.OutcomeAdmitted, 5200*ms, 3*ms)
	answer(record.OutcomeAdmitted, 2100*ms, 70*ms) // two seconds late: counted, not timed
	answer(record.OutcomeAdmitted, 4900*ms, 6*ms)
	m.HeldOff(0, 2*time.Second)
	r := record.Run{}
	require.NoError(t, m.Fill(&r, 6*time.Second))
	s := r.Plans[0].PerSecond
	require.Equal(t, []int64{2_000, 9_000, 0, 0, 6_000, 3_001}, s.P50US)
	require.Equal(t, []int64{4_000, 9_000, 0, 0, 6_000, 7_000}, s.P99US)
	require.Equal(t, []int64{4_000, 9_000, 0, 0, 6_000, 7_000}, s.MaxUS)
	require.Equal(t, []int64{2, 1, 1, 0, 1, 2}, s.Admitted)
	require.Equal(t, []int64{0, 1, 0, 0, 0, 0}, s.Other)
	require.Equal(t, []int64{0, 0, 1, 0, 0, 0}, s.HeldOff)
}

func TestFirstBytesAreTimedWhereOneCame(t *testing.T) {
	m := measure.NewMeter(subjects(3, "free"), func() time.Duration { return 0 })
	m.Answered(measure.Answer{Outcome: record.OutcomeAdmitted, Sent: time.Second, First: 3 * time.Second, Done: 7 * time.Second, Attempts: 1})
	m.Answered(measure.Answer{Outcome: record.OutcomeAdmitted, Sent: time.Second, Done: 7 * time.Second, Attempts: 1})
	m.Answered(measure.Answer{Outcome: record.OutcomeTransportError, Sent: time.Second, Done: 7 * time.Second, Attempts: 1})
	live := m.Live(record.OutcomeAdmitted, record.OutcomeTransportError)
	r := record.Run{}
	require.NoError(t, m.Fill(&r, 7*time.Second))
	for i, l := range r.Plans[0].Latency {
		now, err := record.SumQuantiles(live[0].Latency[i].FromSend, live[0].Latency[0].FromSend)
		require.NoError(t, err)
		after, err := record.SumQuantiles(l.FromSend, r.Plans[0].Latency[0].FromSend)
		require.NoError(t, err)
		require.Equal(t, after, now, "during the run as after it")
		if i == 0 {
			continue
		}
		_, err = record.SumQuantiles(m.Snapshot()[0].Latency[i].FromSend, l.FromSend)
		require.ErrorContains(t, err, "decode a histogram", "only what was asked for")
	}
	require.EqualValues(t, 1, live[0].Latency[0].FirstByte.Count)
	require.EqualValues(t, 2_000_000, live[0].Latency[0].FirstByte.MaxUS)
	require.EqualValues(t, 2, live[0].Latency[0].FromSend.Count)
	require.Zero(t, live[0].Latency[1].FirstByte)
}

// What goes on while a run is looked at does not change what was seen.
func TestLiveIsApart(t *testing.T) {
	m := measure.NewMeter(subjects(3, "free"), func() time.Duration { return 0 })
	m.Answered(measure.Answer{Outcome: record.OutcomeOtherStatus, Status: 500, Done: time.Second, Attempts: 1})
	before := m.Live(record.OutcomeOtherStatus)
	m.Answered(measure.Answer{Outcome: record.OutcomeOtherStatus, Status: 500, Done: 2 * time.Second, Attempts: 1})
	require.Equal(t, []record.Count{{Name: "500", N: 1}}, before[0].OtherStatuses)
	require.EqualValues(t, 1_000_000, before[0].Latency[0].FromDue.MaxUS)
	again, err := record.SumQuantiles(before[0].Latency[0].FromDue, before[0].Latency[0].FromDue)
	require.NoError(t, err)
	require.EqualValues(t, 2, again.Count)
}
