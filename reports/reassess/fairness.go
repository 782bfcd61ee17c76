package reassess

import (
	"github.com/invoicespec/brimline/reports/record"
)

// S8, fairness: what each plan gets for what it pays, and whether the users of
// the smallest are there for want of more.

// fair is one plan as fairness sees it, in order of allowance.
type fair struct {
	plan       string
	allowance  *record.ReportAllowance
	users      int
	price      *float64  // of a user and month
	demand     *float64  // requests a minute: 99th percentile of users' most attempts in any 60 s
	shares     []float64 // of each user: admitted over demanded
	admitted   float64   // all of them
	service    *float64  // seconds, of one
	failing    *int      // users with a rejection
	failingToo *int      // of these, with one under the next plan's allowance as well
}

// fairness compares the plans.
func fairness(plans []fair) record.ReportFairness {
	f := record.ReportFairness{Plans: []record.ReportFair{}, Missing: []string{}}
	base := func(of func(fair) *float64) func(fair) *float64 {
		for _, p := range plans {
			if x := of(p); x != nil && *x > 0 {
				first := *x
				return func(p fair) *float64 {
					if y := of(p); y != nil {
						return ratio(*y, first)
					}
					return nil
				}
			}
		}
		return func(fair) *float64 { return nil }
	}
	price := base(func(p fair) *float64 { return p.price })
	demand := base(func(p fair) *float64 { return p.demand })
	allowance := base(func(p fair) *float64 {
		if p.allowance == nil {
			return nil
		}
		x := float64(p.allowance.RequestsPerMinute)
		return &x
	})
	engine := parts(plans, func(p fair) *float64 {
		if p.service == nil {
			return nil
		}
		x := p.admitted * *p.service
		return &x
	})
	revenue := parts(plans, func(p fair) *float64 {
		if p.price == nil {
			return nil
		}
		x := *p.price * float64(p.users)
		return &x
	})
	for i, p := range plans {
		row := record.ReportFair{Plan: p.plan, Price: price(p), Demand: demand(p), Jain: jain(p.shares), EngineShare: engine[i], RevenueShare: revenue[i]}
		if x := allowance(p); x != nil {
			row.Allowance = *x
		}
		f.Plans = append(f.Plans, row)
	}
	lack := func(list []*float64, what string) {
		for _, x := range list {
			if x == nil {
				f.Missing = append(f.Missing, what)
				return
			}
		}
	}
	lack(revenue, "revenue by plan: it takes every plan's price, by --prices or the plan map, and its users")
	lack(engine, "engine seconds by plan: it takes recorded traffic of every plan and how long the engine works on a request")
	if len(plans) < 2 {
		f.Missing = append(f.Missing, "a second plan to compare with: a plan map names plans")
		return f
	}
	if p := plans[0]; p.failing != nil && p.failingToo != nil {
		f.FailAtFree, f.FailAtNext = p.failing, p.failingToo
		if p.users > 0 {
			f.UpgradePressure = ratio(float64(*p.failing-*p.failingToo), float64(p.users))
		}
	} else {
		f.Missing = append(f.Missing, "upgrade pressure: it takes recorded traffic of the smallest plan, and the next plan's allowance")
	}
	return f
}

// parts are each plan's share of the sum, all nil where one is unknown.
func parts(plans []fair, of func(fair) *float64) []*float64 {
	list, sum := make([]*float64, len(plans)), 0.0
	for _, p := range plans {
		x := of(p)
		if x == nil {
			return list
		}
		sum += *x
	}
	for i, p := range plans {
		list[i] = ratio(*of(p), sum)
	}
	return list
}

// jain is Jain's index of values: 1 where all are equal, 1/n where one has all.
func jain(values []float64) *float64 {
	var sum, squares float64
	for _, x := range values {
		sum += x
		squares += x * x
	}
	return ratio(sum*sum, float64(len(values))*squares)
}
