package render_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

func loadRun() record.Run {
	latency := func(n, p50, p99 int64) []record.RunLatency {
		return []record.RunLatency{{Outcome: record.OutcomeAdmitted, FromDue: record.Quantiles{Count: n, P50US: p50, P99US: p99}}}
	}
	return record.Run{
		PlannedMS: 120_000, ActualMS: 120_009,
		Scenario: record.RunScenario{Seed: 7}, Target: record.RunTarget{Hosts: []string{"127.0.0.1:8080"}},
		Plans: []record.RunPlan{
			{Plan: "free", Users: 200, Slots: record.Slots{Planned: 2500, Offered: 2500, Sent: 2410, HeldOff: 90},
				Answers: record.Answers{Admitted: 2066, RejectedRate: 344}, RateJudged: record.Judged{Due: 344}, Latency: latency(2066, 2100, 9800)},
			{Plan: "pro", Users: 20, Slots: record.Slots{Planned: 2402, Offered: 2402, Sent: 2402},
				Answers: record.Answers{Admitted: 1930, RejectedRate: 310, RejectedConcurrency: 162}, RateJudged: record.Judged{Due: 310}, ConcurrencyJudged: record.Judged{Due: 162}, Latency: latency(1930, 230_000, 11_400_000)},
		},
		Limits: []string{"429s are judged by the allowances of the target file."},
	}
}

func TestLoad(t *testing.T) {
	wrong := loadRun()
	wrong.Interrupted, wrong.ActualMS = true, 47_200
	wrong.Plans[0].RateJudged = record.Judged{Due: 330, Undue: 12, Undecided: 2}
	wrong.Plans[0].Missing = 5
	wrong.Plans[0].Unsent, wrong.Plans[0].Dropped = 1200, 7
	wrong.Plans[1].ConcurrencyJudged = record.Judged{Due: 159, Undue: 3}
	wrong.Plans[1].Latency = nil
	wrong.Plans[1].Plan = "pro\x1b[31m"
	wrong.Plans[1].RejectedAnonymous, wrong.Plans[1].Unauthenticated, wrong.Plans[1].ConfigUnavailable = 1, 2, 3
	wrong.Plans[1].OtherStatuses = []record.Count{{Name: "402", N: 4}}
	wrong.Plans[1].TransportErrors = []record.Count{{Name: "timeout", N: 5}}
	// Two plans with 429s that nobody can judge, one that was never admitted.
	untold := loadRun()
	free, pro := &untold.Plans[0], &untold.Plans[1]
	free.Answers = record.Answers{Admitted: 2373, OtherStatuses: []record.Count{{Name: "429", N: 37}}}
	free.RateJudged = record.Judged{}
	pro.Answers = record.Answers{OtherStatuses: []record.Count{{Name: "404", N: 2402}}}
	pro.RateJudged, pro.ConcurrencyJudged, pro.Latency = record.Judged{}, record.Judged{}, nil
	plus := *free
	plus.Plan, plus.Answers = "plus", record.Answers{Admitted: 2400, RejectedRate: 4, RejectedAnonymous: 6}
	plus.RateJudged = record.Judged{Undecided: 4}
	untold.Plans = append(untold.Plans, plus)
	untold.Untold = untold.Doubts()
	broken := loadRun()
	broken.Interrupted, broken.ActualMS, broken.Ended = true, 9_000, "the threshold free.rejected.rate < 5% was broken: 14.3 %"
	broken.Thresholds = []record.RunThreshold{
		{Threshold: "free.rejected.rate < 5%", Verdict: record.ThresholdBroken, Seen: "14.3 % (344 of 2,410)"},
		{Threshold: "undue-429 == 0", Verdict: record.ThresholdHolds, Seen: "0 of 816"},
		{Threshold: "gold\x1b.anonymous.latency.p99 < 1s", Verdict: record.ThresholdNoData, Seen: "nothing was timed"},
	}
	for name, r := range map[string]record.Run{"load.txt": loadRun(), "load-broken.txt": broken, "load-wrong.txt": wrong, "load-untold.txt": untold} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			require.NoError(t, render.Load(&b, r))
			golden(t, name, b.Bytes())
			require.NotContains(t, b.String(), "\x1b")
		})
	}
}

func TestLoadVerdictsAreNamed(t *testing.T) {
	r := loadRun()
	require.Empty(t, render.LoadBroken(r)+render.LoadNoData(r))
	r.Thresholds = []record.RunThreshold{
		{Threshold: "a < 1", Verdict: record.ThresholdBroken, Seen: "2"}, {Threshold: "b < 1", Verdict: record.ThresholdHolds},
		{Threshold: "c < 1", Verdict: record.ThresholdBroken, Seen: "3"}, {Threshold: "d < 1", Verdict: record.ThresholdNoData, Seen: "nothing was counted"},
	}
	require.Equal(t, "2 of 4 thresholds broken: a < 1: 2; c < 1: 3", render.LoadBroken(r))
	require.Equal(t, "1 of 4 thresholds without data: d < 1: nothing was counted", render.LoadNoData(r))
}

// TestLoadTableFits: what matters least goes first, and the name last of all.
func TestLoadTableFits(t *testing.T) {
	plans := loadRun().Plans
	full := render.LoadTable(plans)
	require.Contains(t, full, "  plan  users    due   sent  dropped  admitted  429 rate  429 conc.  undue     p50     p99\n")
	for width, want := range map[int]string{
		200: "plan users due sent dropped admitted 429 rate 429 conc. undue p50 p99",
		86:  "plan due sent dropped admitted 429 rate 429 conc. undue p50 p99",
		79:  "plan sent dropped admitted 429 rate 429 conc. undue p50 p99",
		70:  "plan sent dropped admitted 429 rate 429 conc. p50 p99",
		1:   "plan sent admitted 429 rate 429 conc. p99",
	} {
		head, _, _ := strings.Cut(render.LoadTableWithin(plans, width), "\n")
		require.Equal(t, want, strings.Join(strings.Fields(head), " "), width)
		if width > 60 {
			require.LessOrEqual(t, len(head), width)
		}
	}
}

func TestLoadAnswers(t *testing.T) {
	require.Equal(t, "3,996 admitted, 429s: 654 rate, 162 concurrency", render.LoadAnswers(loadRun().Plans))
}
