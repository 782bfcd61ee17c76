// Package roster says whose the pools of a log are: which user, on which plan,
// and since when. A plan map ([Read]) is that and what a plan costs, as people
// write it: strict YAML, with the users in it or in a table beside it.
//
// Most callers want [Single], for a log of which nothing is known but the plan,
// or [Read], then [Map.Resolve]. Whoever the map does not cover is left out and
// counted ([record.ReportCoverage]); nobody is guessed to be on a plan.
package roster

import (
	"math"

	"github.com/invoicespec/brimline/reports/record"
)

// Roster is whose each pool is.
type Roster struct {
	Plans    []Plan    // in order of allowance
	Users    int       // users are 0..Users-1
	UserOf   []int32   // by pool; -1: nobody knows the plan of it
	Phases   [][]Phase // by user, in order of time; the first from [math.MinInt64]
	Restarts []int64   // microseconds since 1970, in order: every bucket is full again

	IDs      []string               // by user, as evidence names them, to join it and never to be shown; nil: unknown
	Billing  []int                  // by user: the day of the month on which a billing period begins; nil or 0: unknown
	Coverage *record.ReportCoverage // nil: nothing names the plans
}

// Plan is a plan as it is today.
type Plan struct {
	Name  string
	Today *record.ReportAllowance // nil: unknown

	Paid       *bool  // nil: unknown
	Price      *Price // nil: unknown
	Operations *int64 // paid ones of a user and month; nil: unknown
}

// Phase is what a user is on from an instant, in microseconds since 1970, until
// the next phase.
type Phase struct {
	From     int64
	Plan     int                     // in [Roster.Plans]
	Override *record.ReportAllowance // in place of the plan's; nil: none
}

// Single is the roster of a log whose pools are users of one plan.
func Single(plan string, today *record.ReportAllowance, pools int) *Roster {
	r := &Roster{
		Plans: []Plan{{Name: plan, Today: today}}, Users: pools,
		UserOf: make([]int32, pools), Phases: make([][]Phase, pools),
	}
	always := []Phase{{From: math.MinInt64}}
	for i := range pools {
		r.UserOf[i], r.Phases[i] = int32(i), always
	}
	return r
}
