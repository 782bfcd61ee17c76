package manners_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/loadgen/dice"
	"github.com/invoicespec/brimline/loadgen/manners"
)

const (
	ms   = time.Millisecond
	ever = time.Duration(math.MaxInt64)
)

// step is one answer: a 429 unless it passed, and until when the user holds off
// afterwards, at least and at most.
type step struct {
	sent, answered, named time.Duration
	passed                bool
	from, to              time.Duration
}

func TestManners(t *testing.T) {
	for name, c := range map[string]struct {
		manners manners.Manners
		words   string
		steps   []step
	}{
		"ignore": {manners.Ignore(), "ignore", []step{
			{0, 5 * ms, 3 * time.Second, false, 0, 0},
			{10 * ms, 15 * ms, time.Hour, false, 0, 0},
		}},
		"obey": {manners.Obey(), "obey-retry-after", []step{
			{0, 5 * ms, 3 * time.Second, false, 3005 * ms, 3005 * ms},
			{1 * ms, 6 * ms, 2 * time.Second, false, 3005 * ms, 3005 * ms}, // never less than it knows
			{2 * ms, 7 * ms, 4 * time.Second, false, 4007 * ms, 4007 * ms},
			{5000 * ms, 5005 * ms, 0, true, 4007 * ms, 4007 * ms},
		}},
		"obey what names nothing": {manners.Obey(), "obey-retry-after", []step{
			{0, 5 * ms, 0, false, 1005 * ms, 1005 * ms},
			{2000 * ms, 2005 * ms, 500 * ms, false, 3005 * ms, 3005 * ms},
			{4000 * ms, 4005 * ms, -time.Hour, false, 5005 * ms, 5005 * ms},
		}},
		"jitter": {manners.ObeyWithJitter(), "obey-with-jitter", []step{
			{0, 5 * ms, 10 * time.Second, false, 10_005 * ms, 15_005 * ms},
			{20_000 * ms, 20_005 * ms, 0, false, 21_005 * ms, 21_505 * ms},
		}},
		"backoff": {manners.BackOff(100*ms, 350*ms), "backoff from 100ms to 350ms", []step{
			{0, 5 * ms, time.Hour, false, 55 * ms, 105 * ms},
			{200 * ms, 205 * ms, time.Hour, false, 305 * ms, 405 * ms},         // 200
			{500 * ms, 505 * ms, time.Hour, false, 680 * ms, 855 * ms},         // 350, not 400
			{1000 * ms, 1005 * ms, time.Hour, false, 1180 * ms, 1355 * ms},     // 350
			{2000 * ms, 2005 * ms, 0, true, 1180 * ms, 1355 * ms},              // over
			{3000 * ms, 3005 * ms, time.Hour, false, 3055 * ms, 3105 * ms},     // from the beginning
			{3000 * ms, 3006 * ms, time.Hour, false, 3056 * ms, 3106 * ms},     // together with it
			{3000 * ms, 3007 * ms, 0, true, 3056 * ms, 3106 * ms},              // that one too: no end of the row
			{4000 * ms, 4005 * ms, time.Hour, false, 4105 * ms, 4205 * ms},     // so this is the second
			{100_000 * ms, 100_005 * ms, 0, true, 4105 * ms, 100_000_000 * ms}, // nothing to hold
		}},
		"give up": {manners.Ignore().GivingUpAfter(3), "ignore, give up after 3", []step{
			{0, 5 * ms, time.Hour, false, 0, 0},
			{10 * ms, 15 * ms, time.Hour, false, 0, 0},
			{20 * ms, 25 * ms, 0, true, 0, 0},
			{30 * ms, 35 * ms, time.Hour, false, 0, 0},
			{40 * ms, 45 * ms, time.Hour, false, 0, 0},
			{41 * ms, 46 * ms, time.Hour, false, 0, 0}, // together with the one before
			{50 * ms, 55 * ms, time.Hour, false, ever, ever},
			{60 * ms, 65 * ms, 0, true, ever, ever},
		}},
		"back off, then give up": {manners.BackOff(time.Second, time.Minute).GivingUpAfter(2), "backoff from 1s to 1m0s, give up after 2", []step{
			{0, 5 * ms, 0, false, 505 * ms, 1005 * ms},
			{2000 * ms, 2005 * ms, 0, false, ever, ever},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.words, c.manners.String())
			var u manners.User
			d := dice.New(7, "manners", "free-001")
			for i, s := range c.steps {
				if s.passed {
					c.manners.Passed(&u, s.sent)
				} else {
					c.manners.Refused(&u, d, s.sent, s.answered, s.named)
				}
				if s.from > 0 {
					require.True(t, u.Holds(s.from-1), "step %d", i)
				}
				if s.to < ever {
					require.False(t, u.Holds(s.to), "step %d", i)
				}
			}
		})
	}
}

func TestWhoLooksAtRetryAfter(t *testing.T) {
	require.True(t, manners.Obey().Listens())
	require.True(t, manners.ObeyWithJitter().GivingUpAfter(3).Listens())
	require.False(t, manners.Ignore().Listens())
	require.False(t, manners.BackOff(1, 2).Listens())
}

// TestHoldingOffOnlyGrows: whatever comes, in any order, no user takes back a
// promise, waits less than the floor, or longer than they may.
func TestHoldingOffOnlyGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := time.Duration(rapid.Int64Range(1, 1e12).Draw(t, "first"))
		most := first + time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "more"))
		m := rapid.SampledFrom([]manners.Manners{manners.Obey(), manners.ObeyWithJitter(), manners.BackOff(first, most)}).Draw(t, "manners")
		var u manners.User
		held := time.Duration(0)
		for range rapid.IntRange(1, 100).Draw(t, "answers") {
			sent := time.Duration(rapid.Int64Range(0, 1e13).Draw(t, "sent"))
			answered := sent + time.Duration(rapid.Int64Range(0, 1e10).Draw(t, "took"))
			named := time.Duration(rapid.Int64Range(-1e9, 1e11).Draw(t, "named"))
			if rapid.Bool().Draw(t, "passed") {
				m.Passed(&u, sent)
			} else {
				m.Refused(&u, 1, sent, answered, named)
				least, longest := max(named, manners.Floor), max(named, manners.Floor)*3/2
				if !m.Listens() {
					least, longest = first/2, most
				}
				require.True(t, u.Holds(answered+least-1))
				held = max(held, answered+longest)
			}
			require.False(t, u.Holds(held+1))
		}
	})
}
