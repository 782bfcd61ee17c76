package reassess

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/replay"
)

// cell is an allowance under which so many of the users meet a 429, and are not
// OK for it.
func cell(rate, burst int64, users, affected int) record.Cell {
	c := record.Cell{Rate: rate, Burst: burst}
	c.Rejections = rejections(users, affected)
	return c
}

func rejections(users, affected int) record.Rejections {
	ok := users - affected
	r := record.Rejections{
		RejectedRate: int64(affected), Rejected: int64(affected), UsersAffected: affected, UsersOK: ok,
		UsersOKShare: float64(ok) / float64(users), UsersOK95: replay.Wilson(ok, users),
	}
	if affected > 0 {
		r.TopRejected, r.TopShare, r.TopRank = 1, 1/float64(affected), 1
	}
	return r
}

// scene is the traffic of a plan at 10/10: how many users are affected at each
// rate with an equal burst.
type scene struct {
	users, days    int
	affected       map[int64]int
	alreadyRefused int64
	without        map[int64]int // had those attempts not been made
}

func (s scene) whatIf() *record.ReportWhatIf {
	w := &record.ReportWhatIf{
		Pool: record.PoolUser, Days: s.days, SpanS: float64(s.days) * 86400, Users: s.users, AlreadyRefused: s.alreadyRefused, Policy: 1,
	}
	for _, rate := range []int64{5, 10, 15, 20, 30, 60} {
		c := cell(rate, rate, s.users, s.affected[rate])
		if s.without != nil {
			r := rejections(s.users, s.without[rate])
			c.WithoutRefused = &r
		}
		w.Grid = append(w.Grid, c)
	}
	w.Lines = []record.ReportLine{{Divisor: 1, Cells: w.Grid}}
	return w
}

func TestJudge(t *testing.T) {
	starter := &subject{plan: "starter", allowance: &record.ReportAllowance{RequestsPerMinute: 30, Burst: 10}}
	falling := map[int64]int{5: 90, 10: 40, 15: 20, 20: 2, 30: 1, 60: 0}
	for _, c := range []struct {
		name    string
		scene   scene
		next    *subject
		word    record.Reassessment
		keep    record.KeepReason
		target  int64
		missing string
	}{
		{"the smallest that is enough", scene{users: 1000, days: 7, affected: falling}, nil, record.Raise, "", 20, ""},
		{"under the next plan", scene{users: 1000, days: 7, affected: falling}, starter, record.Raise, "", 20, ""},
		{"the next plan is for that", scene{users: 1000, days: 7, affected: map[int64]int{10: 40, 15: 30, 20: 20}}, starter, record.Keep, record.KeepNextPlan, 30, ""},
		{"enough already", scene{users: 1000, days: 7, affected: map[int64]int{5: 90, 10: 2, 15: 1}}, nil, record.Keep, record.KeepGoalMet, 0, ""},
		{"the share is enough but not surely", scene{users: 1000, days: 7, affected: map[int64]int{10: 10, 15: 3}}, nil, record.Raise, "", 15, ""},
		{"too few are spared", scene{users: 500, days: 7, affected: map[int64]int{10: 2}}, nil, record.Keep, record.KeepTooFew, 15, ""},
		{"nothing is enough", scene{users: 1000, days: 7, affected: map[int64]int{10: 40, 15: 40, 20: 40, 30: 40, 60: 40}}, nil, record.Keep, record.KeepBeyond, 0, ""},
		{"299 users", scene{users: 299, days: 7, affected: falling}, nil, record.NotEnoughEvidence, "", 0, "299 users, where 381 are needed"},
		{"6 days", scene{users: 1000, days: 6, affected: falling}, nil, record.NotEnoughEvidence, "", 0, "6 days of traffic, where 7 days are needed"},
		{"300 users can show nothing", scene{users: 300, days: 7}, nil, record.NotEnoughEvidence, "", 0, "300 users, where 381 are needed"},
		{"380 neither", scene{users: 380, days: 7, affected: falling}, nil, record.NotEnoughEvidence, "", 0, "380 users, where 381 are needed"},
		{"381 can", scene{users: 381, days: 7}, nil, record.Keep, record.KeepGoalMet, 0, ""},
		{"both bounds ask for a raise", scene{users: 1000, days: 7, affected: falling, alreadyRefused: 9, without: map[int64]int{10: 30, 15: 1}}, nil, record.Raise, "", 20, ""},
		{"the bounds disagree", scene{users: 1000, days: 7, affected: falling, alreadyRefused: 9, without: map[int64]int{10: 1}}, nil, record.NotEnoughEvidence, "", 0, "whether the 9 attempts refused at the time would have been made anyway"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := judge(question{today: &record.ReportAllowance{RequestsPerMinute: 10, Burst: 10}, whatIf: c.scene.whatIf(), next: c.next}, Rules())
			require.Equal(t, c.word, v.Word, v.Missing)
			require.Equal(t, c.keep, v.Keep)
			if c.target == 0 {
				require.Nil(t, v.Target)
			} else {
				require.EqualValues(t, c.target, v.Target.Rate)
			}
			if c.missing == "" {
				require.Empty(t, v.Missing)
			} else {
				require.Len(t, v.Missing, 1)
				require.Contains(t, v.Missing[0], c.missing)
			}
			require.EqualValues(t, 10, v.Today.Rate)
		})
	}
}

func TestJudgeTellsWhatItLacks(t *testing.T) {
	today := &record.ReportAllowance{RequestsPerMinute: 10, Burst: 10}
	enough := scene{users: 1000, days: 7}.whatIf()
	refused := scene{users: 1000, days: 7}.whatIf()
	refused.Refused = "the times are not those of the requests"
	for name, c := range map[string]struct {
		q       question
		missing string
	}{
		"a run alone":          {question{today: today}, "no recorded traffic"},
		"no allowance":         {question{whatIf: enough}, "today's allowance is unknown"},
		"times that are false": {question{today: today, whatIf: refused}, "the times are not those of the requests"},
	} {
		t.Run(name, func(t *testing.T) {
			v := judge(c.q, Rules())
			require.Equal(t, record.NotEnoughEvidence, v.Word)
			require.Len(t, v.Missing, 1)
			require.Contains(t, v.Missing[0], c.missing)
			require.Nil(t, v.Today)
		})
	}
}

// A smaller allowance is something to look at and never what is recommended,
// not even where nobody would notice it.
func TestJudgeNeverLowers(t *testing.T) {
	v := judge(question{today: &record.ReportAllowance{RequestsPerMinute: 60, Burst: 60}, whatIf: scene{users: 1000, days: 7}.whatIf()}, Rules())
	require.Equal(t, record.Keep, v.Word)
	require.Nil(t, v.Target)
	require.EqualValues(t, 5, v.LookAt.Rate)

	above := scene{users: 1000, days: 7, affected: map[int64]int{5: 90, 10: 3, 15: 90}}.whatIf()
	v = judge(question{today: &record.ReportAllowance{RequestsPerMinute: 60, Burst: 60}, whatIf: above}, Rules())
	require.EqualValues(t, 20, v.LookAt.Rate, "one below which there is none that would do")
}

// A raise takes nothing away: not a burst above the ladder's either.
func TestLargerKeepsTheBurst(t *testing.T) {
	line := []record.Cell{cell(15, 5, 1000, 0), cell(30, 10, 1000, 0), cell(45, 15, 1000, 0)}
	got := larger(line, record.ReportAllowance{RequestsPerMinute: 10, Burst: 12}, func(record.Cell) bool { return true })
	require.EqualValues(t, 45, got.Rate)
}

func TestPolicyIsTheNearestProportion(t *testing.T) {
	for want, list := range map[int64][][2]int64{
		1: {{10, 10}, {10, 40}, {60, 50}}, 2: {{60, 30}, {120, 55}}, 3: {{60, 20}, {300, 100}, {300, 5}, {45, 15}},
	} {
		for _, a := range list {
			require.Equal(t, want, policy(&record.ReportAllowance{RequestsPerMinute: a[0], Burst: a[1]}), a)
		}
	}
	require.EqualValues(t, 1, policy(nil))
}

func TestLadder(t *testing.T) {
	require.IsIncreasing(t, ladder())
	require.Subset(t, ladder(), []int64{1, 10, 15, 20, 30, 45, 60, 100, 300, 1_000_000})
	require.Equal(t, []int64{5, 7, 10, 12, 15}, window(12, 4, 19))
	require.EqualValues(t, 1, burstOf(2, 3))
}
