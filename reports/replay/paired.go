package replay

import (
	"context"

	"github.com/invoicespec/brimline/reports/record"
)

// UserDay is what one user of a plan met on one day under two allowances, with
// the same attempts.
type UserDay struct {
	User     int
	Day      int64 // since 1970, UTC
	Attempts int64
	Rejected [2]int64
}

// Paired replays each plan's attempts under two allowances and tells users and
// days apart, in order of user, then of day. A plan without a pair, nil, has no
// entry. Memory grows with users and their days.
func (t Traffic) Paired(ctx context.Context, pairs []*[2]record.ReportAllowance) ([][]UserDay, error) {
	today, err := t.today()
	if err != nil {
		return nil, err
	}
	asks := make([]Ask, len(pairs))
	for i, p := range pairs {
		if p != nil {
			asks[i].Each = p[:]
		}
	}
	grids, err := t.grids(asks)
	if err != nil {
		return nil, err
	}
	n := workers()
	take, days := make([]taker, n), make([]*daily, n)
	for w := range take {
		days[w] = &daily{cells: newCells(t, grids), rows: newLedger[[]UserDay](len(pairs), (t.Roster.Users+n-1)/n)}
		take[w] = newDesk(t, today, days[w]).take
	}
	if _, err := t.pass(ctx, everybody, take); err != nil {
		return nil, err
	}
	list := make([][]UserDay, len(pairs))
	for plan := range pairs {
		for user := range t.Roster.Users {
			if rows := days[user%n].rows.rows[plan][user/n]; rows != nil {
				list[plan] = append(list[plan], *rows...)
			}
		}
	}
	return list, nil
}

// daily counts by day what the cells decide.
type daily struct {
	cells *cells
	rows  ledger[[]UserDay]
}

func (d *daily) take(v *visit) {
	g := d.cells.grids[v.plan]
	if v.override || len(g.each) == 0 {
		return
	}
	before := d.rejected(g, v)
	d.cells.take(v)
	after := d.rejected(g, v)
	rows, _ := d.rows.at(v)
	day := floorDiv(v.At, daySeconds*second)
	if n := len(*rows); n == 0 || (*rows)[n-1].Day != day {
		*rows = append(*rows, UserDay{User: v.user, Day: day})
	}
	last := &(*rows)[len(*rows)-1]
	last.Attempts++
	for i := range after {
		last.Rejected[i] += after[i] - before[i]
	}
}

// rejected is what the user has been refused so far under the two.
func (d *daily) rejected(g *grid, v *visit) (n [2]int64) {
	r := d.cells.rows.rows[v.plan][v.local]
	if r == nil {
		return n
	}
	for i, at := range g.each {
		o := r.outcome(g.settings[at])
		n[i] = o.rate + o.concurrency
	}
	return n
}
