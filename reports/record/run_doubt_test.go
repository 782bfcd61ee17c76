package record_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
)

func TestRunDoubts(t *testing.T) {
	plan := func(name string, s record.Slots, a record.Answers) record.RunPlan {
		return record.RunPlan{Plan: name, Slots: s, Answers: a}
	}
	lost := func(n int64) []record.Count {
		return []record.Count{{Name: "reset", N: n - 1}, {Name: "timeout", N: 1}}
	}
	sound := plan("free", record.Slots{Offered: 10, Sent: 10}, record.Answers{Admitted: 1, RejectedRate: 9})
	for name, c := range map[string]struct {
		plans []record.RunPlan
		want  []record.RunDoubt
	}{
		"all is well": {[]record.RunPlan{sound}, nil},
		"all answers are 404": {
			[]record.RunPlan{plan("free", record.Slots{Offered: 1017, Sent: 1017}, record.Answers{OtherStatuses: []record.Count{{Name: "404", N: 1017}}})},
			[]record.RunDoubt{{Plan: "free", Why: "none of 1,017 requests was admitted"}},
		},
		"one plan has wrong keys": {
			[]record.RunPlan{sound, plan("pro", record.Slots{Offered: 3, Sent: 3}, record.Answers{Unauthenticated: 3})},
			[]record.RunDoubt{{Plan: "pro", Why: "none of 3 requests was admitted"}},
		},
		"nothing but 429s": {
			[]record.RunPlan{plan("free", record.Slots{Offered: 5, Sent: 5}, record.Answers{RejectedRate: 5})},
			[]record.RunDoubt{{Plan: "free", Why: "none of 5 requests was admitted"}},
		},
		"the target died": {
			[]record.RunPlan{plan("free", record.Slots{Offered: 995, Sent: 995}, record.Answers{Admitted: 155, TransportErrors: lost(840)})},
			[]record.RunDoubt{{Plan: "free", Why: "840 of 995 requests got no whole answer"}},
		},
		"half of the answers came": {
			[]record.RunPlan{plan("free", record.Slots{Offered: 4, Sent: 4}, record.Answers{Admitted: 2, TransportErrors: lost(2)})}, nil,
		},
		"no answer came": {
			[]record.RunPlan{plan("free", record.Slots{Offered: 1, Sent: 1}, record.Answers{TransportErrors: []record.Count{{Name: "timeout", N: 1}}})},
			[]record.RunDoubt{{Plan: "free", Why: "none of 1 request was answered"}},
		},
		"nothing was sent": {
			[]record.RunPlan{plan("free", record.Slots{Offered: 1, Dropped: 1}, record.Answers{}), plan("pro", record.Slots{Unsent: 3}, record.Answers{})},
			[]record.RunDoubt{{Why: "no request was sent"}},
		},
		"one plan was not served": {
			[]record.RunPlan{sound, plan("pro", record.Slots{Offered: 2, Dropped: 2, DroppedBusy: 2}, record.Answers{})},
			[]record.RunDoubt{{Plan: "pro", Why: "none of 2 requests that came due was sent"}},
		},
		"this machine was late": {
			[]record.RunPlan{plan("free", record.Slots{Offered: 100, Sent: 94, Dropped: 6}, record.Answers{Admitted: 94})},
			[]record.RunDoubt{{Why: "this machine was too slow: it failed to send 6 of 100 requests in time"}},
		},
		"this machine was a little late": {
			[]record.RunPlan{plan("free", record.Slots{Offered: 100, Sent: 95, Dropped: 5}, record.Answers{Admitted: 95})}, nil,
		},
		"the target was slow": {
			[]record.RunPlan{plan("free", record.Slots{Offered: 100, Sent: 50, Dropped: 50, DroppedBusy: 50}, record.Answers{Admitted: 50})}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := record.Run{Plans: c.plans}.Doubts()
			require.NotNil(t, got, "a list, even if empty")
			require.ElementsMatch(t, c.want, got)
		})
	}
}

// TestDoubtsOfTheLoadSide: beyond each bound a run says so in words, and what the
// machine was short of; at the bound it does not.
func TestDoubtsOfTheLoadSide(t *testing.T) {
	for name, c := range map[string]struct {
		beyond, within func(*record.Run)
		want           string
	}{
		"late": {
			func(r *record.Run) { r.Generator.Late = record.Quantiles{Count: 1000, P95US: 1, P99US: 50_001} },
			func(r *record.Run) { r.Generator.Late = record.Quantiles{Count: 1000, P95US: 1, P99US: 50_000} },
			"this machine was too slow: it took 1 in 100 requests up more than 50.0 ms late, where 50.0 ms are allowed",
		},
		"late with few": {
			func(r *record.Run) { r.Generator.Late = record.Quantiles{Count: 999, P95US: 71_000, P99US: 90_000} },
			func(r *record.Run) { r.Generator.Late = record.Quantiles{Count: 999, P95US: 1, P99US: 90_000} },
			"this machine was too slow: it took 1 in 20 requests up more than 71.0 ms late, where 50.0 ms are allowed",
		},
		"its own processors": {
			func(r *record.Run) {
				r.Generator = record.Generator{CPUSeconds: 93, ProcessorSeconds: 100, MachineSeconds: 200, OthersSeconds: 10}
			},
			func(r *record.Run) {
				r.Generator = record.Generator{CPUSeconds: 90, ProcessorSeconds: 100, MachineSeconds: 200, OthersSeconds: 100}
			},
			"this machine was too slow: brimline itself used 93 % of its processors, where 90 % are allowed (processors: brimline 93 %, other programs 5 %, taken by what this machine runs on 0 %)",
		},
		"garbage": {
			func(r *record.Run) { r.Generator.WatchedMS, r.Generator.GCPauseMS = 1000, 20 },
			func(r *record.Run) { r.Generator.WatchedMS, r.Generator.GCPauseMS = 1000, 10 },
			"this machine was too slow: garbage collection stopped it for 2 % of the time, where 1 % are allowed",
		},
		"descriptors": {
			func(r *record.Run) {
				r.Plans[0].TransportErrors = []record.Count{{Name: record.ErrorNoDescriptor, N: 1}}
				r.Generator.DescriptorLimit = 256
			},
			func(r *record.Run) { r.Plans[0].TransportErrors = []record.Count{{Name: "connect", N: 9}} },
			"this machine had no file descriptor left for 1 request: at most 256 may be open",
		},
		"ports": {
			func(r *record.Run) { r.Plans[0].TransportErrors = []record.Count{{Name: record.ErrorNoPort, N: 3}} },
			func(*record.Run) {},
			"this machine had no port left for 3 requests",
		},
		"workers": {
			func(r *record.Run) {
				r.Plans[0].DroppedBusy, r.Plans[0].Dropped = 6, 6
				r.Generator.Workers, r.Generator.WorkersWanted = 2000, 9000
			},
			func(r *record.Run) {
				r.Plans[0].DroppedBusy, r.Plans[0].Dropped = 5, 5
				r.Generator.Workers, r.Generator.WorkersWanted = 2000, 9000
			},
			"brimline sends at most 2,000 requests at a time, and dropped 6 of 100 for it; 9,000 would be needed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(spoil func(*record.Run)) []record.RunDoubt {
				r := record.Run{Plans: []record.RunPlan{{Plan: "free", Slots: record.Slots{Offered: 100, Sent: 100}, Answers: record.Answers{Admitted: 91}}}}
				spoil(&r)
				return r.Doubts()
			}
			require.Equal(t, []record.RunDoubt{{Why: c.want}}, run(c.beyond))
			require.Empty(t, run(c.within))
		})
	}
}
