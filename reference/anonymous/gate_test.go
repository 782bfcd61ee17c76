package anonymous_test

import (
	"context"
	"encoding/binary"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errAway = errors.New("the store is away")

func newFrozen() *clock.Shifted { return clock.NewFrozen(time.Unix(0, 0)) }

func allowance(t testing.TB, rpm, burst, concurrency int64) policy.Allowance {
	t.Helper()
	a, err := policy.NewAllowance(rpm, burst, concurrency)
	require.NoError(t, err)
	return a
}

// key is the digest of key number n.
func key(n int) (d account.Digest) {
	binary.BigEndian.PutUint64(d[:], uint64(n))
	return d
}

// The answers of a store.
func good(context.Context) (account.Record, error) { return account.Record{User: "alice"}, nil }
func bad(context.Context) (account.Record, error)  { return account.Record{}, account.ErrUnknownKey }
func away(context.Context) (account.Record, error) { return account.Record{}, errAway }

// must not be asked.
func unasked(t testing.TB) anonymous.Lookup {
	return func(context.Context) (account.Record, error) {
		t.Error("the store was asked")
		return account.Record{}, errAway
	}
}

// outcome is what became of an attempt, in a word.
func outcome(r account.Record, err error) string {
	if rejection, ok := errors.AsType[anonymous.Rejection](err); ok {
		return rejection.Outcome.String() + " " + strconv.FormatInt(rejection.RetryAfter, 10)
	}
	switch {
	case err == nil:
		return "good " + r.User
	case errors.Is(err, account.ErrUnknownKey):
		return "bad"
	case errors.Is(err, errAway):
		return "away"
	}
	return err.Error()
}

// attempt is one attempt of an address with key n.
func attempt(t testing.TB, g *anonymous.Gate, pool string, n int, lookup anonymous.Lookup) string {
	return outcome(g.Authenticate(t.Context(), pool, key(n), lookup))
}

// noKey is one attempt without a key.
func noKey(g *anonymous.Gate, pool string) string {
	if err := g.NoKey(pool); err != nil {
		return outcome(account.Record{}, err)
	}
	return "bad"
}

// ANON-1 and ANON-4: each step is a time on a frozen clock and what attempts get
// there. Keys are new in every attempt.
func TestInstants(t *testing.T) {
	type step struct {
		at    time.Duration
		tries int
		want  string
	}
	const us = time.Microsecond
	for _, tc := range []struct {
		name                 string
		rpm, burst, inFlight int64
		steps                []step
	}{
		{"the contract's numbers", 0, 0, 0, []step{
			{0, 10, "bad"}, {0, 5, "rate 2"},
			{time.Second - us, 1, "rate 2"}, // a second and a microsecond are left
			{time.Second, 1, "rate 1"},
			{2*time.Second - us, 1, "rate 1"}, // never 0
			{2 * time.Second, 1, "bad"}, {2 * time.Second, 1, "rate 2"},
			{12 * time.Second, 5, "bad"}, {12 * time.Second, 1, "rate 2"},
			{time.Hour, 10, "bad"}, {time.Hour, 1, "rate 2"},
			{1_000_000 * time.Hour, 10, "bad"}, {1_000_000 * time.Hour, 1, "rate 2"},
		}},
		{"a rate without a whole second", 7, 1, 1, []step{
			{0, 1, "bad"}, {0, 1, "rate 9"},
			{8_571_428 * us, 1, "rate 1"}, {8_571_429 * us, 1, "bad"},
		}},
		{"once a minute", 1, 1, 1, []step{
			{0, 1, "bad"}, {0, 100, "rate 60"}, {59 * time.Second, 100, "rate 1"}, {time.Minute, 1, "bad"},
		}},
		{"the largest", 1_000_000, 3, 100_000, []step{
			{0, 3, "bad"}, {59 * us, 1, "rate 1"}, {60 * us, 1, "bad"}, {60 * us, 1, "rate 1"},
		}},
	} {
		ways := map[string]func(g *anonymous.Gate, n int) string{
			"unknown key": func(g *anonymous.Gate, n int) string { return attempt(t, g, "a", n, bad) },
			"no key":      func(g *anonymous.Gate, _ int) string { return noKey(g, "a") },
			"either": func(g *anonymous.Gate, n int) string {
				if n%2 == 0 {
					return noKey(g, "a")
				}
				return attempt(t, g, "a", n, bad)
			},
		}
		for way, try := range ways {
			t.Run(tc.name+", "+way, func(t *testing.T) {
				cfg := anonymous.Config{}
				if tc.rpm > 0 {
					cfg.Allowance = allowance(t, tc.rpm, tc.burst, tc.inFlight)
				}
				c := newFrozen()
				g, n, last := anonymous.New(c, cfg), 0, time.Duration(0)
				for i, s := range tc.steps {
					c.Advance(s.at - last)
					last = s.at
					for range s.tries {
						n++
						require.Equal(t, s.want, try(g, n), "step %d, %v", i, s.at)
					}
				}
			})
		}
	}
}

// ANON-2: nobody pays for another address.
func TestAddressesHaveSeparatePools(t *testing.T) {
	g := anonymous.New(newFrozen(), anonymous.Config{})
	for i := range 10 {
		require.Equal(t, "bad", attempt(t, g, "a", i, bad))
		require.Equal(t, "bad", attempt(t, g, "b", i, bad), "the key is no identity")
	}
	require.Equal(t, "rate 2", attempt(t, g, "a", 10, unasked(t)))
	require.Equal(t, "rate 2", attempt(t, g, "b", 11, unasked(t)))
	require.Equal(t, "bad", attempt(t, g, "", 12, bad), "no name is a name as well")
}

// ANON-6: an empty pool costs the store nothing, whatever the key.
func TestRejectedBeforeTheLookup(t *testing.T) {
	g := anonymous.New(newFrozen(), anonymous.Config{})
	for range 10 {
		require.Equal(t, "bad", noKey(g, "a"))
	}
	require.Equal(t, "rate 2", attempt(t, g, "a", 1, unasked(t)))
	require.Equal(t, "rate 2", noKey(g, "a"))
	require.Equal(t, "good alice", attempt(t, g, "b", 1, good), "the rejection said nothing about the key")
}

// ANON-7: a good key costs its address nothing, however often and at whatever
// level of the pool.
func TestGoodKeysCostNothing(t *testing.T) {
	c := newFrozen()
	g := anonymous.New(c, anonymous.Config{})
	for n := range 100 {
		require.Equal(t, "good alice", attempt(t, g, "a", n, good), "a new key each time")
	}
	require.Zero(t, g.Stats().Pools.Size, "nor memory")
	for range 9 {
		require.Equal(t, "bad", noKey(g, "a"))
	}
	for n := 100; n < 200; n++ {
		require.Equal(t, "good alice", attempt(t, g, "a", n, good), "on the last token")
	}
	c.Advance(time.Second)
	require.Equal(t, "bad", noKey(g, "a"))
	require.Equal(t, "rate 1", noKey(g, "a"), "the half that came back is still there, and no more")
}

// ANON-7: neither an empty pool nor a guesser stands in the way of a key that was
// seen good, as long as that is not too long ago.
func TestKnownKeyPassesAnEmptyPool(t *testing.T) {
	const us = time.Microsecond
	for _, tc := range []struct {
		name       string
		keptFor    time.Duration // configured
		last, then time.Duration // when it was last seen, and when it comes again
		want       string
	}{
		{"at once", 0, 0, 0, "good alice"},
		{"just within 15 minutes", 0, 0, 15*time.Minute - us, "good alice"},
		{"after 15 minutes", 0, 0, 15 * time.Minute, "rate 2"},
		{"each use counts", 0, 14 * time.Minute, 29*time.Minute - us, "good alice"},
		{"each use counts, no longer", 0, 14 * time.Minute, 29 * time.Minute, "rate 2"},
		{"a minute, just within", time.Minute, 0, time.Minute - us, "good alice"},
		{"a minute, after", time.Minute, 0, time.Minute, "rate 2"},
		{"a century later", 0, 0, 900_000 * time.Hour, "rate 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newFrozen()
			g := anonymous.New(c, anonymous.Config{KnownFor: tc.keptFor})
			require.Equal(t, "good alice", attempt(t, g, "a", 1, good))
			c.Advance(tc.last)
			require.Equal(t, "good alice", attempt(t, g, "a", 1, good))
			c.Advance(tc.then - tc.last)
			for range 10 {
				require.Equal(t, "bad", noKey(g, "a"))
			}
			require.Equal(t, "rate 2", noKey(g, "a"))
			require.Equal(t, tc.want, attempt(t, g, "a", 1, good))
		})
	}
}

// A guesser who never lets the pool fill leaves a known user at full speed.
func TestFloodLeavesAKnownUserAlone(t *testing.T) {
	c := newFrozen()
	g := anonymous.New(c, anonymous.Config{})
	require.Equal(t, "good alice", attempt(t, g, "gateway", 0, good))
	refused := 0
	for n := 1; n <= 20_000; n++ {
		if attempt(t, g, "gateway", n, bad) != "bad" {
			refused++
		}
		if n%10 == 0 {
			require.Equal(t, "good alice", attempt(t, g, "gateway", 0, good))
			c.Advance(100 * time.Millisecond)
		}
	}
	require.Equal(t, 20_000-10-99, refused, "of 200 s the guesser got the burst and what came back until the last guess")
}

// Revocation ends it at once; the key then counts like any other.
func TestForgetEndsWhatIsKnown(t *testing.T) {
	g := anonymous.New(newFrozen(), anonymous.Config{})
	require.Equal(t, "good alice", attempt(t, g, "a", 1, good))
	require.Equal(t, 1, g.Stats().Known)
	g.Forget(key(1))
	g.Forget(key(2))
	require.Zero(t, g.Stats().Known)
	for range 10 {
		require.Equal(t, "bad", attempt(t, g, "a", 1, bad))
	}
	require.Equal(t, "rate 2", attempt(t, g, "a", 1, unasked(t)))
}

// A key that is revoked where the gate is not told of it is found out by its own
// lookup, is forgotten and pays.
func TestKnownKeyThatProvesBad(t *testing.T) {
	g := anonymous.New(newFrozen(), anonymous.Config{})
	require.Equal(t, "good alice", attempt(t, g, "a", 1, good))
	for range 10 {
		require.Equal(t, "bad", attempt(t, g, "a", 1, bad))
	}
	require.Equal(t, "rate 2", attempt(t, g, "a", 1, unasked(t)))

	require.Equal(t, "good alice", attempt(t, g, "b", 2, good))
	for range 10 {
		require.Equal(t, "bad", noKey(g, "b"))
	}
	require.Equal(t, "rate 2", attempt(t, g, "b", 2, bad), "no token to pay with: refused like any other")
}

// A store that is away says nothing about a key.
func TestStoreFailureGivesTheTokenBack(t *testing.T) {
	g := anonymous.New(newFrozen(), anonymous.Config{})
	require.Equal(t, "good alice", attempt(t, g, "a", 0, good))
	for n := range 100 {
		require.Equal(t, "away", attempt(t, g, "a", n, away))
	}
	require.Equal(t, 1, g.Stats().Known, "nor does it end what is known")
	for n := range 10 {
		require.Equal(t, "bad", attempt(t, g, "a", 1000+n, bad))
	}
	require.Equal(t, "good alice", attempt(t, g, "a", 0, good))
}

// The numbers of a gate are those of its configuration, and never unbounded.
func TestConfig(t *testing.T) {
	for _, n := range []int{0, -1} {
		g := anonymous.New(newFrozen(), anonymous.Config{
			KnownKeys: n, KnownFor: time.Duration(n), Pools: limiter.Config{MaximumSize: n},
		})
		require.Equal(t, limiter.DefaultMaximumSize, g.Stats().Pools.Maximum)
		require.Equal(t, "good alice", attempt(t, g, "a", 1, good))
		require.Equal(t, 1, g.Stats().Known)
	}
	g := anonymous.New(newFrozen(), anonymous.Config{KnownKeys: 4})
	for n := range 100 {
		require.Equal(t, "good alice", attempt(t, g, "a", n, good))
		require.LessOrEqual(t, g.Stats().Known, 4)
	}
}

// Each decision of a pool is told; a known key asks for none.
func TestObserve(t *testing.T) {
	told := map[admission.Outcome]int{}
	g := anonymous.New(newFrozen(), anonymous.Config{
		Allowance: allowance(t, 1, 2, 1),
		Observe: func(o admission.Outcome, took time.Duration) {
			require.GreaterOrEqual(t, took, time.Duration(0))
			told[o]++
		},
	})
	attempt(t, g, "a", 1, good)
	attempt(t, g, "a", 1, good)
	attempt(t, g, "a", 2, func(ctx context.Context) (account.Record, error) {
		require.Equal(t, "concurrency 1", noKey(g, "a"))
		return bad(ctx)
	})
	noKey(g, "a")
	noKey(g, "a")
	require.Equal(t, map[admission.Outcome]int{
		admission.Admitted: 3, admission.RateRejected: 1, admission.ConcurrencyRejected: 1,
	}, told)
}

// ANON-4: a rejection says what the client needs and nothing of anybody.
func TestRejectionText(t *testing.T) {
	require.EqualError(t, anonymous.Rejection{Outcome: admission.RateRejected, RetryAfter: 2},
		"too many attempts from this address (rate): retry after 2 s")
}
