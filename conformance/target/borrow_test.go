package target

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/conformance/oracle"
)

// best is who is to be lent, found by looking at everybody.
func best(t *Target, plan string, keys int) *User {
	var free []*User
	for _, u := range t.users {
		if u.Plan == plan && len(u.keys) >= keys && !u.leased {
			free = append(free, u)
		}
	}
	if len(free) == 0 {
		return nil
	}
	return slices.MaxFunc(free, func(a, b *User) int {
		promise := func(u *User) int64 {
			lo, hi := u.Bucket.LevelAt(t.time.atLeast())
			if full := u.Bucket.Allowance().Burst * oracle.Token; lo == 0 && hi == full {
				return full - 1
			}
			return lo
		}
		return cmp.Or(cmp.Compare(promise(a), promise(b)), cmp.Compare(b.place, a.place))
	})
}

// TestTheBestIsLentWithoutLookingAtAll: whoever is lent and comes back, in any
// state, it is always the one that a look at everybody finds.
func TestTheBestIsLentWithoutLookingAtAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		allowance := oracle.Allowance{RequestsPerMinute: 10, Burst: 10, Concurrency: 2}
		tg := &Target{time: newTimeline("frozen")}
		now := tg.time.atMost()
		for i := range rapid.IntRange(0, 12).Draw(t, "users") {
			u := &User{
				ID: fmt.Sprint(i), Plan: rapid.SampledFrom([]string{"free", "pro"}).Draw(t, "plan"), place: i,
				Bucket: oracle.NewUnknown(allowance, now), keys: make([]Secret, rapid.IntRange(1, 2).Draw(t, "keys")),
			}
			tg.users = append(tg.users, u)
		}
		var lent []*User
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(lent) > 0 && rapid.Bool().Draw(t, "return") {
				i := rapid.IntRange(0, len(lent)-1).Draw(t, "who")
				u := lent[i]
				lent = slices.Delete(lent, i, i+1)
				if rapid.Bool().Draw(t, "full") {
					u.Bucket = oracle.NewFull(allowance)
				}
				if rapid.IntRange(0, 4).Draw(t, "lost") > 0 { // else never lent again
					tg.takeBack(u)
				}
				continue
			}
			plan, keys := rapid.SampledFrom([]string{"free", "pro"}).Draw(t, "of"), rapid.IntRange(1, 2).Draw(t, "with")
			want := best(tg, plan, keys)
			got := tg.borrow(plan, keys)
			require.Same(t, want, got)
			if got != nil {
				require.True(t, got.leased)
				lent = append(lent, got)
			}
		}
	})
}
