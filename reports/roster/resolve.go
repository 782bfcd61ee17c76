package roster

import (
	"cmp"
	"context"
	"math"
	"net/netip"
	"path/filepath"
	"slices"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/timeline"
)

// The reasons why the plan of somebody is not known.
const (
	notNamed = "not in the plan map"
	tooEarly = "with requests before the first time at which the plan map knows the plan"
)

// Resolve says whose the pools of a log are. Names are by pool: a client's
// address, or a user's id. A pool is the user's whose client has just that name;
// else the user's of the longest range around the address; else that of the user
// with the name. What the map does not cover is left out and counted.
func (m *Map) Resolve(ctx context.Context, names []string, attempts *timeline.Timeline) (*Roster, error) {
	made, first := make([]int64, len(names)), make([]int64, len(names))
	for batch, err := range attempts.Batches(ctx) {
		if err != nil {
			return nil, err
		}
		for _, a := range batch {
			if int(a.Pool) >= len(names) {
				continue
			}
			if made[a.Pool] == 0 {
				first[a.Pool] = a.At
			}
			made[a.Pool]++
		}
	}
	r := &Roster{Plans: slices.Clone(m.plans), UserOf: make([]int32, len(names)), Coverage: &record.ReportCoverage{
		From: filepath.Base(m.name), Attempts: attempts.Len(), LeftOut: []record.Count{},
	}}
	owners, left := make([]string, len(names)), map[string]int64{}
	earliest := map[string]int64{} // of a user's attempts
	for pool, name := range names {
		owner, ok := m.ownerOf(name)
		owners[pool] = owner
		if made[pool] == 0 {
			continue
		}
		r.Coverage.Clients++
		if !ok {
			left[notNamed]++
			continue
		}
		if at, seen := earliest[owner]; !seen || first[pool] < at {
			earliest[owner] = first[pool]
		}
	}
	places := map[string]int32{}
	for pool, owner := range owners {
		r.UserOf[pool] = -1
		if made[pool] == 0 || owner == "" {
			continue
		}
		u := m.users[owner]
		if u.plans[0].from > earliest[owner] {
			left[tooEarly]++
			continue
		}
		place, seen := places[owner]
		if !seen {
			place = int32(r.Users)
			places[owner] = place
			r.Users++
			r.IDs = append(r.IDs, owner)
			r.Billing = append(r.Billing, u.billing)
			r.Phases = append(r.Phases, m.phases(u))
			m.count(r.Coverage, u, attempts)
		}
		r.UserOf[pool] = place
		r.Coverage.ClientsKnown++
		r.Coverage.AttemptsKnown += made[pool]
	}
	r.Coverage.Users = r.Users
	for _, why := range []string{notNamed, tooEarly} {
		if left[why] > 0 {
			r.Coverage.LeftOut = append(r.Coverage.LeftOut, record.Count{Name: why, N: left[why]})
		}
	}
	r.Restart(m.restarts, attempts)
	return r, nil
}

// ownerOf is whose a name is.
func (m *Map) ownerOf(name string) (string, bool) {
	if owner, ok := m.exact[plainly(name)]; ok {
		return owner, true
	}
	if a, err := netip.ParseAddr(name); err == nil {
		a = a.Unmap()
		for _, bits := range m.lengths {
			p, err := a.Prefix(bits)
			if err != nil {
				continue // longer than the address
			}
			if owner, ok := m.ranges[p]; ok {
				return owner, true
			}
		}
	}
	_, ok := m.users[name]
	if !ok {
		return "", false
	}
	return name, true
}

// phases lays a user's plans and overrides on one line.
func (m *Map) phases(u *user) []Phase {
	turns := []int64{math.MinInt64}
	for _, s := range u.plans[1:] {
		turns = append(turns, s.from)
	}
	for _, o := range u.overrides {
		turns = append(turns, o.from, o.until)
	}
	slices.Sort(turns)
	var list []Phase
	for _, at := range slices.Compact(turns) {
		if at == math.MaxInt64 {
			break
		}
		p := Phase{From: at, Plan: u.plans[0].plan}
		for _, s := range u.plans {
			if s.from <= at {
				p.Plan = s.plan
			}
		}
		for _, o := range u.overrides {
			if o.from <= at && at < o.until {
				p.Override = o.of(*m.plans[p.Plan].Today)
			}
		}
		list = append(list, p)
	}
	return list
}

// of is the override on top of a plan's allowance.
func (o override) of(a record.ReportAllowance) *record.ReportAllowance {
	for _, part := range []struct{ own, to *int64 }{{o.rate, &a.RequestsPerMinute}, {o.burst, &a.Burst}, {o.concurrency, &a.Concurrency}} {
		if part.own != nil {
			*part.to = *part.own
		}
	}
	return &a
}

// count notes a user's overrides and plan changes within the traffic.
func (m *Map) count(c *record.ReportCoverage, u *user, attempts *timeline.Timeline) {
	if slices.ContainsFunc(u.overrides, func(o override) bool { return o.from <= attempts.Last() && o.until > attempts.First() }) {
		c.Overrides++
	}
	for _, s := range u.plans[1:] {
		if attempts.First() < s.from && s.from <= attempts.Last() {
			c.PlanChanges++
		}
	}
}

// Stated reports whether the map states restarts itself; where it does not, the
// start times of the engine may be known from elsewhere.
func (m *Map) Stated() bool { return len(m.restarts) > 0 }

// Restart adds restarts, in microseconds since 1970, that are within the traffic.
func (r *Roster) Restart(at []int64, attempts *timeline.Timeline) {
	for _, t := range at {
		if attempts.First() < t && t <= attempts.Last() {
			r.Restarts = append(r.Restarts, t)
		}
	}
	slices.Sort(r.Restarts)
	r.Restarts = slices.Compact(r.Restarts)
	if r.Coverage != nil {
		r.Coverage.Restarts = len(r.Restarts)
	}
}

// Describe adds to the plans of a roster that is from elsewhere, such as a log of
// the server's own, what the map knows of plans of the same name, and of its
// users when their billing periods begin. Allowances stay as they are where they
// are known.
func (m *Map) Describe(r *Roster) {
	for i := range r.Plans {
		p := &r.Plans[i]
		at, ok := m.place[p.Name]
		if !ok {
			continue
		}
		own := m.plans[at]
		p.Today = cmp.Or(p.Today, own.Today)
		p.Paid, p.Price, p.Operations = own.Paid, own.Price, own.Operations
	}
	if r.IDs == nil {
		return
	}
	r.Billing = make([]int, r.Users)
	for i, id := range r.IDs {
		if u := m.users[id]; u != nil {
			r.Billing[i] = u.billing
		}
	}
}
