// Package reassess weighs evidence on each plan's allowance: what access logs
// replay to, what load runs measured, and what neither can tell. Its answer is
// keep, raise, or not enough evidence; it never lowers an allowance by itself
// and never concludes from what is missing.
//
// Most callers want [Read], then [Evidence.Report]. The decision rests on users
// and not on requests, since the requests of one user are no independent draws:
// a user is OK if fewer than 0.1 % of their attempts are rejected, and an
// allowance meets the goal if the lower end of Wilson's 95 % interval of the
// share of users who are OK does.
package reassess

import (
	"cmp"
	"slices"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
)

// Rules are the gates of a recommendation unless somebody sets others. The users
// are the fewest with whom the goal can be shown at all; see [Evidence.Report].
func Rules() record.ReportRules {
	const goal = 0.99
	return record.ReportRules{
		UsersOK: goal, MinDays: 7, MinUsers: enough(goal), TopShare: 0.5, MinMoved: 3, AgreeReports: 3, AgreeDays: 7,
		PeakShare: 0.7, P99US: 250_000, NoticeDays: 30, Burst: record.BurstAsToday, Draws: 1000,
		Required: []record.EvidenceKind{record.EvidenceUtilization, record.EvidenceFrequency, record.EvidenceSaturation, record.EvidenceLatency},
	}
}

// Everybody is the plan of an access log's clients where nobody names it.
const Everybody = "all clients"

// Options say what the inputs cannot.
type Options struct {
	Brimline  string                  // version to state
	Rules     record.ReportRules      // usually [Rules]
	Plan      string                  // of an access log's clients; empty: [Everybody]
	Allowance *record.ReportAllowance // of an access log's clients, today; nil: unknown
}

// subject is all that is known of one plan.
type subject struct {
	plan      string
	allowance *record.ReportAllowance
	from      string // who states the allowance

	log     *accesslog.Log // the plan's part of it; nil: none
	source  string         // the log's name
	leftOut int            // users of the log with an allowance of their own
	lost    int64          // answers 402 in the whole API log
	runs    []planRun

	next *subject // the plan with the next larger rate; nil: none is known
}

// planRun is a run as far as it concerns a plan.
type planRun struct {
	name string
	run  *record.Run
	plan *record.RunPlan

	doubts []string // why it tells nothing of the plan
}

// Report weighs the evidence. Rules that ask for fewer users than can show the
// goal are given as many.
func (e Evidence) Report(opt Options) (record.Report, error) {
	opt.Rules.MinUsers = max(opt.Rules.MinUsers, enough(opt.Rules.UsersOK))
	r := record.Report{
		Schema: record.ReportSchema, Brimline: opt.Brimline, Rules: opt.Rules, Inputs: e.inputs,
		Gates: []record.ReportGate{}, Earlier: []record.ReportEarlier{}, Plans: []record.ReportPlan{}, Logs: []record.Replay{}, Runs: []record.ReportRun{},
	}
	subjects, err := e.subjects(opt)
	if err != nil {
		return r, err
	}
	for _, s := range subjects {
		p, err := s.weigh(opt.Rules)
		if err != nil {
			return r, err
		}
		r.Plans = append(r.Plans, p)
	}
	slices.SortStableFunc(r.Plans, func(a, b record.ReportPlan) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(affected(b), affected(a)), cmp.Compare(a.Plan, b.Plan))
	})
	for _, l := range []*accesslog.Log{e.access, e.api} {
		if l == nil {
			continue
		}
		described, err := describe(l)
		if err != nil {
			return r, err
		}
		r.Logs = append(r.Logs, described)
	}
	for _, n := range e.runs {
		r.Runs = append(r.Runs, record.ReportRun{
			Name: n.name, Brimline: n.run.Brimline, Started: n.run.Started, ActualMS: n.run.ActualMS, Interrupted: n.run.Interrupted,
			Seed: n.run.Scenario.Seed, Target: n.run.Target.Description, Clock: n.run.Target.Clock,
			Populations: append([]record.RunPopulation{}, n.run.Scenario.Populations...),
			LagP99US:    n.run.Generator.Lag.P99US, Limits: append([]string{}, n.run.Limits...),
			Untold: n.run.Doubts(),
		})
	}
	return r, nil
}

// weigh makes a plan's part of the report.
func (s *subject) weigh(rules record.ReportRules) (record.ReportPlan, error) {
	p := record.ReportPlan{Plan: s.plan, Allowance: s.allowance, AllowanceFrom: s.from, Scores: []record.ReportScore{}}
	q := question{today: s.allowance, next: s.next}
	if s.log != nil {
		w, err := s.whatIf()
		if err != nil {
			return p, err
		}
		p.WhatIf, q.whatIf = &w, &w
	}
	p.Verdict = judge(q, rules)
	p.Scores = s.scores(p.Verdict.Today, p.WhatIf)
	p.Gates = gates(q, p.Verdict, rules)
	p.Evidence = s.evidence(p)
	p.Verdict.Headline = headline(p)
	p.Verdict.Because = append(because(p, rules), s.doubted()...)
	return p, nil
}

// weight orders plans by how much news their verdict is.
func weight(p record.ReportPlan) int {
	for _, s := range p.Scores {
		if s.Wrong() > 0 {
			return 4
		}
	}
	switch {
	case p.Verdict.Word == record.Raise:
		return 3
	case p.Verdict.Word == record.Keep && p.Verdict.Keep != record.KeepGoalMet:
		return 2
	case p.Verdict.Word == record.Keep:
		return 1
	}
	return 0
}

// affected is the largest share of users with a 429 among a plan's scores.
func affected(p record.ReportPlan) (share float64) {
	for _, s := range p.Scores {
		share = max(share, s.UsersAffected.Share)
	}
	return share
}
