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

// filled are all kinds of evidence, each with something in it.
func filled() (list []record.ReportEvidence) {
	for _, kind := range record.EvidenceKinds() {
		list = append(list, record.ReportEvidence{Kind: kind, Found: []string{"some"}})
	}
	return list
}

// onTen is the claim of a plan at 10/10 of which all is known.
func onTen(s scene) claim {
	return claim{plan: "free", today: &record.ReportAllowance{RequestsPerMinute: 10, Burst: 10}, whatIf: s.whatIf(), evidence: filled()}
}

// settled is the verdict where the engine has room up to a rate.
func settled(c claim, room int64, rules record.ReportRules) (record.ReportVerdict, []record.ReportDimension) {
	a := c.aim(rules)
	x := candidate{room: "no room"}
	if steps := c.below(a.course); len(steps) > 0 {
		x.below = &steps[len(steps)-1]
		for i := range steps {
			if steps[i].Rate <= room {
				x.fits = &steps[i]
			}
		}
		x.moved = &record.ReportMoved{Out: a.verdict.Today.UsersAffected - x.below.UsersAffected, Days: c.whatIf.Days}
	}
	v := c.settle(a, x, rules)
	return v, c.rows(a, v, rules)
}

func TestDecision(t *testing.T) {
	const plenty = 1 << 40
	starter := func(rate int64) *neighbour {
		return &neighbour{"starter", record.ReportAllowance{RequestsPerMinute: rate, Burst: rate}}
	}
	falling := map[int64]int{5: 90, 10: 40, 15: 20, 20: 2, 30: 1, 60: 0}
	usual := scene{users: 1000, days: 7, affected: falling}
	of := func(change func(*claim)) claim {
		c := onTen(usual)
		change(&c)
		return c
	}
	without := func(kind record.EvidenceKind) func(*claim) {
		return func(c *claim) {
			for i := range c.evidence {
				if c.evidence[i].Kind == kind {
					c.evidence[i] = record.ReportEvidence{Kind: kind, Found: []string{}, Missing: "it takes this"}
				}
			}
		}
	}
	for _, c := range []struct {
		name     string
		claim    claim
		room     int64
		word     record.Reassessment
		keep     record.KeepReason
		uncapped int64
		target   int64 // 0: none
		held     string
		missing  string
	}{
		{"the smallest that is enough", onTen(usual), plenty, record.Raise, "", 20, 20, "", ""},
		{"under the next plan", of(func(c *claim) { c.next = starter(30) }), plenty, record.Raise, "", 20, 20, "", ""},
		{"capped by the next plan", of(func(c *claim) { c.next = starter(20) }), plenty, record.Raise, "", 20, 15, "the plan starter", ""},
		{"the next plan is for that", of(func(c *claim) { c.next = starter(15) }), plenty, record.Keep, record.KeepNextPlan, 20, 0, "the plan starter", ""},
		{"capped by the engine", onTen(usual), 15, record.Raise, "", 20, 15, "the engine: no room", ""},
		{"no room in the engine", onTen(usual), 10, record.Keep, record.KeepCapacity, 20, 0, "the engine: no room", ""},
		{"enough already", onTen(scene{users: 1000, days: 7, affected: map[int64]int{5: 90, 10: 2, 15: 1}}), plenty, record.Keep, record.KeepGoalMet, 0, 0, "", ""},
		{"the share is enough but not surely", onTen(scene{users: 1000, days: 7, affected: map[int64]int{10: 10, 15: 3}}), plenty, record.Raise, "", 15, 15, "", ""},
		{"too few are spared", onTen(scene{users: 400, days: 7, affected: map[int64]int{10: 2}}), plenty, record.Keep, record.KeepTooFew, 15, 15, "users spared by a raise", ""},
		{"nothing is enough", onTen(scene{users: 1000, days: 7, affected: map[int64]int{10: 40, 15: 40, 20: 40, 30: 40, 60: 40}}), plenty, record.Keep, record.KeepBeyond, 0, 0, "the largest allowance that was tried", ""},
		{"operations run out first", of(func(c *claim) { c.binding = &record.ReportBinding{NotTheRateLimit: true} }), plenty, record.Keep, record.KeepOther, 20, 20, "paid operations", ""},
		{"299 users", onTen(scene{users: 299, days: 7, affected: falling}), plenty, record.NotEnoughEvidence, "", 0, 0, "too little traffic", "299 users, where 300 are needed"},
		{"300 users can show it", onTen(scene{users: 300, days: 7}), plenty, record.Keep, record.KeepGoalMet, 0, 0, "", ""},
		{"6 days", onTen(scene{users: 1000, days: 6, affected: falling}), plenty, record.NotEnoughEvidence, "", 0, 0, "too little traffic", "6 days of traffic, where 7 days are needed"},
		{"nobody looked at the engine", of(without(record.EvidenceSaturation)), plenty, record.NotEnoughEvidence, "", 20, 20, "engine saturation", "no evidence on engine saturation: it takes this"},
		{"nobody looked at tickets", of(without(record.EvidenceSupport)), plenty, record.Raise, "", 20, 20, "", ""},
		{"both bounds ask for a raise", onTen(scene{users: 1000, days: 7, affected: falling, alreadyRefused: 9, without: map[int64]int{10: 30, 15: 1}}), plenty, record.Raise, "", 20, 20, "", ""},
		{"the bounds disagree", onTen(scene{users: 1000, days: 7, affected: falling, alreadyRefused: 9, without: map[int64]int{10: 1}}), plenty, record.NotEnoughEvidence, "", 0, 0, "attempts refused at the time", "whether the 9 attempts refused at the time would have been made anyway"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, rows := settled(c.claim, c.room, Rules())
			require.Equal(t, c.word, v.Word, v.Missing)
			require.Equal(t, c.keep, v.Keep)
			require.Equal(t, c.held, v.HeldBy)
			require.Equal(t, c.uncapped, rateOf(v.Uncapped))
			require.Equal(t, c.target, rateOf(v.Target))
			if c.missing == "" {
				require.Empty(t, v.Missing)
			} else {
				require.Len(t, v.Missing, 1)
				require.Contains(t, v.Missing[0], c.missing)
			}
			require.EqualValues(t, 10, v.Today.Rate)
			require.Len(t, rows, 3)
			require.Equal(t, c.word, rows[0].Word)
			require.Equal(t, record.NotEnoughEvidence, rows[2].Word, "nothing is known of concurrency")
			for _, r := range rows {
				require.NotEmpty(t, r.Why, r.Dimension)
			}
			switch {
			case c.word == record.Keep:
				require.EqualValues(t, 10, *rows[0].Target, "what is kept is today's")
			case c.target == 0:
				require.Nil(t, rows[0].Target)
			default:
				require.Equal(t, c.target, *rows[0].Target)
			}
			if c.uncapped > 0 {
				require.Equal(t, c.uncapped, *rows[0].Uncapped)
				require.LessOrEqual(t, rows[0].Range[0], c.uncapped)
				require.GreaterOrEqual(t, rows[0].Range[1], c.uncapped)
			}
			if c.word == record.Keep {
				require.EqualValues(t, 10, *rows[0].Target, "it stays")
			}
		})
	}
}

func rateOf(c *record.Cell) int64 {
	if c == nil {
		return 0
	}
	return c.Rate
}

// Of the rules at least three reports or seven days have to agree.
func TestDecisionWaitsForAgreement(t *testing.T) {
	rules := Rules()
	rules.MinDays = 2
	usual := scene{users: 1000, days: 6, affected: map[int64]int{10: 40, 15: 1}}
	c := onTen(usual)
	v, _ := settled(c, 1000, rules)
	require.Equal(t, record.KeepUnagreed, v.Keep)
	c.earlier = 1
	v, _ = settled(c, 1000, rules)
	require.Equal(t, record.KeepUnagreed, v.Keep, "two reports")
	c.earlier = 2
	v, _ = settled(c, 1000, rules)
	require.Equal(t, record.Raise, v.Word, "three reports")
	usual.days = 7
	v, _ = settled(onTen(usual), 1000, rules)
	require.Equal(t, record.Raise, v.Word, "seven days")
}

// A short history widens where the answer may be.
func TestWidened(t *testing.T) {
	require.Equal(t, [2]int64{14, 40}, widened(15, 20, 1))
	require.Equal(t, [2]int64{14, 23}, widened(15, 20, 7))
	require.Equal(t, [2]int64{14, 21}, widened(15, 20, 365))
}

func TestDecisionTellsWhatItLacks(t *testing.T) {
	today := &record.ReportAllowance{RequestsPerMinute: 10, Burst: 10}
	enough := scene{users: 1000, days: 7}.whatIf()
	refused := scene{users: 1000, days: 7}.whatIf()
	refused.Refused = "the times are not those of the requests"
	for name, c := range map[string]struct {
		claim   claim
		missing string
	}{
		"a run alone":          {claim{today: today}, "no recorded traffic"},
		"no allowance":         {claim{whatIf: enough}, "today's allowance is unknown"},
		"times that are false": {claim{today: today, whatIf: refused}, "the times are not those of the requests"},
	} {
		t.Run(name, func(t *testing.T) {
			v, rows := settled(c.claim, 1000, Rules())
			require.Equal(t, record.NotEnoughEvidence, v.Word)
			require.Len(t, v.Missing, 1)
			require.Contains(t, v.Missing[0], c.missing)
			require.Nil(t, v.Today)
			for _, r := range rows {
				require.Equal(t, record.NotEnoughEvidence, r.Word)
				require.Nil(t, r.Target)
			}
		})
	}
}

// A smaller allowance of a paid plan is something to look at and never what is
// recommended, not even where nobody would notice it and the engine is over what
// it may be asked for. Unknown is paid.
func TestDecisionNeverLowersAPaidPlan(t *testing.T) {
	c := claim{today: &record.ReportAllowance{RequestsPerMinute: 60, Burst: 60}, whatIf: scene{users: 1000, days: 7}.whatIf(), evidence: filled(), engine: engineToday{known: true, over: true}}
	v, rows := settled(c, 1000, Rules())
	require.Equal(t, record.Keep, v.Word)
	require.Nil(t, v.Target)
	require.EqualValues(t, 5, v.LookAt.Rate)
	require.Equal(t, record.Keep, rows[0].Word)
	n := c.notice(v, nil, "2026-03-01", nil, Rules())
	require.True(t, n.Needed)
	require.Equal(t, "2026-03-31", n.Earliest)

	c.unpaid = true
	v, rows = settled(c, 1000, Rules())
	require.Equal(t, record.Lower, v.Word)
	require.EqualValues(t, 5, v.Target.Rate)
	require.Equal(t, record.Lower, rows[0].Word)
	require.False(t, c.notice(v, nil, "2026-03-01", nil, Rules()).Needed)

	c.engine.over = false
	v, _ = settled(c, 1000, Rules())
	require.Equal(t, record.Keep, v.Word, "there is no need to")

	above := scene{users: 1000, days: 7, affected: map[int64]int{5: 90, 10: 3, 15: 90}}.whatIf()
	v = claim{today: c.today, whatIf: above, evidence: filled()}.aim(Rules()).verdict
	require.EqualValues(t, 20, v.LookAt.Rate, "one below which there is none that would do")
}

// Where most rejections are for want of a place, places are tried first; nothing
// of the rate is changed for it.
func TestDecisionOnConcurrency(t *testing.T) {
	s := scene{users: 1000, days: 7, affected: map[int64]int{10: 40, 15: 40, 20: 40, 30: 40, 60: 40}}
	c := onTen(s)
	c.today.Concurrency = 2
	c.whatIf.Caps = []int64{2, 4}
	for i := range c.whatIf.Grid {
		x := &c.whatIf.Grid[i]
		x.Concurrency, x.RejectedConcurrency, x.RejectedRate = 2, x.Rejected, 0
	}
	more := cell(10, 10, 1000, 1)
	more.Concurrency = 4
	c.whatIf.Grid = append(c.whatIf.Grid, more)
	v, rows := settled(c, 1000, Rules())
	require.Equal(t, record.Raise, v.Word)
	require.EqualValues(t, 4, v.Target.Concurrency)
	require.Equal(t, []record.Reassessment{record.Keep, record.Keep, record.Raise}, []record.Reassessment{rows[0].Word, rows[1].Word, rows[2].Word})
	require.EqualValues(t, 2, *rows[2].Today)
	require.EqualValues(t, 4, *rows[2].Target)
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
