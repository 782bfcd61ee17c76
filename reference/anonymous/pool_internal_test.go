package anonymous

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/clock"
)

// A place is settled once, however often and in whatever way it is tried again,
// and another's is not touched.
func TestPlaceIsSettledOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		first, then func(p *pools, pool, place string)
		left        int
	}{
		"spent, spent again":           {(*pools).spend, (*pools).spend, 8},
		"spent, then given back":       {(*pools).spend, (*pools).giveBack, 8},
		"given back, then spent":       {(*pools).giveBack, (*pools).spend, 9},
		"given back, given back again": {(*pools).giveBack, (*pools).giveBack, 9},
	} {
		t.Run(name, func(t *testing.T) {
			p := &New(clock.NewFrozen(time.Unix(0, 0)), Config{}).pools
			place, err := p.reserve("a")
			require.NoError(t, err)
			other, err := p.reserve("a")
			require.NoError(t, err)
			tc.first(p, "a", place)
			tc.then(p, "a", place)
			tc.then(p, "b", other)
			require.EqualValues(t, 1, p.places.InFlight("a"))
			left := 0
			for p.count("a") == nil {
				left++
			}
			require.Equal(t, tc.left, left, "of ten, one of which is set aside")
		})
	}
}
