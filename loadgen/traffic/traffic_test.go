package traffic_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/loadgen/arrival"
	"github.com/invoicespec/brimline/loadgen/manners"
	"github.com/invoicespec/brimline/loadgen/traffic"
	"github.com/invoicespec/brimline/reference/server"
)

const good = `duration: 30s
seed: 7
populations:
  - { plan: free, users: 20, arrival: poisson, rate: 1.2x, on-429: obey-retry-after }
  - { plan: pro,  users: 5,  arrival: { bursts: 40, every: 10s }, on-429: ignore }
  - { plan: starter, users: 5, arrival: constant, rate: 90, on-429: ignore }
  - { plan: free, users: 2, arrival: constant, rate: 12.5, on-429: ignore }
`

var allowances = map[string]target.Allowance{
	"free":    {RequestsPerMinute: 10, Burst: 10, Concurrency: 2},
	"starter": {RequestsPerMinute: 60, Burst: 20, Concurrency: 5},
	"pro":     {RequestsPerMinute: 300, Burst: 100, Concurrency: 20},
}

func parse(t *testing.T, text string) traffic.Scenario {
	t.Helper()
	s, err := traffic.Parse("load.yaml", []byte(text))
	require.NoError(t, err)
	return s
}

func TestScenarioIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "load.yaml")
	require.NoError(t, os.WriteFile(path, []byte(good), 0o600))
	s, err := traffic.Read(path)
	require.NoError(t, err)
	require.Equal(t, 30*time.Second, s.Duration)
	require.EqualValues(t, 7, s.Seed)
	names, users := s.Plans()
	require.Equal(t, []string{"free", "pro", "starter"}, names)
	require.Equal(t, map[string]int64{"free": 22, "pro": 5, "starter": 5}, users)
	require.Equal(t, "poisson", s.Populations[0].Arrival.String())
	require.Equal(t, "1.2x", s.Populations[0].Rate.String())
	require.Equal(t, "bursts of 40 every 10s", s.Populations[1].Arrival.String())

	members, err := s.Cast(allowances)
	require.NoError(t, err)
	require.Len(t, members, 32)
	rate := func(requests, per int64) arrival.Rate {
		r, err := arrival.NewRate(requests, per)
		require.NoError(t, err)
		return r
	}
	for i, want := range map[int]struct {
		name    string
		process arrival.Process
		on429   manners.Manners
	}{
		0:  {"free-001", arrival.Poisson(rate(12_000, 1000)), manners.Obey()},
		19: {"free-020", arrival.Poisson(rate(12_000, 1000)), manners.Obey()},
		20: {"pro-001", arrival.Bursts(40, 10*time.Second), manners.Ignore()},
		25: {"starter-001", arrival.Constant(rate(90_000, 1000)), manners.Ignore()},
		30: {"free-021", arrival.Constant(rate(12_500, 1000)), manners.Ignore()},
	} {
		m := members[i]
		require.Equal(t, want.name, m.Name)
		require.Equal(t, want.process, m.Process, m.Name)
		require.Equal(t, want.on429, m.On429, m.Name)
		require.Equal(t, traffic.Wants{Keys: 1}, m.Wants, m.Name)
		require.Equal(t, m.Process.Count(7, m.Name, 30*time.Second), m.Planned)
	}
	require.EqualValues(t, 45, members[25].Planned)
	require.EqualValues(t, 120, members[20].Planned)
	require.Equal(t, 3, members[31].Population)

	planned := traffic.Planned(members)
	require.EqualValues(t, 5*120+5*45, planned-traffic.Planned(members[:20])-traffic.Planned(members[30:]))
	// Starter: burst 20, 30 in half a minute, and the token that may be on its way.
	require.EqualValues(t, 45, traffic.MostCharged(members[25:26], s.Duration))
	require.EqualValues(t, 20+10+1, traffic.MostCharged(members[25:26], 10*time.Second))
}

// TestMembersKeepTheirNames: more users leave those before them as they were.
func TestMembersKeepTheirNames(t *testing.T) {
	few, err := parse(t, good).Cast(allowances)
	require.NoError(t, err)
	many, err := parse(t, strings.Replace(good, "users: 20", "users: 2000", 1)).Cast(allowances)
	require.NoError(t, err)
	require.Equal(t, few[:20], many[:20])
	require.Equal(t, "free-2000", many[1999].Name)
}

func TestScenarioIsRefused(t *testing.T) {
	line := func(text string) string { return "duration: 30s\npopulations:\n  - " + text + "\n" }
	for name, c := range map[string]struct{ in, want string }{
		"no population":         {"duration: 30s\npopulations: []\n", "load.yaml:2: populations: nobody is listed; accepted: at least one population"},
		"no duration":           {"populations: []\n", "load.yaml:1: duration: missing; accepted: a duration such as 90s or 1m30s"},
		"short":                 {"duration: 999ms\npopulations: []\n", "load.yaml:1: duration: 999ms is out of range; accepted: 1s to 24h"},
		"long":                  {"duration: 25h\npopulations: []\n", "load.yaml:1: duration: 25h0m0s is out of range"},
		"no users":              {line("{ plan: a, users: 0, arrival: poisson, rate: 1x, on-429: ignore }"), "load.yaml:3: populations[0].users: 0 is out of range; accepted: 1 to 100000 in all"},
		"too many users":        {line("{ plan: a, users: 60000, arrival: poisson, rate: 1x, on-429: ignore }") + "  - { plan: b, users: 60000, arrival: poisson, rate: 1x, on-429: ignore }\n", "load.yaml:4: populations[1].users: 60000 is out of range"},
		"no rate":               {line("{ plan: a, users: 1, arrival: poisson, on-429: ignore }"), "load.yaml:3: populations[0].rate: missing; accepted: requests per minute such as 90"},
		"no behaviour":          {line("{ plan: a, users: 1, arrival: poisson, rate: 1 }"), "load.yaml:3: populations[0].on-429: missing"},
		"behaviour":             {line("{ plan: a, users: 1, arrival: poisson, rate: 1, on-429: retry }"), `load.yaml:3: populations[0].on-429: "retry" is not known; accepted: ignore, obey-retry-after, obey-with-jitter, or keys backoff, give-up-after`},
		"arrival":               {line("{ plan: a, users: 1, arrival: uniform, rate: 1, on-429: ignore }"), `load.yaml:3: populations[0].arrival: "uniform" is no arrival; accepted: constant, poisson, or keys bursts, on, ramp, steps, sine, replay`},
		"bursts with a rate":    {line("{ plan: a, users: 1, arrival: { bursts: 4, every: 1s }, rate: 1, on-429: ignore }"), "load.yaml:3: populations[0].rate: this arrival carries its own rate"},
		"bursts of nothing":     {line("{ plan: a, users: 1, arrival: { bursts: 0, every: 1s }, on-429: ignore }"), "load.yaml:3: populations[0].arrival.bursts: 0 is out of range; accepted: 1 to 10000 requests"},
		"bursts without pause":  {line("{ plan: a, users: 1, arrival: { bursts: 4, every: 1ms }, on-429: ignore }"), "load.yaml:3: populations[0].arrival.every: 1ms is out of range; accepted: 10ms to 24h"},
		"bursts without period": {line("{ plan: a, users: 1, arrival: { bursts: 4 }, on-429: ignore }"), "load.yaml:3: populations[0].arrival.every: missing"},
		"rate 0":                {line("{ plan: a, users: 1, arrival: poisson, rate: 0, on-429: ignore }"), "load.yaml:3: populations[0].rate: a rate of 0 is no load; accepted: more than 0"},
		"rate 0.000":            {line("{ plan: a, users: 1, arrival: poisson, rate: 0.000x, on-429: ignore }"), "populations[0].rate: a rate of 0 is no load"},
		"negative rate":         {line("{ plan: a, users: 1, arrival: poisson, rate: -1, on-429: ignore }"), `populations[0].rate: "-1" is no rate; accepted: 90 or 12.5 per minute, or a share as 1.2x`},
		"rate per second":       {line("{ plan: a, users: 1, arrival: poisson, rate: 10/s, on-429: ignore }"), `"10/s" is no rate`},
		"too fine a rate":       {line("{ plan: a, users: 1, arrival: poisson, rate: 1.0001x, on-429: ignore }"), `"1.0001x" is no rate`},
		"infinite rate":         {line("{ plan: a, users: 1, arrival: poisson, rate: .inf, on-429: ignore }"), "populations[0].rate: got .inf; accepted: a word or number"},
		"too high a rate":       {line("{ plan: a, users: 1, arrival: poisson, rate: 1000000.001, on-429: ignore }"), "1000000.001 is more than 1000000 requests per minute"},
		"too high a share":      {line("{ plan: a, users: 1, arrival: poisson, rate: 1001x, on-429: ignore }"), "1001x is more than 1000x"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := traffic.Parse("load.yaml", []byte(c.in))
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestCastIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		in, want   string
		allowances map[string]target.Allowance
	}{
		"a plan the target does not have": {strings.Replace(good, "plan: pro", "plan: gold", 1),
			`load.yaml:5: populations[1].plan: the target has no allowance for plan "gold"; accepted: free, pro, starter`, allowances},
		"a share that is too much": {strings.Replace(good, "rate: 1.2x", "rate: 1000x", 1),
			"load.yaml:4: populations[0].rate: 1000x of 1000000 requests per minute", map[string]target.Allowance{"free": {RequestsPerMinute: 1_000_000, Burst: 1, Concurrency: 1}}},
		"too many requests": {strings.Replace(strings.Replace(good, "30s", "24h", 1), "users: 20", "users: 99900", 1),
			"load.yaml:4: populations[0].users: with this population about 1726272000 requests are planned; accepted: at most 20000000 in all", allowances},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parse(t, c.in).Cast(c.allowances)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// FuzzParse looks for scenarios that crash, whose error is not one line, or that
// are read and cannot be cast.
func FuzzParse(f *testing.F) {
	f.Add(good)
	f.Add("duration: 1s\npopulations:\n  - plan: free\n    users: 1\n    arrival:\n      bursts: 1\n      every: 10ms\n    on-429: ignore\n")
	f.Add("duration: 1s\npopulations:\n  - {plan: free, users: 1, arrival: constant, rate: 0.001, on-429: ignore}\n")
	f.Add("duration: 2s\nmax-rate: 9\npopulations:\n  - {plan: free, users: 3, keys: 2, addresses: 2, arrival: { on: 1s, off: 1s, process: poisson }, rate: 9, spread: { zipf: 1 }, mix: { valid: 1, slow: 2 }, on-429: { backoff: { first: 1ms, max: 1s }, give-up-after: 3 }}\n")
	f.Add("duration: 2s\npopulations:\n  - {plan: free, users: 3, arrival: { steps: [{ for: 2s, rate: 1x }] }, spread: { lognormal: 1 }, on-429: { then: ignore, give-up-after: 3 }}\n")
	f.Add("duration: 2s\npopulations:\n  - {plan: free, users: 3, arrival: { ramp: { from: 0, to: 1x } }, on-429: ignore}\n  - {plan: pro, users: 3, arrival: { sine: { mean: 1x, amplitude: 5, period: 1s } }, on-429: ignore}\n  - {plan: pro, users: 3, arrival: { replay: gone.log, speed: 0.5 }, on-429: ignore}\n")
	f.Fuzz(func(t *testing.T, in string) {
		s, err := traffic.Parse("load.yaml", []byte(in))
		if err == nil {
			names, users := s.Plans()
			require.Len(t, users, len(names))
			for _, p := range s.Populations {
				if p.Users > 100 || s.Duration > time.Minute || p.Arrival.Bursts > 100 || p.Arrival.Replay != "" && p.Arrival.Replay != "gone.log" {
					return // takes its time
				}
			}
			_, err = s.Cast(allowances)
		}
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			require.True(t, strings.HasPrefix(err.Error(), "load.yaml"), err)
		}
	})
}

// open starts a reference server with some users and opens it as a target.
func open(t *testing.T, users int, f func(*target.File), keys ...target.Key) *target.Target {
	t.Helper()
	s, err := server.Open(t.Context(), server.Config{Listen: "127.0.0.1:0", Control: "127.0.0.1:0", Users: users})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) })
	file := target.File{
		BaseURLs:   []string{s.URL()},
		Credential: target.Credential{Header: "Authorization", Template: "Bearer {key}"},
		Operations: target.Operations{Valid: target.Operation{Method: "POST", Path: "/v1/invoice/calculate"}},
		Allowances: allowances,
		Can:        target.Can{Control: &target.ControlAddress{URL: s.ControlURL(), TokenFile: "unused"}},
	}
	f(&file)
	for _, u := range s.Users() {
		for _, k := range u.Keys {
			if _, ok := allowances[u.Plan]; ok {
				keys = append(keys, target.Key{User: u.ID, Plan: u.Plan, Secret: target.NewSecret(k.Reveal())})
			}
		}
	}
	tg, err := target.Open(t.Context(), file, target.Options{Keys: keys, ControlToken: target.NewSecret(s.ControlToken())})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tg.Close()) })
	return tg
}

func TestRecruit(t *testing.T) {
	members, err := parse(t, good).Cast(allowances)
	require.NoError(t, err)

	t.Run("users made by control are rested", func(t *testing.T) {
		require.NoError(t, traffic.Recruit(t.Context(), open(t, 0, func(*target.File) {}), members))
		seen := map[string]bool{}
		for _, m := range members {
			require.True(t, m.Rested, m.Name)
			seen[m.Key(0).Reveal()] = true
		}
		require.Len(t, seen, len(members), "everybody has a key of their own")
		require.NotContains(t, fmt.Sprintf("%+v", members), members[0].Key(0).Reveal())
	})
	withoutControl := func(f *target.File) { f.Can.Control = nil }
	t.Run("users of the keys file may not be", func(t *testing.T) {
		require.NoError(t, traffic.Recruit(t.Context(), open(t, 22, withoutControl), members))
		require.False(t, members[0].Rested)
	})
	t.Run("too few", func(t *testing.T) {
		err := traffic.Recruit(t.Context(), open(t, 3, withoutControl), members)
		short := (*traffic.Shortage)(nil)
		require.ErrorAs(t, err, &short)
		require.ErrorIs(t, err, target.ErrNoUser)
		require.Equal(t, []traffic.PlanShortage{{"free", 1, 22, 3}, {"pro", 1, 5, 3}, {"starter", 1, 5, 3}}, short.Plans)
		require.EqualError(t, err, "22 users on plan free are needed, the target lends 3; 5 users on plan pro are needed, the target lends 3; 5 users on plan starter are needed, the target lends 3: list more in its keys file, or let it offer control, which makes them")
	})
	t.Run("the target goes away", func(t *testing.T) {
		err := traffic.Recruit(t.Context(), away{}, members)
		require.ErrorIs(t, err, target.ErrAway)
		require.False(t, errors.As(err, new(*traffic.Shortage)))
	})
}

type away struct{}

func (away) Senders(int64) ([]target.Sender, error) { return nil, target.ErrAway }

func (away) Lease(context.Context, string, int) (*target.User, error) { return nil, target.ErrAway }
