package replay

import (
	"context"

	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reports/record"
)

// Today is the attempts under the allowances that are in force.
type Today struct {
	Plans     []PlanToday // in the order of the roster
	Overrides []Override  // in order of user
}

// PlanToday is one plan's users under its allowance. Where that is not known
// all of it says so.
type PlanToday struct {
	Utilization record.ReportUtilization
	Anatomy     record.ReportAnatomy
	Binding     record.ReportBinding // users by the limit that each met first
}

// Override is a user's attempts under an allowance of their own, decided by it.
type Override struct {
	User      int
	Plan      int // that it took the place of
	Allowance record.ReportAllowance
	Attempts  int64
	Rejected  int64
}

// Today measures what users take of the allowances in force, and looks into the
// rejections that these make.
func (t Traffic) Today(ctx context.Context) (Today, error) {
	limits, err := t.today()
	if err != nil {
		return Today{}, err
	}
	n := workers()
	each := (t.Roster.Users + n - 1) / n
	plans := len(t.Roster.Plans)
	uses, looks, own := make([]*utilization, n), make([]*anatomy, n), make([]*overrides, n)
	take := make([]taker, n)
	for w := range take {
		uses[w] = &utilization{durations: t.Durations, rows: newLedger[use](plans, each)}
		looks[w] = newAnatomy(t, each)
		own[w] = &overrides{rows: newLedger[Override](plans, each)}
		take[w] = newDesk(t, limits, uses[w], looks[w], own[w]).take
	}
	if _, err := t.pass(ctx, everybody, take); err != nil {
		return Today{}, err
	}
	var today Today
	for plan := range plans {
		var used []*use
		var looked []*pathology
		all := &rejections{episodes: newEpisodes()}
		for user := range t.Roster.Users {
			w, local := user%n, user/n
			if r := uses[w].rows.rows[plan][local]; r != nil {
				used = append(used, r)
			}
			if r := looks[w].rows.rows[plan][local]; r != nil {
				r.episode.end(&looks[w].plans[plan].episodes)
				looked = append(looked, r)
			}
		}
		for _, l := range looks {
			all.merge(l.plans[plan])
		}
		today.Plans = append(today.Plans, PlanToday{
			Utilization: utilizations(used, limits[plan], t.Durations),
			Anatomy:     all.anatomies(looked, limits[plan], t.Durations),
			Binding:     binding(looked, limits[plan]),
		})
	}
	for user := range t.Roster.Users {
		for plan := range plans {
			if o := own[user%n].rows.rows[plan][user/n]; o != nil {
				today.Overrides = append(today.Overrides, *o)
			}
		}
	}
	return today, nil
}

// binding counts users by the limit that each met first.
func binding(rows []*pathology, l limit) record.ReportBinding {
	b := record.ReportBinding{Users: len(rows), Missing: []string{}}
	if l.IsZero() {
		b.Missing = append(b.Missing, "today's allowance is not known")
	}
	for _, p := range rows {
		switch p.first {
		case operationsLimit:
			b.Operations++
		case rateLimit:
			b.Rate++
		case burstLimit:
			b.Burst++
		case concurrencyLimit:
			b.Concurrency++
		case engineLimit:
			b.Engine++
		default:
			b.None++
		}
	}
	return b
}

// overrides counts attempts under allowances of users' own; of several in place
// of one plan the latest is told.
type overrides struct{ rows ledger[Override] }

func (o *overrides) take(v *visit) {
	if !v.override {
		return
	}
	r, _ := o.rows.at(v)
	r.User, r.Plan = v.user, v.plan
	r.Allowance = record.ReportAllowance{RequestsPerMinute: v.limit.RequestsPerMinute(), Burst: v.limit.Burst()}
	if v.limit.capped {
		r.Allowance.Concurrency = v.limit.Concurrency()
	}
	r.Attempts++
	if v.decision.Outcome != admission.Admitted {
		r.Rejected++
	}
}
