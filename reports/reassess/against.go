package reassess

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/invoicespec/brimline/reports/record"
)

// S12, against an earlier report, in benchstat's figures: old, new, delta, and how
// likely chance alone makes such a difference; "~" where that is not unlikely.

// maxReport bounds an earlier report's size.
const maxReport = 64 << 20

// unlikely is the p below which a difference counts as one.
const unlikely = 0.05

// Earlier is a report that was made before.
type Earlier struct {
	report record.Report
	input  record.ReportInput
}

// ReadEarlier reads a report.json.
func ReadEarlier(path string) (Earlier, error) {
	data, in, err := readWhole(path, maxReport, record.InputReport)
	if err != nil {
		return Earlier{}, err
	}
	e := Earlier{input: in}
	switch schema := documentSchema(data); schema {
	case record.ReportSchema:
	case "brimline.report/1":
		return Earlier{}, fmt.Errorf("%s: a report of schema %q, from before decisions were kept by dimension; accepted: %q, which a new report on the same inputs has", path, schema, record.ReportSchema)
	default:
		return Earlier{}, fmt.Errorf("%s: schema is %q; accepted: a report.json of schema %q", path, schema, record.ReportSchema)
	}
	if err := json.Unmarshal(data, &e.report); err != nil {
		return Earlier{}, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}

// asked is in how many earlier reports the plan was to have more than today, and
// less. Reports on the same evidence count once.
func asked(list []Earlier, plan string, today *record.ReportAllowance) (more, less int) {
	seen := map[string]bool{}
	for _, e := range list {
		key := evidenceKey(e.report)
		if seen[key] || today == nil {
			continue
		}
		seen[key] = true
		for _, p := range e.report.Plans {
			if p.Plan != plan || p.Allowance == nil || p.Allowance.RequestsPerMinute != today.RequestsPerMinute || p.Allowance.Burst != today.Burst {
				continue
			}
			switch v := p.Verdict; {
			case v.Word == record.Lower || v.LookAt != nil && v.HeldBy != "":
				less++
			case v.Uncapped != nil:
				more++
			}
		}
	}
	return more, less
}

// evidenceKey tells the traffic of one report from that of another.
func evidenceKey(r record.Report) string {
	var sums []string
	for _, in := range r.Inputs {
		if in.Kind == record.InputAccessLog || in.Kind == record.InputAPILog {
			sums = append(sums, in.SHA256)
		}
	}
	slices.Sort(sums)
	return fmt.Sprint(sums)
}

// against compares two reports plan by plan. Shares of users are tested by
// Fisher's exact test, which takes the users of both reports as drawn apart; of
// what is no count of users no test is made.
func against(old Earlier, now record.Report) record.ReportAgainst {
	a := record.ReportAgainst{Old: old.input.SHA256, Rows: []record.ReportAgainstRow{}, Said: []string{}}
	for _, p := range now.Plans {
		i := slices.IndexFunc(old.report.Plans, func(o record.ReportPlan) bool { return o.Plan == p.Plan })
		if i < 0 {
			a.Said = append(a.Said, fmt.Sprintf("%s is not in the earlier report.", p.Plan))
			continue
		}
		o := old.report.Plans[i]
		a.Rows = append(a.Rows, planRows(o, p)...)
		if o.Verdict.Headline != p.Verdict.Headline {
			a.Said = append(a.Said, fmt.Sprintf("%s: it was “%s” and is “%s”.", p.Plan, o.Verdict.Headline, p.Verdict.Headline))
		}
		if o.Allowance != nil && p.Allowance != nil && *o.Allowance != *p.Allowance {
			a.Said = append(a.Said, fmt.Sprintf("%s: today's allowance was %s and is %s.", p.Plan,
				pair(o.Allowance.RequestsPerMinute, o.Allowance.Burst), pair(p.Allowance.RequestsPerMinute, p.Allowance.Burst)))
		}
	}
	for _, o := range old.report.Plans {
		if !slices.ContainsFunc(now.Plans, func(p record.ReportPlan) bool { return p.Plan == o.Plan }) {
			a.Said = append(a.Said, fmt.Sprintf("%s is in the earlier report alone.", o.Plan))
		}
	}
	return a
}

// planRows are the figures of one plan, by the first score of the same basis that
// both reports have.
func planRows(o, n record.ReportPlan) (rows []record.ReportAgainstRow) {
	was, is := sameBasis(o.Scores, n.Scores)
	if was == nil {
		return nil
	}
	share := func(figure string, was, is record.UserShare, usersWere, usersAre int) {
		p := fisher(was.N, usersWere, is.N, usersAre)
		rows = append(rows, againstRow(n.Plan, figure, "share", &was.Share, &is.Share, &p, usersWere, usersAre))
	}
	share("users affected", was.UsersAffected, is.UsersAffected, was.Users, is.Users)
	share("users OK", was.UsersOK, is.UsersOK, was.Users, is.Users)
	plain := func(figure, unit string, was, is *float64, usersWere, usersAre int) {
		if was != nil || is != nil {
			rows = append(rows, againstRow(n.Plan, figure, unit, was, is, nil, usersWere, usersAre))
		}
	}
	plain("requests", "", number(was.Attempts), number(is.Attempts), was.Users, is.Users)
	plain("requests rejected", "share", &was.RejectedShare, &is.RejectedShare, was.Users, is.Users)
	plain("rejections of one user", "share", was.TopShare, is.TopShare, was.Users, is.Users)
	if was.Latency != nil && is.Latency != nil {
		plain("p50", "s", seconds(was.Latency.P50US), seconds(is.Latency.P50US), was.Users, is.Users)
		plain("p99", "s", seconds(was.Latency.P99US), seconds(is.Latency.P99US), was.Users, is.Users)
	}
	if o.Utilization != nil && n.Utilization != nil && o.Utilization.Burst != nil && n.Utilization.Burst != nil {
		plain("burst in use, p99 of users", "share", &o.Utilization.Burst.P99, &n.Utilization.Burst.P99, o.Utilization.Users, n.Utilization.Users)
	}
	return rows
}

// againstRow leaves the delta out where chance may have made it.
func againstRow(plan, figure, unit string, was, is, p *float64, usersWere, usersAre int) record.ReportAgainstRow {
	row := record.ReportAgainstRow{Plan: plan, Figure: figure, Unit: unit, Old: was, New: is, P: p, NOld: usersWere, NNew: usersAre}
	if p != nil && *p < unlikely && was != nil && is != nil && *was != 0 {
		row.Delta = ratio(*is-*was, *was)
	}
	return row
}

func sameBasis(old, now []record.ReportScore) (was, is *record.ReportScore) {
	for i := range now {
		for j := range old {
			if old[j].Basis == now[i].Basis && old[j].Override == now[i].Override && !now[i].Override {
				return &old[j], &now[i]
			}
		}
	}
	return nil, nil
}

func number(n int64) *float64 {
	x := float64(n)
	return &x
}

func seconds(us int64) *float64 {
	x := float64(us) / 1e6
	return &x
}

// fisher is how likely chance alone makes two shares of users at least as
// different, a in m and b in n: the two-sided exact test.
func fisher(a, m, b, n int) float64 {
	if m == 0 || n == 0 {
		return 1
	}
	hits := a + b
	choose := func(n, k int) float64 {
		x, _ := math.Lgamma(float64(n + 1))
		y, _ := math.Lgamma(float64(k + 1))
		z, _ := math.Lgamma(float64(n - k + 1))
		return x - y - z
	}
	all := choose(m+n, hits)
	log := func(k int) float64 { return choose(m, k) + choose(n, hits-k) - all }
	seen, p := log(a), 0.0
	for k := max(0, hits-n); k <= min(m, hits); k++ {
		if x := log(k); x <= seen+1e-7 {
			p += math.Exp(x)
		}
	}
	return min(1, p)
}
