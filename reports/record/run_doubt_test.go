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
