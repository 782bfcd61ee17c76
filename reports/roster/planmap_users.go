package roster

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/invoicespec/brimline/internal/strictcsv"
	"github.com/invoicespec/brimline/internal/strictyaml"
)

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// refuse is the error for a part of what is being read.
type refuse func(part, problem, accepted string) error

// The largest values of an allowance that the contract allows.
const (
	mostRequests    = 1_000_000
	mostConcurrency = 100_000
)

// inRange holds the stated parts of an allowance to the contract's bounds.
func inRange(rate, burst, concurrency *int64, wrong refuse) error {
	for _, part := range []struct {
		name string
		n    *int64
		most int64
	}{{"requests-per-minute", rate, mostRequests}, {"burst", burst, mostRequests}, {"concurrency", concurrency, mostConcurrency}} {
		if part.n != nil && (*part.n < 1 || *part.n > part.most) {
			return wrong(part.name, fmt.Sprintf("got %d", *part.n), fmt.Sprintf("a whole number from 1 to %d", part.most))
		}
	}
	return nil
}

func (m *Map) plan(name string, wrong refuse) (int, error) {
	i, ok := m.place[name]
	if !ok {
		return 0, wrong("plan", "it is none of the plans above", strings.Join(sortedKeys(m.place), ", "))
	}
	return i, nil
}

// takeUser takes one statement of a user's plan from an instant on.
func (m *Map) takeUser(f FileUser, from int64, wrong refuse) error {
	plan, err := m.plan(f.Plan, wrong)
	if err != nil {
		return err
	}
	u := m.users[string(f.User)]
	if u == nil {
		u = &user{}
		m.users[string(f.User)] = u
	}
	if d := f.BillingDay; d != nil {
		if *d < 1 || *d > 31 {
			return wrong("billing-day", fmt.Sprintf("got %d", *d), "a day of the month from 1 to 31")
		}
		if u.billing != 0 && u.billing != int(*d) {
			return wrong("billing-day", "the user has another one already", "one for each user")
		}
		u.billing = int(*d)
	}
	if err := u.on(plan, from, wrong, "from"); err != nil {
		return err
	}
	for _, c := range f.Clients {
		if err := m.takeClient(string(c), string(f.User), wrong); err != nil {
			return err
		}
	}
	return nil
}

// on puts the user on a plan from an instant on.
func (u *user) on(plan int, from int64, wrong refuse, part string) error {
	i, there := slices.BinarySearchFunc(u.plans, from, func(s stretch, at int64) int { return cmp.Compare(s.from, at) })
	if there {
		if u.plans[i].plan != plan {
			return wrong(part, "the user is on another plan from the same time", "one plan at a time, and the time from which another begins")
		}
		return nil
	}
	u.plans = slices.Insert(u.plans, i, stretch{from: from, plan: plan})
	return nil
}

// takeClient says whose a client is.
func (m *Map) takeClient(client, owner string, wrong refuse) error {
	if p, err := netip.ParsePrefix(client); err == nil {
		if p != p.Masked() {
			return wrong("clients", "a range with bits beyond its length", "the range's first address and its length, such as 192.0.2.0/24")
		}
		if was, ok := m.ranges[p]; ok && was != owner {
			return wrong("clients", "the range is another user's already", "each range once")
		}
		m.ranges[p] = owner
		return nil
	}
	client = plainly(client)
	if was, ok := m.exact[client]; ok && was != owner {
		return wrong("clients", "the client is another user's already", "each client once")
	}
	m.exact[client] = owner
	return nil
}

// plainly is a client's name in one spelling: an address may have several.
func plainly(client string) string {
	if a, err := netip.ParseAddr(client); err == nil {
		return a.Unmap().String()
	}
	return client
}

func (m *Map) takeChanges(changes []FileChange, doc *strictyaml.Document) error {
	for i, c := range changes {
		wrong := at(doc, "changes", i)
		u := m.users[string(c.User)]
		if u == nil {
			return wrong("user", "it is none of the users", "a user that users or users-file names")
		}
		plan, err := m.plan(c.Plan, wrong)
		if err != nil {
			return err
		}
		if err := u.on(plan, c.At.UnixMicro(), wrong, "at"); err != nil {
			return err
		}
	}
	return nil
}

func (m *Map) takeOverrides(overrides []FileOverride, doc *strictyaml.Document) error {
	for i, f := range overrides {
		wrong := at(doc, "overrides", i)
		u := m.users[string(f.User)]
		if u == nil {
			return wrong("user", "it is none of the users", "a user that users or users-file names")
		}
		if f.RequestsPerMinute == nil && f.Burst == nil && f.Concurrency == nil {
			return wrong("user", "an override of nothing", "requests-per-minute, burst or concurrency")
		}
		if err := inRange(f.RequestsPerMinute, f.Burst, f.Concurrency, wrong); err != nil {
			return err
		}
		o := override{from: math.MinInt64, until: math.MaxInt64, rate: f.RequestsPerMinute, burst: f.Burst, concurrency: f.Concurrency}
		if f.From != nil {
			o.from = f.From.UnixMicro()
		}
		if f.Until != nil {
			o.until = f.Until.UnixMicro()
		}
		if o.until <= o.from {
			return wrong("until", "it is not after from", "a later time")
		}
		for _, other := range u.overrides {
			if o.from < other.until && other.from < o.until {
				return wrong("from", "the user has another override at that time", "one at a time")
			}
		}
		u.overrides = append(u.overrides, o)
	}
	return nil
}

func at(doc *strictyaml.Document, list string, i int) refuse {
	return func(part, problem, accepted string) error {
		return doc.Refuse(fmt.Sprintf("%s[%d].%s", list, i, part), problem, accepted)
	}
}

// userColumns are those of the users' table. A row without a user is of a client
// that is its own user; one without a client, of a user whom the log names.
func userColumns() strictcsv.Columns {
	return strictcsv.Columns{Required: []string{"client", "user", "plan"}, Optional: []string{"from", "billing-day"}}
}

func (m *Map) row(r strictcsv.Row) error {
	var f FileUser
	f.Plan = r.Get("plan")
	client, owner := r.Get("client"), cmp.Or(r.Get("user"), r.Get("client"))
	if owner == "" {
		return r.Refuse("user", "neither a user nor a client", "one of them, or both")
	}
	if f.User.UnmarshalText([]byte(owner)) != nil {
		return r.Refuse("user", "it is no name", ids)
	}
	from := int64(math.MinInt64)
	if r.Has("from") {
		at, _, err := strictcsv.Instant(r.Get("from"))
		if err != nil {
			return r.Refuse("from", "it is no time", strictcsv.Instants)
		}
		from = at.UnixMicro()
	}
	if r.Has("billing-day") {
		d, err := strconv.ParseInt(r.Get("billing-day"), 10, 64)
		if err != nil {
			return r.Refuse("billing-day", "it is no number", "a day of the month from 1 to 31")
		}
		f.BillingDay = &d
	}
	if client != "" {
		var c ID
		if c.UnmarshalText([]byte(client)) != nil {
			return r.Refuse("client", "it is no name", ids)
		}
		f.Clients = []ID{c}
	}
	return m.takeUser(f, from, func(part, problem, accepted string) error {
		if part == "clients" {
			part = "client"
		}
		return r.Refuse(part, problem, accepted)
	})
}
