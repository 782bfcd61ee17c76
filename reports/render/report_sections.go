package render

import (
	"fmt"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// section is a part of a report as every way of writing it shows it: sentences,
// charts, tables, and what is missing.
type section struct {
	ID, Title string
	Note      string // how to read it
	Blocks    []block
}

// block is what a section says of one plan, or of all together.
type block struct {
	Plan    string // empty: of all
	Closed  bool   // folded away at first
	Said    []string
	Figures []drawing
	WhatIf  *whatIfView
	Tables  []sheet
	Facts   []factList
	Missing []string // what cannot be said, and what it takes
}

// factList is what is to be said of one input.
type factList struct {
	Name  string
	Facts []fact
}

// reportSections is the whole report below the decision. A section without
// evidence is there and says what it takes.
func reportSections(r record.Report) []section {
	list := []section{
		{"scoreboard", "How the users fare", "Every user counts once, however many requests they make. Intervals are Wilson’s at 95 %.", scoreBlocks(r)},
		{"utilization", "How much of the allowance is used", "Each user’s most, as a multiple of what is allowed today. From 0.8 to 1, the shaded part, a user is near the limit; beyond 1 they meet it.", perPlan(r, utilizationBlock)},
		{"anatomy", "What the 429s are made of", "By replay of the recorded attempts at today’s allowance.", perPlan(r, anatomyBlock)},
		{"what-if", "What other allowances would do", "The same recorded traffic, decided again by the exact limiter under each allowance.", perPlan(r, whatIfBlock)},
		{"capacity", "What the engine can take", "Requests per second of all plans together.", capacityBlocks(r)},
		{"binding", "Which limit binds first", "The first limit that each user hits.", bindingBlocks(r)},
		{"fairness", "What each plan gets for what it pays", "Ratios are to the smallest plan that has the figure.", fairnessBlocks(r)},
		{"cost", "What the change costs", "More admitted requests in the busiest hour, and the engine’s time for them.", costBlocks(r)},
		{"notice", "Notice and rollout", "A raise needs no notice. A reduction of a paid plan is never recommended by itself; where one is looked at, this is whom it would hit and when it could come.", noticeBlocks(r)},
		{"support", "What customers reported", "", supportBlocks(r)},
		{"against", "Against the last report", "A ~ is a difference that may be chance.", againstBlocks(r)},
		{"gates", "Evidence and gates", "What each answer rests on. A gate whose evidence is missing does not hold.", gateBlocks(r)},
		{"migration", "Whether local limiter storage still does", "", migrationBlocks(r)},
		{"inputs", "Where this comes from", "", inputBlocks(r)},
	}
	return list
}

// perPlan is a block for each plan; all but the first that has something to show
// are folded away.
func perPlan(r record.Report, of func(r record.Report, p record.ReportPlan, place int) block) (blocks []block) {
	shown := false
	for place, p := range r.Plans {
		b := of(r, p, place)
		b.Plan = p.Plan
		b.Closed = shown && len(b.Figures)+len(b.Tables) > 0
		shown = shown || len(b.Figures) > 0
		blocks = append(blocks, b)
	}
	return blocks
}

// reportFigures is every chart of a report.
func reportFigures(r record.Report) (list []drawing) {
	for _, s := range reportSections(r) {
		for _, b := range s.Blocks {
			list = append(list, b.Figures...)
			if b.WhatIf != nil {
				list = append(list, drawing{sheet: b.WhatIf.sheet})
			}
		}
	}
	return list
}

// decisionSheet is S0: what becomes of each dimension of each plan.
func decisionSheet(r record.Report) sheet {
	s := sheet{
		Name: "decision", Title: "The decision, dimension by dimension",
		Columns: []column{
			{"plan", "plan", asText}, {"dimension", "limit", asText}, {"word", "answer", asText}, {"today", "today", asCount},
			{"uncapped", "the goal alone", asCount}, {"target", "capped target", asCount}, {"held_by", "held by", asText},
		},
	}
	for _, p := range r.Plans {
		for _, d := range p.Decision {
			held := any(d.HeldBy)
			if d.HeldBy == "" {
				held = nil
			}
			s.Rows = append(s.Rows, []any{p.Plan, string(d.Dimension), answer(d.Word), optional(d.Today), optional(d.Uncapped), optional(d.Target), held})
		}
	}
	return s
}

func answer(w record.Reassessment) string {
	if w == record.NotEnoughEvidence {
		return "not enough evidence"
	}
	return string(w)
}

// scoreBlocks is S2.
func scoreBlocks(r record.Report) []block {
	b := block{}
	d := sharesDrawing(r)
	if len(d.Rows) > 0 {
		b.Figures = append(b.Figures, d)
	} else {
		b.Missing = []string{"users of any plan: it takes recorded traffic or a load run"}
	}
	beside := sheet{Name: "beside", Title: "Beside the 429s, and in none of their shares", Columns: []column{
		{"plan", "plan", asText}, {"source", "by", asText}, {"config_unavailable", "503 configuration", asCount}, {"capacity_unavailable", "503 capacity", asCount},
		{"out_of_operations", "402 out of operations", asCount}, {"effective_users", "effective users", asNumber}, {"design_effect", "design effect", asNumber},
	}}
	for _, p := range r.Plans {
		for _, s := range p.Scores {
			name := p.Plan
			if s.Override {
				name += " (own allowances)"
			}
			beside.Rows = append(beside.Rows, []any{name, s.Source, optional(s.ConfigUnavailable), optional(s.CapacityUnavailable), optional(s.OutOfOperations), s.EffectiveUsers, optional(s.DesignEffect)})
		}
	}
	if len(beside.Rows) > 0 {
		b.Tables = append(b.Tables, beside)
	}
	return []block{b}
}

// gateBlocks is S13's gates and the evidence that each answer rests on.
func gateBlocks(r record.Report) (blocks []block) {
	if len(r.Gates) > 0 {
		blocks = append(blocks, block{Tables: []sheet{gateSheet("All plans together", r.Gates)}})
	}
	return append(blocks, perPlan(r, func(_ record.Report, p record.ReportPlan, _ int) block {
		b := block{}
		if len(p.Gates) > 0 {
			b.Tables = append(b.Tables, gateSheet("", p.Gates))
		}
		var list []fact
		for _, e := range p.Evidence {
			lines := e.Found
			if e.Missing != "" {
				lines = append(lines[:len(lines):len(lines)], "Missing: "+e.Missing+".")
			}
			list = append(list, fact{string(e.Kind), lines})
		}
		if len(list) > 0 {
			b.Facts = []factList{{"Evidence", list}}
		}
		return b
	})...)
}

func gateSheet(title string, gates []record.ReportGate) sheet {
	s := sheet{Name: "gates", Title: title, Columns: []column{{"name", "gate", asText}, {"need", "needs", asText}, {"found", "found", asText}, {"state", "holds", asText}}}
	for _, g := range gates {
		s.Rows = append(s.Rows, []any{g.Name, g.Need, g.Found, gateState(g.State)})
	}
	return s
}

// inputBlocks is S1.
func inputBlocks(r record.Report) []block {
	s := sheet{Name: "inputs", Columns: []column{{"name", "input", asText}, {"kind", "kind", asText}, {"bytes", "size", asText}, {"sha256", "SHA-256", asText}}}
	for _, in := range r.Inputs {
		s.Rows = append(s.Rows, []any{in.Name, inputKind(in.Kind), figure.Bytes(in.Bytes), in.SHA256})
	}
	b := block{Tables: []sheet{s}}
	if c := r.Coverage; c != nil {
		b.Said = append(b.Said, fmt.Sprintf("%s names the plan of %s of %s clients, who make %s of %s attempts; the others are in no figure of a plan.", c.From,
			grouped(c.ClientsKnown), grouped(c.Clients), grouped(c.AttemptsKnown), grouped(c.Attempts)),
			fmt.Sprintf("%s in all, %s with an allowance of their own; %s and %s within the traffic, each restart with full buckets. Users are named %s.",
				figure.Count(int64(c.Users), "user"), grouped(c.Overrides), figure.Count(int64(c.PlanChanges), "plan change"), figure.Count(int64(c.Restarts), "restart"), c.Pseudonyms))
	} else {
		b.Missing = append(b.Missing, "which plan each client is on: a plan map says it (--plan-map FILE)")
	}
	b.Said = append(b.Said, fmt.Sprintf("Every draw is from seed %d, so that it can be repeated.", r.Seed))
	for _, e := range r.Earlier {
		b.Said = append(b.Said, fmt.Sprintf("The recommendations of %s, with evidence up to %s, count as well.", e.Name, e.Until))
	}
	for _, l := range r.Logs {
		b.Facts = append(b.Facts, factList{fileNames(l.Log), logFacts(l)})
	}
	for _, n := range r.Runs {
		b.Facts = append(b.Facts, factList{n.Name, runFacts(n)})
	}
	return []block{b}
}
