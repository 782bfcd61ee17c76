package threshold_test

import (
	"fmt"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/loadgen/threshold"
	"github.com/invoicespec/brimline/reports/record"
)

// times are n values from step on, a step apart, in microseconds.
func times(n, step int64) record.Quantiles {
	h := hdrhistogram.New(1, 300_000_000, 3)
	sum := int64(0)
	for i := range n {
		_ = h.RecordValue((i + 1) * step)
		sum += (i + 1) * step
	}
	q, err := record.QuantilesOf(h, step, n*step, sum).WithHistogram(h)
	if err != nil {
		panic(err)
	}
	return q
}

// run is one of two plans, of which pro met nothing but admissions, and enterprise
// was never asked.
func run() record.Run {
	return record.Run{
		PlannedMS: 10_000, ActualMS: 4_000,
		Plans: []record.RunPlan{
			{
				Plan: "free", Users: 10, UsersAffected: 3,
				Slots: record.Slots{Planned: 1100, Offered: 1050, Sent: 1000, Dropped: 40, DroppedBusy: 30, HeldOff: 10, Unsent: 50},
				Answers: record.Answers{
					Admitted: 900, RejectedRate: 40, RejectedConcurrency: 8, RejectedAnonymous: 1, Unauthenticated: 2, ConfigUnavailable: 3,
					OtherStatuses:   []record.Count{{Name: "429", N: 1}, {Name: "500", N: 30}},
					TransportErrors: []record.Count{{Name: "reset", N: 15}},
				},
				RateJudged: record.Judged{Due: 35, Undue: 2, Undecided: 3}, ConcurrencyJudged: record.Judged{Due: 8}, Missing: 4,
				Latency: []record.RunLatency{
					{Outcome: record.OutcomeAdmitted, FromDue: times(900, 1000), FromSend: times(900, 100), FirstByte: times(900, 10)},
					{Outcome: record.OutcomeRejectedRate, FromDue: times(40, 10), FromSend: times(40, 10)},
					{Outcome: record.OutcomeRejectedConcurrency, FromDue: times(8, 100), FromSend: times(8, 100)},
				},
			},
			{
				Plan: "pro", Users: 5, Slots: record.Slots{Planned: 100, Offered: 100, Sent: 100}, Answers: record.Answers{Admitted: 100},
				Latency: []record.RunLatency{{Outcome: record.OutcomeAdmitted, FromDue: times(100, 500), FromSend: times(100, 500)}},
			},
			{Plan: "enterprise", Users: 1, Slots: record.Slots{Planned: 5, Unsent: 5}},
		},
	}
}

func list(t *testing.T, texts ...string) (all []threshold.Threshold) {
	t.Helper()
	for _, text := range texts {
		one, err := threshold.Parse(text)
		require.NoError(t, err)
		all = append(all, one)
	}
	return all
}

func TestEvaluate(t *testing.T) {
	const holds, broken, noData = record.ThresholdHolds, record.ThresholdBroken, record.ThresholdNoData
	for text, want := range map[string]record.RunThreshold{
		"free.rejected.rate < 5%":                  {Verdict: broken, Seen: "5 % (50 of 1,000)", Value: 0.05, Samples: 1000},
		"free.rejected.rate <= 5%":                 {Verdict: holds, Seen: "5 % (50 of 1,000)", Value: 0.05, Samples: 1000},
		"free.rejected.rate == 5%":                 {Verdict: holds, Seen: "5 % (50 of 1,000)", Value: 0.05, Samples: 1000},
		"free.rejected.rate >= 5.0001%":            {Verdict: broken, Seen: "5 % (50 of 1,000)", Value: 0.05, Samples: 1000},
		"rejected.rate > 4.5%":                     {Verdict: holds, Seen: "4.55 % (50 of 1,100)", Value: 50.0 / 1100, Samples: 1100},
		"rejected-rate == 40":                      {Verdict: holds, Seen: "40 of 1,100", Value: 40, Samples: 1100},
		"anonymous == 1":                           {Verdict: holds, Seen: "1 of 1,100", Value: 1, Samples: 1100},
		"other-status == 31":                       {Verdict: holds, Seen: "31 of 1,100", Value: 31, Samples: 1100},
		"unanswered < 16":                          {Verdict: holds, Seen: "15 of 1,100", Value: 15, Samples: 1100},
		"errors == 50":                             {Verdict: holds, Seen: "50 of 1,100", Value: 50, Samples: 1100},
		"dropped.rate < 1%":                        {Verdict: broken, Seen: "3.48 % (40 of 1,150)", Value: 40.0 / 1150, Samples: 1150},
		"free.dropped-busy == 30":                  {Verdict: holds, Seen: "30 of 1,050", Value: 30, Samples: 1050},
		"held-off == 10":                           {Verdict: holds, Seen: "10 of 1,150", Value: 10, Samples: 1150},
		"unsent == 55":                             {Verdict: holds, Seen: "55 of 1,205", Value: 55, Samples: 1205},
		"undue-429 == 0":                           {Verdict: broken, Seen: "2 of 50", Value: 2, Samples: 1100},
		"pro.undue-429 == 0":                       {Verdict: holds, Seen: "0", Samples: 100},
		"pro.undue-429.rate < 1%":                  {Verdict: noData, Seen: "nothing to be a share of", Samples: 100},
		"undecided-429.rate < 6.1%":                {Verdict: holds, Seen: "6 % (3 of 50)", Value: 0.06, Samples: 1100},
		"missing-429 == 0":                         {Verdict: broken, Seen: "4 of 1,008", Value: 4, Samples: 1008},
		"users-affected.rate < 25%":                {Verdict: holds, Seen: "18.8 % (3 of 16)", Value: 3.0 / 16, Samples: 15},
		"admitted.per-second >= 100/s":             {Verdict: holds, Seen: "100/s", Value: 100, Samples: 1100},
		"admitted.per-second >= 6001/min":          {Verdict: broken, Seen: "100/s", Value: 100, Samples: 1100},
		"free.admitted.latency.p50 < 450ms":        {Verdict: broken, Seen: "450 ms (of 900)", Value: 450_047, Samples: 900},
		"free.admitted.latency.service.p99 < 90ms": {Verdict: holds, Seen: "89.2 ms (of 900)", Value: 89_151, Samples: 900},
		"free.admitted.latency.first-byte.max<9ms": {Verdict: broken, Seen: "9.00 ms (of 900)", Value: 9_000, Samples: 900},
		"free.admitted.latency.mean == 450.5ms":    {Verdict: holds, Seen: "450 ms (of 900)", Value: 450_500, Samples: 900},
		"admitted.latency.min == 500us":            {Verdict: holds, Seen: "500 µs (of 1,000)", Value: 500, Samples: 1000},
		"admitted.latency.mean < 1s":               {Verdict: holds, Seen: "408 ms (of 1,000)", Value: 407_975, Samples: 1000},
		"rejected.latency.p99.9 == 800us":          {Verdict: holds, Seen: "800 µs (of 48)", Value: 800, Samples: 48},
		"pro.rejected.latency.p99 < 1s":            {Verdict: noData, Seen: "nothing was timed"},
		"pro.admitted.latency.first-byte.p50 < 1s": {Verdict: noData, Seen: "nothing was timed"},
		"enterprise.rejected == 0":                 {Verdict: noData, Seen: "nothing was counted"},
		"enterprise.admitted.rate > 0%":            {Verdict: noData, Seen: "nothing was counted"},
		"gold.undue-429 == 0":                      {Verdict: noData, Seen: "nothing was counted"},
	} {
		t.Run(text, func(t *testing.T) {
			want.Threshold = text
			got, err := threshold.Evaluate(list(t, text), run())
			require.NoError(t, err)
			require.Len(t, got, 1)
			require.InDelta(t, want.Value, got[0].Value, 1e-9)
			got[0].Value = want.Value
			require.Equal(t, want, got[0])
		})
	}
}

// A 429 that nobody could judge clears nobody, but what was seen for sure counts.
func TestRejectionsThatCouldNotBeJudged(t *testing.T) {
	r := run()
	pro := &r.Plans[1]
	pro.Admitted, pro.RejectedRate, pro.RateJudged = 60, 40, record.Judged{Undecided: 40}
	for text, want := range map[string]record.ThresholdVerdict{
		"pro.undue-429 == 0":     record.ThresholdNoData,
		"undue-429 == 0":         record.ThresholdBroken, // of the free plan there were some
		"pro.undecided-429 < 41": record.ThresholdHolds,
	} {
		got, err := threshold.Evaluate(list(t, text), r)
		require.NoError(t, err)
		require.Equal(t, want, got[0].Verdict, "%s: %s", text, got[0].Seen)
	}
	r.Plans[0].RateJudged = record.Judged{Due: 40}
	got, err := threshold.Evaluate(list(t, "undue-429 == 0"), r)
	require.NoError(t, err)
	require.Equal(t, record.ThresholdNoData, got[0].Verdict)
	require.Equal(t, "none of 90 429s could be judged", got[0].Seen)
}

func TestOfARunThatEndedEarly(t *testing.T) {
	r := run()
	r.Interrupted = true
	for text, want := range map[string]record.ThresholdVerdict{
		"admitted >= 1001":              record.ThresholdNoData,
		"admitted > 1000":               record.ThresholdNoData,
		"admitted == 1001":              record.ThresholdNoData,
		"admitted == 999":               record.ThresholdBroken,
		"admitted >= 1000":              record.ThresholdHolds,
		"admitted < 1000":               record.ThresholdBroken,
		"rejected <= 49":                record.ThresholdBroken,
		"rejected.rate < 1%":            record.ThresholdBroken,
		"admitted.per-second == 250/s":  record.ThresholdHolds, // over what there was of it
		"free.admitted.rate >= 90.001%": record.ThresholdBroken,
	} {
		got, err := threshold.Evaluate(list(t, text), r)
		require.NoError(t, err)
		require.Equal(t, want, got[0].Verdict, text)
	}
}

func TestABrokenHistogramIsNamed(t *testing.T) {
	r := run()
	r.Plans[0].Latency[0].FromDue.Histogram = "nonsense"
	_, err := threshold.Evaluate(list(t, "undue-429 == 0", "admitted.latency.p99 < 1s"), r)
	require.ErrorContains(t, err, "admitted.latency.p99 < 1s: decode a histogram")
	_, _, err = threshold.NewWatch(list(t, "admitted.latency.p99 < 1s")).Look(r)
	require.ErrorContains(t, err, "admitted.latency.p99 < 1s: decode a histogram")
}

func TestWatch(t *testing.T) {
	const atOnce, looked, never = 1, threshold.LooksInARow, 0
	for text, want := range map[string]int{
		"undue-429 == 0":                      atOnce,
		"missing-429 <= 3":                    atOnce,
		"rejected < 50":                       atOnce,
		"rejected < 51":                       never,
		"admitted >= 100000":                  never, // more may come
		"admitted == 100000":                  never,
		"rejected.rate == 0%":                 atOnce, // can no longer hold
		"rejected.rate < 1%":                  looked,
		"rejected.rate < 50%":                 never,
		"admitted.rate > 99%":                 looked,
		"admitted.per-second > 1000/s":        never,
		"admitted.per-second < 99/s":          atOnce, // over the planned length
		"pro.admitted.latency.p50 < 1ms":      looked,
		"pro.admitted.latency.p99 < 1ms":      never, // 100 samples are too few
		"free.admitted.latency.p95 < 1ms":     looked,
		"admitted.latency.p99 < 1ms":          looked, // 1,000 are enough
		"admitted.latency.p99.9 < 1ms":        never,
		"pro.admitted.latency.max < 1ms":      atOnce,
		"pro.admitted.latency.max > 1s":       never,
		"pro.admitted.latency.min > 1ms":      atOnce,
		"pro.admitted.latency.min < 100us":    never,
		"free.rejected.latency.p50 < 1us":     never, // 48 samples
		"enterprise.admitted.rate > 5%":       never,
		"free.rejected.latency.max == 800us":  never,
		"free.rejected-rate.latency.mean>1ms": never,
	} {
		t.Run(text, func(t *testing.T) {
			w := threshold.NewWatch(list(t, "unsent < 1000", text))
			at := never
			for look := 1; look <= 20 && at == never; look++ {
				breach, ok, err := w.Look(run())
				require.NoError(t, err)
				if ok {
					at = look
					require.Equal(t, text, breach.Threshold)
					require.Equal(t, record.ThresholdBroken, breach.Verdict)
					require.NotEmpty(t, breach.Seen)
				}
			}
			require.Equal(t, want, at)
		})
	}
}

func TestWatchSaysWhatItHasToMerge(t *testing.T) {
	w := threshold.NewWatch(list(t, "undue-429 == 0", "free.admitted.latency.p99 < 1s", "rejected.latency.max < 1s"))
	require.Equal(t, []record.Outcome{
		record.OutcomeAdmitted, record.OutcomeRejectedRate, record.OutcomeRejectedConcurrency, record.OutcomeRejectedAnonymous,
	}, w.Outcomes())
}

// One good look in between, and the row begins anew.
func TestWatchForgivesABadMoment(t *testing.T) {
	w := threshold.NewWatch(list(t, "rejected.rate < 4%"))
	bad, good := run(), run()
	good.Plans = good.Plans[1:]
	for range 3 {
		for range threshold.LooksInARow - 1 {
			_, ok, err := w.Look(bad)
			require.NoError(t, err)
			require.False(t, ok)
		}
		_, ok, err := w.Look(good)
		require.NoError(t, err)
		require.False(t, ok)
	}
}

func ExampleEvaluate() {
	var r record.Run // as record.ReadRun reads it
	r.Plans = []record.RunPlan{{Plan: "free", Slots: record.Slots{Sent: 200}, Answers: record.Answers{Admitted: 188, RejectedRate: 12}}}
	t, err := threshold.Parse("free.rejected.rate < 5%")
	if err != nil {
		fmt.Println(err)
		return
	}
	told, err := threshold.Evaluate([]threshold.Threshold{t}, r)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(told[0].Threshold, "is", told[0].Verdict, "at", told[0].Seen)
	// Output: free.rejected.rate < 5% is broken at 6 % (12 of 200)
}
