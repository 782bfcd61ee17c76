package roster_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/roster"
	"github.com/invoicespec/brimline/reports/timeline"
)

const exampleMap = "../../examples/plan-map.yaml"

func micros(t *testing.T, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return at.UnixMicro()
}

// attempts is one attempt of each pool at the beginning of a week, and one of
// pool 0 at its end.
func attempts(t *testing.T, pools int) *timeline.Timeline {
	t.Helper()
	var list []timeline.Attempt
	for i := range pools {
		list = append(list, timeline.Attempt{At: micros(t, "2026-03-02T00:00:00Z") + int64(i), Pool: uint32(i)})
	}
	return timeline.Of(append(list, timeline.Attempt{At: micros(t, "2026-03-09T00:00:00Z")})...)
}

func resolve(t *testing.T, m *roster.Map, names ...string) *roster.Roster {
	t.Helper()
	r, err := m.Resolve(t.Context(), names, attempts(t, len(names)))
	require.NoError(t, err)
	return r
}

func TestTheExampleResolves(t *testing.T) {
	m, err := roster.Read(exampleMap)
	require.NoError(t, err)
	require.Equal(t, []string{exampleMap}, m.Files())
	r := resolve(t, m, "192.0.2.7", "203.0.113.9", "198.51.100.200", "user-17", "2001:db8:7:1::5", "198.51.101.1")
	require.Equal(t, []int32{0, -1, 0, 1, 2, -1}, r.UserOf)
	require.Equal(t, []string{"acme", "user-17", "globex"}, r.IDs)
	require.Equal(t, []int{14, 0, 0}, r.Billing)
	require.Equal(t, []string{"free", "starter"}, []string{r.Plans[0].Name, r.Plans[1].Name})
	require.InDelta(t, 29.90, r.Plans[1].Price.Monthly(), 1e-9)
	require.EqualValues(t, 1000, *r.Plans[1].Operations)
	require.False(t, *r.Plans[0].Paid)

	own := &record.ReportAllowance{RequestsPerMinute: 60, Burst: 60, Concurrency: 5}
	require.Equal(t, [][]roster.Phase{
		{{From: math.MinInt64, Plan: 1}, {From: micros(t, "2026-03-03T00:00:00Z"), Plan: 1, Override: own}, {From: micros(t, "2026-03-05T12:00:00Z"), Plan: 1}},
		{{From: math.MinInt64, Plan: 0}},
		{{From: math.MinInt64, Plan: 0}, {From: micros(t, "2026-03-04T09:30:00Z"), Plan: 1}},
	}, r.Phases)
	require.Equal(t, []int64{micros(t, "2026-03-05T03:00:00Z")}, r.Restarts)
	require.Equal(t, &record.ReportCoverage{
		From: "plan-map.yaml", Clients: 6, ClientsKnown: 4, Attempts: 7, AttemptsKnown: 5, Users: 3, Overrides: 1, PlanChanges: 1, Restarts: 1,
		LeftOut: []record.Count{{Name: "not in the plan map", N: 2}},
	}, r.Coverage)
}

const twoPlans = `plans:
  free: { requests-per-minute: 10, burst: 10 }
  starter: { requests-per-minute: 60, burst: 20 }
`

// mapOf is twoPlans with more lines, and a table of users beside it unless it is
// empty.
func mapOf(t *testing.T, more, table string) (*roster.Map, error) {
	t.Helper()
	dir := t.TempDir()
	if table != "" {
		more += "users-file: users.csv\n"
		require.NoError(t, os.WriteFile(filepath.Join(dir, "users.csv"), []byte(table), 0o600))
	}
	path := filepath.Join(dir, "map.yaml")
	require.NoError(t, os.WriteFile(path, []byte(twoPlans+more), 0o600))
	return roster.Read(path)
}

func TestTheNearestStatementCounts(t *testing.T) {
	m, err := mapOf(t, "", "client,user,plan\n192.0.2.0/24,wide,free\n192.0.2.128/25,narrow,free\n192.0.2.200,one,starter\n0.0.0.0/0,rest,free\nhost.example,named,free\n203.0.113.5,,starter\n")
	require.NoError(t, err)
	r := resolve(t, m, "192.0.2.1", "192.0.2.129", "::ffff:192.0.2.200", "8.8.8.8", "host.example", "203.0.113.5", "2001:db8::1")
	require.Equal(t, []string{"wide", "narrow", "one", "rest", "named", "203.0.113.5"}, r.IDs)
	require.EqualValues(t, -1, r.UserOf[6], "a range of one family holds nobody of the other")
}

// A user whose plan is known from a time on, and who asked before, is left out:
// nobody knows the plan of those requests.
func TestPlansFromATimeOn(t *testing.T) {
	m, err := mapOf(t, "", "client,user,plan,from\nc,late,free,2026-03-05\nd,early,free,2026-03-01\nd,early,starter,2026-03-04T00:00:00Z\n")
	require.NoError(t, err)
	r := resolve(t, m, "c", "d")
	require.Equal(t, []int32{-1, 0}, r.UserOf)
	require.Equal(t, [][]roster.Phase{{{From: math.MinInt64, Plan: 0}, {From: micros(t, "2026-03-04T00:00:00Z"), Plan: 1}}}, r.Phases)
	require.Equal(t, []record.Count{{Name: "with requests before the first time at which the plan map knows the plan", N: 1}}, r.Coverage.LeftOut)
	require.Equal(t, 1, r.Coverage.PlanChanges)
}

func TestMapsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ more, table, err string }{
		"unknown plan":          {table: "client,user,plan\nc,secret,gold\n", err: "users.csv:2: plan: it is none of the plans above; accepted: free, starter"},
		"a client of two":       {table: "client,user,plan\nsecret,a,free\nsecret,b,free\n", err: "users.csv:3: client: the client is another user's already; accepted: each client once"},
		"a range of two":        {table: "client,user,plan\n10.0.0.0/8,a,free\n10.0.0.0/8,b,free\n", err: "users.csv:3: client: the range is another user's already"},
		"an odd range":          {table: "client,user,plan\n10.0.0.1/8,a,free\n", err: "users.csv:2: client: a range with bits beyond its length"},
		"two plans":             {table: "client,user,plan\nc,secret,free\nd,secret,starter\n", err: "users.csv:3: from: the user is on another plan from the same time"},
		"nobody":                {table: "client,user,plan\n,,free\n", err: "users.csv:2: user: neither a user nor a client"},
		"no time":               {table: "client,user,plan,from\nc,u,free,soon\n", err: "users.csv:2: from: it is no time; accepted: a day such as 2026-11-30"},
		"billing day":           {table: "client,user,plan,billing-day\nc,u,free,32\n", err: "users.csv:2: billing-day: got 32; accepted: a day of the month from 1 to 31"},
		"no table":              {more: "users-file: none.csv\n", err: "map.yaml:4: users-file: no such file"},
		"a key of nobody":       {more: "planz: {}\n", err: "map.yaml:4: planz: unknown key"},
		"override of a nobody":  {more: "users: [{ user: a, plan: free }]\noverrides: [{ user: secret, burst: 5 }]\n", err: "map.yaml:5: overrides[0].user: it is none of the users"},
		"override of nothing":   {more: "users: [{ user: a, plan: free }]\noverrides: [{ user: a }]\n", err: "overrides[0].user: an override of nothing; accepted: requests-per-minute, burst or concurrency"},
		"override out of range": {more: "users: [{ user: a, plan: free }]\noverrides: [{ user: a, concurrency: 100001 }]\n", err: "overrides[0].concurrency: got 100001; accepted: a whole number from 1 to 100000"},
		"two overrides":         {more: "users: [{ user: a, plan: free }]\noverrides: [{ user: a, burst: 5 }, { user: a, burst: 6, from: 2026-01-01 }]\n", err: "overrides[1].from: the user has another override at that time"},
		"an override backwards": {more: "users: [{ user: a, plan: free }]\noverrides: [{ user: a, burst: 5, from: 2026-01-02, until: 2026-01-02 }]\n", err: "overrides[0].until: it is not after from"},
		"a change of a nobody":  {more: "users: [{ user: a, plan: free }]\nchanges: [{ user: secret, plan: free, at: 2026-01-01 }]\n", err: "changes[0].user: it is none of the users"},
		"a user with a break":   {more: "users: [{ user: \"secret\\nb\", plan: free }]\n", err: "users[0].user: it is no name; accepted: a name of at most 256 bytes on one line"},
		"overrides alone":       {more: "overrides: [{ user: a, burst: 5 }]\n", err: "overrides or changes of users, and no users"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := mapOf(t, c.more, c.table)
			require.ErrorContains(t, err, c.err)
			require.NotContains(t, err.Error(), "secret", "no user and no client is repeated")
		})
	}
	for name, c := range map[string]struct{ text, err string }{
		"no plans":       {"plans: {}\n", "m:1: plans: there are none"},
		"rate":           {"plans:\n  a: { requests-per-minute: 0, burst: 1 }\n", "m:2: plans.a.requests-per-minute: got 0; accepted: a whole number from 1 to 1000000"},
		"two currencies": {"plans:\n  a: { requests-per-minute: 1, burst: 1, price: { amount: 1, currency: EUR, period: month } }\n  b: { requests-per-minute: 1, burst: 1, price: { amount: 1, currency: USD, period: month } }\n", `m:3: plans.b.price.currency: got "USD" beside "EUR"`},
		"amount":         {"plans:\n  a: { requests-per-minute: 1, burst: 1, price: { amount: -1, currency: EUR, period: month } }\n", "m:2: plans.a.price.amount: it is no amount of money"},
		"period":         {"plans:\n  a: { requests-per-minute: 1, burst: 1, price: { amount: 1, currency: EUR, period: day } }\n", `m:2: plans.a.price.period: got "day"; accepted: month or year`},
		"free at a price": {"plans:\n  a: { requests-per-minute: 1, burst: 1, paid: false, price: { amount: 1, currency: EUR, period: month } }\n",
			"m:2: plans.a.paid: got false, and the plan has a price; accepted: true"},
		"a table": {twoPlans + "users-file: x.csv\n", "m:4: users-file: there is no folder to look in"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := roster.Parse("m", []byte(c.text))
			require.ErrorContains(t, err, c.err)
		})
	}
}

func TestDescribe(t *testing.T) {
	m, err := roster.Read(exampleMap)
	require.NoError(t, err)
	today := &record.ReportAllowance{RequestsPerMinute: 30, Burst: 30}
	r := &roster.Roster{Plans: []roster.Plan{{Name: "starter", Today: today}, {Name: "own"}}, Users: 2, IDs: []string{"acme", "nobody"}}
	m.Describe(r)
	require.Equal(t, today, r.Plans[0].Today, "what a log says of an allowance stays")
	require.True(t, *r.Plans[0].Paid)
	require.EqualValues(t, 1000, *r.Plans[0].Operations)
	require.Equal(t, roster.Plan{Name: "own"}, r.Plans[1])
	require.Equal(t, []int{14, 0}, r.Billing)
}

func TestALargeTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("client,user,plan\n")
	for i := range 50_000 {
		b.WriteString("c" + time.Duration(i).String() + ",u" + time.Duration(i%20_000).String() + ",free\n")
	}
	m, err := mapOf(t, "", b.String())
	require.NoError(t, err)
	require.Equal(t, 2, resolve(t, m, "c19.999µs", "c39.999µs", "c7ns").Users, "two clients of one user, and one of another")
}

func FuzzPlanMap(f *testing.F) {
	example, err := os.ReadFile(exampleMap)
	require.NoError(f, err)
	f.Add(string(example))
	f.Add(twoPlans)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := roster.Parse("m", []byte(text))
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		r := resolve(t, m, "acme", "192.0.2.7", "::1", "")
		require.Len(t, r.Phases, r.Users)
		for _, phases := range r.Phases {
			require.EqualValues(t, math.MinInt64, phases[0].From)
			for i, p := range phases {
				require.Less(t, p.Plan, len(r.Plans))
				require.True(t, i == 0 || phases[i-1].From < p.From)
			}
		}
	})
}
