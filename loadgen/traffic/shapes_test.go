package traffic_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/loadgen/manners"
	"github.com/invoicespec/brimline/loadgen/traffic"
)

// one is a scenario of a minute with one population, of which text says the rest.
func one(text string) string {
	return "duration: 1m\nseed: 7\npopulations:\n  - { plan: free, users: 100, " + text + " }\n"
}

func cast(t require.TestingT, text string) []traffic.Member {
	s, err := traffic.Parse("load.yaml", []byte(text))
	require.NoError(t, err)
	members, err := s.Cast(allowances)
	require.NoError(t, err)
	return members
}

// TestArrivals: each is called by its name and plans what it says; free allows 10
// requests a minute.
func TestArrivals(t *testing.T) {
	for name, c := range map[string]struct {
		text, words string
		planned     float64 // of one user in the minute, on average
		least       bool    // one is not known to better than chance
	}{
		"constant":       {"arrival: constant, rate: 30", "constant", 30, false},
		"poisson":        {"arrival: poisson, rate: 3x", "poisson", 30, true},
		"bursts":         {"arrival: { bursts: 5, every: 10s }", "bursts of 5 every 10s", 30, false},
		"on and off":     {"arrival: { on: 10s, off: 20s }, rate: 90", "10s on, 20s off", 30, false},
		"ramp":           {"arrival: { ramp: { from: 0, to: 6x } }", "ramp from 0 to 6x", 30, false},
		"ramp at random": {"arrival: { ramp: { from: 0, to: 60 }, process: poisson }", "ramp from 0 to 60, at random", 30, true},
		"steps":          {"arrival: { steps: [{ for: 20s, rate: 90 }, { for: 40s, rate: 0 }], process: constant }", "steps of 90 for 20s, 0 for 40s", 30, false},
		"sine":           {"arrival: { sine: { mean: 30, amplitude: 3x, period: 20s } }", "sine of 3x about 30 every 20s", 30, false},
		"below one":      {"arrival: constant, rate: 0.4", "constant", 0.4, false},
		"half on":        {"arrival: { on: 100ms, off: 100ms, process: poisson }, rate: 60", "100ms on, 100ms off, at random", 30, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := parse(t, one(c.text+", on-429: ignore"))
			require.Equal(t, c.words, s.Populations[0].Arrival.String())
			members := cast(t, one(c.text+", on-429: ignore"))
			sum := float64(traffic.Planned(members))
			if c.least {
				require.InDelta(t, 100*c.planned, sum, 4*math.Sqrt(100*c.planned))
			} else {
				require.InDelta(t, 100*c.planned, sum, 100)
			}
			require.InDelta(t, c.planned, members[0].Process.Expected(time.Minute), 1e-9)
		})
	}
}

func TestReactions(t *testing.T) {
	for text, want := range map[string]manners.Manners{
		"ignore":                              manners.Ignore(),
		"obey-retry-after":                    manners.Obey(),
		"obey-with-jitter":                    manners.ObeyWithJitter(),
		"{ give-up-after: 5 }":                manners.Ignore().GivingUpAfter(5),
		"{ then: ignore, give-up-after: 5 }":  manners.Ignore().GivingUpAfter(5),
		"{ backoff: { first: 1s, max: 30s }}": manners.BackOff(time.Second, 30*time.Second),
		"{ backoff: { first: 1s, max: 30s }, give-up-after: 3 }": manners.BackOff(time.Second, 30*time.Second).GivingUpAfter(3),
		"{ then: obey-retry-after, give-up-after: 2 }":           manners.Obey().GivingUpAfter(2),
	} {
		require.Equal(t, want, cast(t, one("arrival: constant, rate: 1, on-429: "+text))[0].On429, text)
	}
}

// TestSpreadKeepsTheMean: whatever the law, users together ask as often as if all
// were equal, to the last millionth of a request, and everybody asks for something.
func TestSpreadKeepsTheMean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spread := rapid.SampledFrom([]string{"{ zipf: 0.5 }", "{ zipf: 1.1 }", "{ zipf: 5 }", "{ lognormal: 0.3 }", "{ lognormal: 3 }", "equal"}).Draw(t, "spread")
		arrives := rapid.SampledFrom([]string{"arrival: poisson, rate: %d.%03d", "arrival: { on: 20s, off: 40s }, rate: %d.%03d"}).Draw(t, "arrival")
		rate := fmt.Sprintf(arrives, rapid.IntRange(1, 20).Draw(t, "rate"), rapid.IntRange(0, 999).Draw(t, "part"))
		users := rapid.IntRange(1, 300).Draw(t, "users")
		text := func(spread string) string {
			return fmt.Sprintf("duration: 1m\nseed: %d\npopulations:\n  - { plan: free, users: %d, %s, spread: %s, on-429: ignore }\n", rapid.Int64().Draw(t, "seed"), users, rate, spread)
		}
		sum, even := 0.0, 0.0
		for _, m := range cast(t, text(spread)) {
			require.Positive(t, m.Process.Peak(), m.Name)
			sum += m.Process.Expected(time.Minute)
		}
		for _, m := range cast(t, text("equal")) {
			even += m.Process.Expected(time.Minute)
		}
		require.InEpsilon(t, even, sum, 1e-9)
	})
}

// TestSpreadIsThatOfTheLaw: the order is the law's, who is where is the seed's.
func TestSpreadIsThatOfTheLaw(t *testing.T) {
	rates := func(spread string, seed int) ([]float64, string) {
		members := cast(t, strings.Replace(one("arrival: constant, rate: 100, spread: "+spread+", on-429: ignore"), "seed: 7", fmt.Sprint("seed: ", seed), 1))
		var list []float64
		busiest := slices.MaxFunc(members, func(a, b traffic.Member) int { return int(1e6 * (a.Process.Peak() - b.Process.Peak())) })
		for _, m := range members {
			list = append(list, m.Process.Peak())
		}
		slices.Sort(list)
		slices.Reverse(list)
		return list, busiest.Name
	}
	zipf, first := rates("{ zipf: 1 }", 7)
	for k, r := range zipf {
		require.InEpsilon(t, zipf[0]/float64(k+1), r, 1e-5)
	}
	again, second := rates("{ zipf: 1 }", 8)
	require.Equal(t, zipf, again, "no seed draws an unusual population")
	require.NotEqual(t, first, second)

	lognormal, _ := rates("{ lognormal: 1 }", 7)
	// The ratio of the quantiles at 84.13 and 50 % is e.
	require.InDelta(t, math.E, lognormal[15]/lognormal[49], 0.1)
}

// TestMixIsAPureFunction of seed, user and number, in the proportions asked for.
func TestMixIsAPureFunction(t *testing.T) {
	text := one("arrival: constant, rate: 1, mix: { valid: 90, invalid: 8, slow: 1, unauthenticated: 1 }, on-429: ignore")
	members, again := cast(t, text), cast(t, text)
	counts := map[traffic.Operation]int{}
	for i := range members {
		for n := range int64(1000) {
			o := members[i].Operation(n)
			require.Equal(t, o, again[i].Operation(n))
			counts[o]++
		}
	}
	for o, want := range map[traffic.Operation]float64{traffic.Valid: 90_000, traffic.Invalid: 8000, traffic.Slow: 1000, traffic.Unauthenticated: 1000} {
		require.InDelta(t, want, counts[o], 4*math.Sqrt(want), o.String())
		require.InDelta(t, want/100_000, members[0].Mix.Share(o), 1e-9)
	}
	require.Equal(t, "valid 90, invalid 8, slow 1, unauthenticated 1", members[0].Mix.String())
	different := 0
	for n := range int64(1000) {
		if members[0].Operation(n) != members[1].Operation(n) {
			different++
		}
	}
	require.Positive(t, different, "everybody has a mix of their own")

	require.Equal(t, traffic.Valid, cast(t, one("arrival: constant, rate: 1, on-429: ignore"))[0].Operation(3))
	require.Zero(t, cast(t, one("arrival: constant, rate: 1, mix: { unauthenticated: 1 }, on-429: ignore"))[0].MostCharged(time.Minute))
}

func TestKeysAreUsedInTurn(t *testing.T) {
	m := traffic.Member{Keys: []target.Secret{target.NewSecret("a"), target.NewSecret("b")}}
	require.Equal(t, []string{"a", "b", "a"}, []string{m.Key(0).Reveal(), m.Key(1).Reveal(), m.Key(2).Reveal()})
	require.Equal(t, traffic.Wants{Keys: 2, Address: 3}, cast(t, one("keys: 2, addresses: 3, arrival: constant, rate: 1, on-429: ignore"))[5].Wants)
}

// clf is an access log: client and second of each line.
func clf(t *testing.T, lines ...string) string {
	t.Helper()
	var b strings.Builder
	for _, line := range lines {
		client, second, _ := strings.Cut(line, " ")
		fmt.Fprintf(&b, "%s - - [30/Nov/2026:20:00:%s +0000] \"POST /v1/invoice/calculate HTTP/1.1\" 200 5\n", client, second)
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "access.log"), []byte(b.String()), 0o600))
	return dir
}

func TestReplayOfALog(t *testing.T) {
	dir := clf(t, "10.0.0.1 10", "10.0.0.2 10", "10.0.0.1 12", "10.0.0.1 12", "10.0.0.3 14", "10.0.0.2 40", "10.0.0.1 55")
	due := func(t *testing.T, users int, arrives string) map[string][]time.Duration {
		t.Helper()
		path := filepath.Join(dir, "load.yaml")
		text := fmt.Sprintf("duration: 40s\nseed: 7\npopulations:\n  - { plan: free, users: %d, arrival: %s, on-429: ignore }\n", users, arrives)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		s, err := traffic.Read(path)
		require.NoError(t, err)
		members, err := s.Cast(allowances)
		require.NoError(t, err)
		list := map[string][]time.Duration{}
		for _, m := range members {
			for schedule := m.Process.Schedule(7, m.Name); ; {
				at := schedule.Next()
				if at >= 40*time.Second {
					break
				}
				list[m.Name] = append(list[m.Name], at)
			}
			require.EqualValues(t, len(list[m.Name]), m.Planned)
		}
		return list
	}
	within := func(t *testing.T, list []time.Duration, second time.Duration, starts ...time.Duration) {
		t.Helper()
		require.Len(t, list, len(starts))
		for i, start := range starts {
			require.GreaterOrEqual(t, list[i], start)
			require.Less(t, list[i], start+second)
		}
	}
	t.Run("as it was", func(t *testing.T) {
		list := due(t, 3, "{ replay: access.log }")
		within(t, list["free-001"], time.Second, 0, 2*time.Second, 2*time.Second)
		within(t, list["free-002"], time.Second, 0, 30*time.Second)
		within(t, list["free-003"], time.Second, 4*time.Second)
		require.Equal(t, 500*time.Millisecond, list["free-001"][2]-list["free-001"][1], "at even distances within the second")
	})
	t.Run("faster", func(t *testing.T) {
		list := due(t, 1, "{ replay: access.log, speed: 10 }")
		within(t, list["free-001"], 100*time.Millisecond, 0, 200*time.Millisecond, 200*time.Millisecond, 4500*time.Millisecond)
	})
	t.Run("slower", func(t *testing.T) {
		within(t, due(t, 2, "{ replay: access.log, speed: 0.5 }")["free-001"], 2*time.Second, 0, 4*time.Second, 4*time.Second)
	})
}

func TestReplayIsRefused(t *testing.T) {
	dir := clf(t, "10.0.0.1 10", "10.0.0.2 10")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "none.log"), []byte("this is none\n"), 0o600))
	for name, c := range map[string]struct{ log, want string }{
		"no such file":     {"gone.log", "gone.log: no such file or directory; accepted: an access log, plain or gzip"},
		"a folder":         {".", "a folder, a pipe or a device"},
		"no log":           {"none.log", "none.log: no entries in 1 lines"},
		"too few clients":  {"access.log", "populations[0].users: 100, and access.log has 2 clients; accepted: 1 to 2"},
		"more than a line": {`"a\nb"`, "populations[0].arrival.replay: what cannot be printed"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, "load.yaml")
			require.NoError(t, os.WriteFile(path, []byte(one("arrival: { replay: "+c.log+" }, on-429: ignore")), 0o600))
			s, err := traffic.Read(path)
			if err == nil {
				_, err = s.Cast(allowances)
			}
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "load.yaml:4: populations[0].")
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// TestRecruitOfSeveralKeys: users of a keys file who have them, and what is said
// where there are too few.
func TestRecruitOfSeveralKeys(t *testing.T) {
	members := cast(t, "duration: 1m\npopulations:\n  - { plan: free, users: 2, keys: 2, arrival: constant, rate: 1, on-429: ignore }\n  - { plan: free, users: 2, arrival: constant, rate: 1, on-429: ignore }\n")
	var keys []target.Key
	for user, n := range map[string]int{"ada": 2, "bob": 1, "cid": 2, "dan": 1} {
		for k := range n {
			keys = append(keys, target.Key{User: user, Plan: "free", Secret: target.NewSecret(fmt.Sprintf("isk_test_%s_%d_0123456789", user, k))})
		}
	}
	slices.SortFunc(keys, func(a, b target.Key) int { return strings.Compare(a.User, b.User) })
	from := open(t, 0, func(f *target.File) { f.Can.Control = nil }, keys...)
	require.NoError(t, traffic.Recruit(t.Context(), from, members))
	seen := map[string]bool{}
	for i, m := range members {
		require.Len(t, m.Keys, int(m.Wants.Keys))
		for n := range m.Wants.Keys {
			seen[m.Key(n).Reveal()] = true
		}
		require.Nil(t, m.From, i)
	}
	require.Len(t, seen, 6)

	short := cast(t, "duration: 1m\npopulations:\n  - { plan: free, users: 3, keys: 2, arrival: constant, rate: 1, on-429: ignore }\n")
	err := traffic.Recruit(t.Context(), open(t, 0, func(f *target.File) { f.Can.Control = nil }, keys...), short)
	require.ErrorContains(t, err, "3 users on plan free with 2 keys are needed, the target lends 2")
}
