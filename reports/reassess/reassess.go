// Package reassess weighs evidence on each plan's allowance: what access logs
// replay to, what load runs and capacity searches measured, what an API log, a
// deployment's meters, tickets and earlier reports say, and what none of them can
// tell. Its answer is keep, raise, lower, or not enough evidence; it never lowers
// a paid plan's allowance by itself and never concludes from what is missing.
//
// Most callers want [Read], then [Evidence.Report]. The decision rests on users
// and not on requests, since the requests of one user are no independent draws:
// a user is OK if fewer than 0.1 % of their attempts are rejected, and an
// allowance meets the goal if the lower end of Wilson's 95 % interval of the
// share of users who are OK does.
//
// The sections of the report have a file each: decision.go and decision_settle.go
// (S0), scores.go (S2), whatif.go (S5), capacity.go (S6), binding.go (S7),
// fairness.go (S8), cost.go (S9), notice.go (S10), tickets.go (S11), against.go
// (S12), gates.go and conditions.go (S13), migration.go (S14).
package reassess

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/evidence"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/roster"
)

// Options say what the inputs cannot.
type Options struct {
	Brimline  string                  // version to state
	Gates     Gates                   // usually of [Rules] alone
	Plan      string                  // of an access log's clients; empty: [Everybody]
	Allowance *record.ReportAllowance // of an access log's clients, today; nil: unknown
	Earlier   []Earlier               // reports whose recommendations count; the last one is compared with
	Date      string                  // that notice counts from, YYYY-MM-DD; empty: the day of the latest evidence
	Seed      uint64                  // of every draw
	Progress  func(done, of int64)    // of one reading of a log's attempts; nil: nobody listens

	Beside // what comes from neither a log nor a run
}

// Beside is what is known from elsewhere: all of it may be left out, and the
// sections that would rest on it say so.
type Beside struct {
	Inputs  []record.ReportInput // what it was read from
	Map     *roster.Map          // whose the pools of an access log are, and what plans are
	Key     *roster.Key          // of pseudonyms that stay the same; nil: ranks
	Prices  []evidence.Listed
	Usage   []evidence.Usage // of paid operations, in order of time; nil: nobody looked
	Tickets []evidence.Ticket
	Asked   bool                  // somebody looked for tickets
	Metrics *record.ReportMetrics // of the running engine over the traffic's time; nil: nobody asked
}

// Report weighs the evidence. Gates that ask for fewer users than can show the
// goal are given as many.
func (e Evidence) Report(ctx context.Context, opt Options) (record.Report, error) {
	opt.Gates.Rules.MinUsers = max(opt.Gates.Rules.MinUsers, enough(opt.Gates.Rules.UsersOK))
	rules := opt.Gates.Rules
	r := record.Report{
		Schema: record.ReportSchema, Brimline: opt.Brimline, Rules: rules, Seed: opt.Seed, Inputs: slices.Clone(e.inputs),
		Gates: []record.ReportGate{}, Earlier: []record.ReportEarlier{}, Plans: []record.ReportPlan{}, Logs: []record.Replay{}, Runs: e.described(),
	}
	r.Inputs = append(r.Inputs, opt.Beside.Inputs...)
	if opt.Gates.input.Name != "" {
		r.Inputs = append(r.Inputs, opt.Gates.input)
	}
	for _, old := range opt.Earlier {
		r.Earlier = append(r.Earlier, record.ReportEarlier{Name: old.input.Name, SHA256: old.input.SHA256, Until: old.report.Date})
		r.Inputs = append(r.Inputs, old.input)
	}
	sources, err := e.sources(ctx, opt)
	if err != nil {
		return r, err
	}
	for _, src := range sources {
		r.Logs = append(r.Logs, src.described)
		if c := src.traffic.Roster.Coverage; c != nil {
			r.Coverage = c
		}
	}
	r.Date = cmp.Or(opt.Date, e.latest(sources))
	subjects := e.subjects(sources)
	e.engine.saturated = signals(opt.Metrics).Saturated
	w := weighing{evidence: e, opt: opt, rules: rules, date: r.Date, subjects: subjects}
	for _, src := range sources {
		if err := w.replay(ctx, src); err != nil {
			return r, err
		}
	}
	if r.Support, err = w.support(ctx, sources); err != nil {
		return r, err
	}
	for _, s := range subjects {
		if err := w.weigh(ctx, s); err != nil {
			return r, err
		}
	}
	if err := w.together(ctx, sources, &r); err != nil {
		return r, err
	}
	for _, x := range w.weighed {
		r.Plans = append(r.Plans, x.plan)
	}
	fairness := fairness(w.fair())
	r.Fairness = &fairness
	migration := migration(signals(opt.Metrics), cmp.Or(r.Capacity.Share, w.todayShare()), opt.Gates.Deployment)
	r.Migration = &migration
	slices.SortStableFunc(r.Plans, func(a, b record.ReportPlan) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(affected(b), affected(a)), cmp.Compare(a.Plan, b.Plan))
	})
	if n := len(opt.Earlier); n > 0 {
		a := against(opt.Earlier[n-1], r)
		r.Against = &a
	}
	return r, nil
}

// Window is the time that the traffic is of; the zero time where there is none.
func (e Evidence) Window() (from, until time.Time) {
	for _, l := range []*accesslog.Log{e.access, e.api} {
		if l == nil || l.Quality.Entries == 0 {
			continue
		}
		if from.IsZero() || l.Quality.First.Before(from) {
			from = l.Quality.First
		}
		if l.Quality.Last.After(until) {
			until = l.Quality.Last
		}
	}
	return from, until
}

// latest is the day of the latest evidence; empty: none has a date.
func (e Evidence) latest(sources []*source) (day string) {
	for _, s := range sources {
		if s.log.Quality.Entries > 0 {
			day = max(day, s.log.Quality.Last.UTC().Format("2006-01-02"))
		}
	}
	for _, n := range e.runs {
		day = max(day, n.run.Started.UTC().Format("2006-01-02"))
	}
	if c := e.engine.found; c != nil {
		day = max(day, c.Started.UTC().Format("2006-01-02"))
	}
	return day
}

// described is what is said of the load runs beside their scores.
func (e Evidence) described() []record.ReportRun {
	list := []record.ReportRun{}
	for _, n := range e.runs {
		list = append(list, record.ReportRun{
			Name: n.name, Brimline: n.run.Brimline, Started: n.run.Started, ActualMS: n.run.ActualMS, Interrupted: n.run.Interrupted,
			Seed: n.run.Scenario.Seed, Target: n.run.Target.Description, Clock: n.run.Target.Clock,
			Populations: append([]record.RunPopulation{}, n.run.Scenario.Populations...),
			LagP99US:    n.run.Generator.Lag.P99US, Limits: append([]string{}, n.run.Limits...),
			Untold: n.run.Doubts(),
		})
	}
	return list
}

// weight orders plans by how much news their verdict is.
func weight(p record.ReportPlan) int {
	if n, _ := wrong(p.Scores); n > 0 {
		return 4
	}
	switch v := p.Verdict; {
	case v.Word == record.Raise, v.Word == record.Lower, v.Uncapped != nil && v.Word == record.NotEnoughEvidence:
		return 3
	case v.Word == record.Keep && v.Keep != record.KeepGoalMet:
		return 2
	case v.Word == record.Keep:
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
