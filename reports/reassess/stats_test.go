package reassess

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/replay"
)

func TestSums(t *testing.T) {
	s := sums([]met{{attempts: 4000, rate: 3}, {}, {attempts: 100, rate: 1, concurrency: 5}, {attempts: 900}})
	require.Equal(t, 3, s.Users, "who made no attempt is no user")
	require.Equal(t, 2, s.UsersAffected.N)
	require.Equal(t, replay.Wilson(2, 3), s.UsersAffected.Share95)
	require.Equal(t, 2, s.UsersOK.N, "3 in 4,000 are fewer than one in a thousand")
	require.EqualValues(t, 5000, s.Attempts)
	require.EqualValues(t, 9, s.Rejected)
	require.EqualValues(t, 4, *s.RejectedRate)
	require.EqualValues(t, 5, *s.RejectedConcurrency)
	require.InDelta(t, 6./9, *s.TopShare, 1e-12)
	require.InDelta(t, 25e6/(16e6+1e4+81e4), s.EffectiveUsers, 1e-12)
	require.Nil(t, s.RejectedShare95, "three users carry no interval of requests")

	require.Zero(t, sums(nil).Users)
	require.Nil(t, sums([]met{{attempts: 1}}).TopShare)
}

// Wilson's interval as it is printed elsewhere.
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		k, n      int
		low, high float64
	}{
		{17, 917, 0.01161, 0.02949}, {0, 917, 0, 0.00327}, {917, 917, 0.99673, 1}, {0, 2, 0, 1}, {914, 917, 0.99043, 0.99889},
		{900, 917, 0.97051, 0.98839}, {10, 20, 0.29930, 0.70070},
	} {
		got := replay.Wilson(c.k, c.n)
		require.InDelta(t, c.low, got[0], 5e-6)
		require.InDelta(t, c.high, got[1], 5e-6)
	}
	require.Equal(t, 300, enough(0.99))
	require.Less(t, replay.Wilson(299, 299)[0], 0.99)
}

// With one attempt a user there is nothing to hang together: the interval is
// that of Clopper and Pearson for 15 in 100, but for the degrees of freedom.
func TestClusteredWithoutClusters(t *testing.T) {
	users := make([]met, 100)
	for i := range users {
		users[i].attempts = 1
		if i < 15 {
			users[i].rate = 1
		}
	}
	interval, effect := clustered(users)
	require.InDelta(t, 100./99, *effect, 1e-9)
	require.InDelta(t, 0.0865, interval[0], 0.002)
	require.InDelta(t, 0.2353, interval[1], 0.002)
}

// Users of whom each is rejected always or never: ten attempts tell no more
// than one.
func TestClusteredWholeClusters(t *testing.T) {
	users := make([]met, 100)
	for i := range users {
		users[i].attempts = 10
		if i < 15 {
			users[i].rate = 10
		}
	}
	interval, effect := clustered(users)
	require.InDelta(t, 1000./99, *effect, 1e-9)
	require.InDelta(t, 0.0865, interval[0], 0.002)
	require.InDelta(t, 0.2353, interval[1], 0.002)
}

func TestClusteredSaysNothingOnNothing(t *testing.T) {
	for name, one := range map[string]met{"none rejected": {attempts: 5}, "all rejected": {attempts: 5, rate: 5}} {
		users := make([]met, 100)
		for i := range users {
			users[i] = one
		}
		interval, effect := clustered(users)
		require.Nil(t, interval, name)
		require.Nil(t, effect, name)
	}
	few := make([]met, 29)
	for i := range few {
		few[i] = met{attempts: 2, rate: int64(i % 2)}
	}
	interval, _ := clustered(few)
	require.Nil(t, interval, "29 effective users")
}
