package memory_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/store/memory"
)

func newStore() *memory.Store {
	entitled := map[policy.Dimension]string{policy.RequestsPerMinute: "10", policy.Burst: "10", policy.Concurrency: "2"}
	return memory.New(map[string]policy.Plan{
		"free": {Name: "free", Entitlements: entitled, Operations: 3},
		"pro":  {Name: "pro", Entitlements: entitled, Operations: 5},
	})
}

func lookup(t *testing.T, s *memory.Store, k account.Key) (account.Record, error) {
	t.Helper()
	return s.Lookup(t.Context(), s.Digest(k))
}

func TestKeys(t *testing.T) {
	s := newStore()
	alice, keys, err := s.CreateUser("free", 2)
	require.NoError(t, err)
	bob, others, err := s.CreateUser("pro", 1)
	require.NoError(t, err)
	require.NotEqual(t, alice, bob)

	ids := map[string]bool{}
	for _, k := range keys {
		rec, err := lookup(t, s, k)
		require.NoError(t, err)
		require.Equal(t, alice, rec.User)
		require.Equal(t, "free", rec.Subscription.Plan)
		require.Contains(t, rec.Plans, "free")
		ids[rec.KeyID] = true
	}
	require.Len(t, ids, 2, "each key has an id of its own")

	third, err := s.AddKey(alice)
	require.NoError(t, err)
	_, err = lookup(t, s, third)
	require.NoError(t, err)

	unknown, err := account.NewKey("free")
	require.NoError(t, err)
	_, err = lookup(t, s, unknown)
	require.ErrorIs(t, err, account.ErrUnknownKey)

	require.ErrorIs(t, s.RevokeKey(alice, others[0]), account.ErrUnknownKey, "a user's key is not another's to revoke")
	require.NoError(t, s.RevokeKey(alice, keys[0]))
	_, err = lookup(t, s, keys[0])
	require.ErrorIs(t, err, account.ErrUnknownKey)
	require.ErrorIs(t, s.RevokeKey(alice, keys[0]), account.ErrUnknownKey)
	_, err = lookup(t, s, keys[1])
	require.NoError(t, err, "the other key is still good")
}

func TestBounds(t *testing.T) {
	s := newStore()
	user, _, err := s.CreateUser("free", memory.MaxKeysPerUser)
	require.NoError(t, err)
	_, err = s.AddKey(user)
	require.ErrorIs(t, err, account.ErrFull)
	_, _, err = s.CreateUser("free", memory.MaxKeysPerUser+1)
	require.ErrorIs(t, err, account.ErrFull)
	require.True(t, s.Known(user))
	require.False(t, s.Known("user-2"), "a user that could not be created is not there")
}

func TestPolicyWrites(t *testing.T) {
	s := newStore()
	user, keys, err := s.CreateUser("free", 1)
	require.NoError(t, err)
	overrides := func() []policy.Override {
		rec, err := lookup(t, s, keys[0])
		require.NoError(t, err)
		return rec.Overrides
	}
	expires := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	require.NoError(t, s.SetOverride(user, policy.Burst, 7, expires))
	before := overrides()
	require.Equal(t, []policy.Override{{Dimension: policy.Burst, Value: "7", Expires: expires}}, before)

	require.NoError(t, s.SetOverride(user, policy.Burst, 8, time.Time{}))
	require.NoError(t, s.SetOverride(user, policy.Concurrency, 1, time.Time{}))
	require.ElementsMatch(t, []policy.Override{{Dimension: policy.Burst, Value: "8"}, {Dimension: policy.Concurrency, Value: "1"}}, overrides())
	require.Equal(t, "7", before[0].Value, "what a lookup returned does not change afterwards")

	for _, value := range []int64{0, -1, 1_000_001, -1 << 63} {
		require.Error(t, s.SetOverride(user, policy.Burst, value, time.Time{}))
	}
	require.Error(t, s.SetOverride(user, "unlimited", 1, time.Time{}))
	require.Len(t, overrides(), 2, "a value that is refused changes nothing")

	require.NoError(t, s.EndOverride(user, policy.Burst))
	require.Equal(t, []policy.Override{{Dimension: policy.Concurrency, Value: "1"}}, overrides())
	require.NoError(t, s.EndOverride(user, policy.Burst), "ending what is not there is no mistake")

	require.NoError(t, s.SetPlan(user, "pro"))
	rec, err := lookup(t, s, keys[0])
	require.NoError(t, err)
	require.Equal(t, "pro", rec.Subscription.Plan)
	require.Len(t, rec.Overrides, 1, "an override stays over plan changes")
}

func TestUnknownNames(t *testing.T) {
	s := newStore()
	user, _, err := s.CreateUser("free", 1)
	require.NoError(t, err)
	_, _, err = s.CreateUser("gold", 1)
	require.ErrorIs(t, err, account.ErrUnknownPlan)
	require.ErrorIs(t, s.SetPlan(user, "gold"), account.ErrUnknownPlan)
	for name, err := range map[string]error{
		"plan":       s.SetPlan("nobody", "free"),
		"override":   s.SetOverride("nobody", policy.Burst, 1, time.Time{}),
		"end":        s.EndOverride("nobody", policy.Burst),
		"operations": s.SetOperations("nobody", 1),
		"revoke":     s.RevokeKey("nobody", account.Key{}),
		"reserve":    s.Reserve(t.Context(), "nobody", "r"),
	} {
		require.ErrorIs(t, err, account.ErrUnknownUser, name)
		require.ErrorContains(t, err, `"nobody"`, name)
	}
	require.ErrorContains(t, s.SetOperations(user, -1), "-1")
}

func TestLedger(t *testing.T) {
	ctx := t.Context()
	s := newStore()
	user, _, err := s.CreateUser("free", 1)
	require.NoError(t, err)
	other, _, err := s.CreateUser("free", 1)
	require.NoError(t, err)

	for _, id := range []string{"a", "b", "c"} {
		require.NoError(t, s.Reserve(ctx, user, id))
	}
	require.ErrorIs(t, s.Reserve(ctx, user, "d"), account.ErrExhausted, "three operations, three reservations")
	require.NoError(t, s.Reserve(ctx, other, "e"), "another's are another's")
	require.Error(t, s.Reserve(ctx, other, "e"), "one id, one reservation")

	require.NoError(t, s.GiveBack(ctx, "a"))
	require.NoError(t, s.Reserve(ctx, user, "d"), "what was given back is there again")
	require.NoError(t, s.GiveBack(ctx, "a"), "a second time returns nothing more")
	require.ErrorIs(t, s.Reserve(ctx, user, "f"), account.ErrExhausted)

	require.NoError(t, s.Charge(ctx, "b"))
	require.NoError(t, s.Charge(ctx, "b"), "charging twice charges once")
	require.NoError(t, s.GiveBack(ctx, "b"), "what was charged stays charged")
	require.Error(t, s.Charge(ctx, "b"), "its reservation has ended")
	require.NoError(t, s.GiveBack(ctx, "c"))
	require.NoError(t, s.GiveBack(ctx, "d"))
	require.NoError(t, s.Reserve(ctx, user, "g"))
	require.NoError(t, s.Reserve(ctx, user, "h"))
	require.ErrorIs(t, s.Reserve(ctx, user, "i"), account.ErrExhausted, "three operations, one charged")

	require.NoError(t, s.SetOperations(user, 0))
	require.NoError(t, s.Charge(ctx, "g"), "a reservation holds when the rest is taken away")
	require.ErrorIs(t, s.Reserve(ctx, user, "i"), account.ErrExhausted)
	require.NoError(t, s.SetPlan(user, "pro"))
	require.NoError(t, s.Reserve(ctx, user, "i"), "a new plan brings its own operations")
}

// TestLedgerInParallel reserves from many sides: never more than there is.
func TestLedgerInParallel(t *testing.T) {
	s := newStore()
	user, _, err := s.CreateUser("free", 1)
	require.NoError(t, err)
	require.NoError(t, s.SetOperations(user, 50))
	var wg sync.WaitGroup
	results := make([]error, 200)
	for i := range results {
		wg.Go(func() {
			id := fmt.Sprint(i)
			results[i] = s.Reserve(t.Context(), user, id)
			if results[i] == nil {
				results[i] = errors.Join(s.Charge(t.Context(), id), s.GiveBack(t.Context(), id))
			}
		})
	}
	wg.Wait()
	charged := 0
	for _, err := range results {
		if err == nil {
			charged++
			continue
		}
		require.ErrorIs(t, err, account.ErrExhausted)
	}
	require.Equal(t, 50, charged)
}
