package traffic_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/loadgen/arrival"
	"github.com/invoicespec/brimline/loadgen/traffic"
	"github.com/invoicespec/brimline/reference/server"
)

// TestShardsNeverChange: a user who moved would be asked for twice by shards of
// different versions.
func TestShardsNeverChange(t *testing.T) {
	for user, want := range map[string][3]int{ // of 2, 4, 7
		"free-001":     {1, 3, 5},
		"free-002":     {0, 2, 3},
		"pro-001":      {1, 3, 2},
		"starter-1000": {1, 3, 6},
	} {
		for i, of := range []int{2, 4, 7} {
			for index := range of {
				require.Equal(t, index == want[i], traffic.Shard{Index: index, Of: of}.Has(user), "%q in %d/%d", user, index, of)
			}
		}
	}
	require.True(t, traffic.Shard{}.Has("free-001"))
}

func TestParseShard(t *testing.T) {
	s, err := traffic.ParseShard("3/4")
	require.NoError(t, err)
	require.Equal(t, traffic.Shard{Index: 3, Of: 4}, s)
	require.Equal(t, "3/4", s.String())
	for _, text := range []string{"", "1", "/", "4/4", "-1/4", "0/0", "0/1001", "1/2/3", "a/4", "0x1/4", "1 /4"} {
		_, err := traffic.ParseShard(text)
		require.ErrorContains(t, err, "accepted: i/n such as 0/4", text)
	}
}

// due is a request: by whom, when and what.
type due struct {
	at   time.Duration
	user string
	what traffic.Operation
}

func (d due) compare(o due) int { return cmp.Or(cmp.Compare(d.at, o.at), cmp.Compare(d.user, o.user)) }

func timeline(seed int64, end time.Duration, members []traffic.Member) (list []due) {
	var schedules []*arrival.Schedule
	for _, m := range members {
		schedules = append(schedules, m.Process.Schedule(seed, m.Name))
	}
	line := arrival.NewTimeline(schedules, end)
	for r, ok := line.Next(); ok; r, ok = line.Next() {
		m := &members[r.User]
		list = append(list, due{r.Due, m.Name, m.Operation(r.Number)})
	}
	return list
}

// TestShardsTogetherAreTheWhole: the requests of all shards are those of one
// machine, each once and at its own time.
func TestShardsTogetherAreTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := fmt.Sprintf("duration: %ds\nseed: %d\npopulations:\n", rapid.IntRange(1, 60).Draw(t, "seconds"), rapid.Int64Range(0, 1<<40).Draw(t, "seed"))
		for range rapid.IntRange(1, 4).Draw(t, "populations") {
			how := rapid.SampledFrom([]string{"poisson, rate: 2x", "constant, rate: 31.5", "{ bursts: 3, every: 1700ms }", "poisson, rate: 1x, spread: { lognormal: 1 }", "constant, rate: 5x, mix: { valid: 3, invalid: 1 }"}).Draw(t, "arrival")
			text += fmt.Sprintf("  - { plan: %s, users: %d, on-429: ignore, arrival: %s }\n",
				rapid.SampledFrom([]string{"free", "pro"}).Draw(t, "plan"), rapid.IntRange(1, 30).Draw(t, "users"), how)
		}
		s, err := traffic.Parse("load.yaml", []byte(text))
		require.NoError(t, err)
		cast, err := s.Cast(allowances)
		require.NoError(t, err)
		of := rapid.IntRange(1, 9).Draw(t, "shards")
		var together []due
		planned, members := int64(0), 0
		for i := range of {
			part := traffic.Shard{Index: i, Of: of}.Members(cast)
			together = append(together, timeline(s.Seed, s.Duration, part)...)
			planned += traffic.Planned(part)
			members += len(part)
		}
		whole := timeline(s.Seed, s.Duration, cast)
		slices.SortFunc(whole, due.compare)
		slices.SortFunc(together, due.compare)
		require.Equal(t, whole, together)
		require.Equal(t, traffic.Planned(cast), planned)
		require.EqualValues(t, len(whole), planned)
		require.Len(t, cast, members)
	})
}

const sharded = `duration: 9s
populations:
  - { plan: free, users: 7, arrival: poisson, rate: 1x, on-429: ignore }
  - { plan: pro, users: 2, arrival: poisson, rate: 1x, on-429: ignore }
  - { plan: free, users: 5, arrival: constant, rate: 1x, on-429: ignore }
`

// TestUsersDoNotDependOnTheShard gives one list of users to each shard: together
// they lend what one machine would, to the same members.
func TestUsersDoNotDependOnTheShard(t *testing.T) {
	s, err := server.Open(t.Context(), server.Config{Listen: "127.0.0.1:0", Users: 12})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.WithoutCancel(t.Context()))) })
	file := target.File{
		BaseURLs:   []string{s.URL()},
		Credential: target.Credential{Header: "Authorization", Template: "Bearer {key}"},
		Operations: target.Operations{Valid: target.Operation{Method: "POST", Path: "/v1/invoice/calculate"}},
		Allowances: allowances,
	}
	var keys []target.Key
	for _, u := range s.Users() {
		if _, ok := allowances[u.Plan]; ok {
			keys = append(keys, target.Key{User: u.ID, Plan: u.Plan, Secret: target.NewSecret(u.Keys[0].Reveal())})
		}
	}
	lent := func(shard traffic.Shard) map[string]string {
		tg, err := target.Open(t.Context(), file, target.Options{Keys: keys})
		require.NoError(t, err)
		defer tg.Close()
		cast, err := parse(t, sharded).Cast(allowances)
		require.NoError(t, err)
		members, err := shard.Recruit(t.Context(), tg, cast)
		require.NoError(t, err)
		of := map[string]string{}
		for _, m := range members {
			require.True(t, shard.Has(m.Name))
			of[m.Name] = m.Key(0).Reveal()
		}
		return of
	}
	whole, together := lent(traffic.Shard{}), map[string]string{}
	require.Len(t, whole, 14)
	for i := range 4 {
		maps.Copy(together, lent(traffic.Shard{Index: i, Of: 4}))
	}
	require.Equal(t, whole, together)
}

// TestAShardMakesItsOwnUsersAlone: and where none are made it does not fall back
// on a list that another shard may be using.
func TestAShardMakesItsOwnUsersAlone(t *testing.T) {
	cast, err := parse(t, sharded).Cast(allowances)
	require.NoError(t, err)
	maker := &counting{Roster: open(t, 0, func(*target.File) {})}
	made := int64(0)
	for i := range 3 {
		members, err := traffic.Shard{Index: i, Of: 3}.Recruit(t.Context(), maker, cast)
		require.NoError(t, err)
		made += int64(len(members))
		require.Equal(t, made, maker.leases)
	}
	require.EqualValues(t, len(cast), made)

	_, err = traffic.Shard{Index: 0, Of: 3}.Recruit(t.Context(), unwilling{open(t, 14, func(f *target.File) { f.Can.Control = nil })}, cast)
	require.ErrorContains(t, err, "another shard might take the same of its keys file")
}

type counting struct {
	traffic.Roster
	leases int64
}

func (c *counting) Lease(ctx context.Context, plan string, keys int) (*target.User, error) {
	c.leases++
	return c.Roster.Lease(ctx, plan, keys)
}

// unwilling says that it makes users and lends those of its list.
type unwilling struct{ traffic.Roster }

func (unwilling) UsersOn(string) int { return -1 }

func TestEveryShardHasSomebody(t *testing.T) {
	cast, err := parse(t, sharded).Cast(allowances)
	require.NoError(t, err)
	_, empty := traffic.Shard{Index: 1, Of: 3}.Empty(cast)
	require.False(t, empty)
	for i := range 40 { // whichever asks, the same is named
		part, empty := traffic.Shard{Index: i, Of: 40}.Empty(cast)
		require.True(t, empty)
		require.Empty(t, part.Members(cast))
	}
}

func TestFingerprint(t *testing.T) {
	of := func(text string, allowances map[string]target.Allowance) string {
		s := parse(t, text)
		cast, err := s.Cast(allowances)
		require.NoError(t, err)
		return traffic.Fingerprint(s.Seed, cast)
	}
	was := of(sharded, allowances)
	require.Equal(t, was, of(sharded, allowances))
	require.NotEqual(t, was, of("seed: 1\n"+sharded, allowances))
	require.NotEqual(t, was, of(strings.Replace(sharded, "users: 5", "users: 6", 1), allowances))
	require.NotEqual(t, was, of(strings.Replace(sharded, "constant", "poisson", 1), allowances))
	other := maps.Clone(allowances)
	other["pro"] = target.Allowance{RequestsPerMinute: 300, Burst: 99, Concurrency: 20}
	require.NotEqual(t, was, of(sharded, other))
}
