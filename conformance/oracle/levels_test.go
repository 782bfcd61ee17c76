package oracle

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestReadingsAreExact holds each reading to the rule it inverts: every level in
// it rounds to the value it was read from, and its neighbours outside do not.
func TestReadingsAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Allowance{RequestsPerMinute: rapid.Int64Range(1, 1_000_000).Draw(t, "rpm"), Burst: rapid.Int64Range(1, 1_000_000).Draw(t, "burst"), Concurrency: 1}
		level := rapid.Int64Range(0, a.full()).Draw(t, "level")
		at := func(l int64) levels { return levels{l, l} }
		seconds := func(want, l int64) int64 { // by the rule, in fractions
			r := big.NewRat(want-l, a.perSecond())
			n := new(big.Int).Div(r.Num(), r.Denom())
			if !r.IsInt() {
				n.Add(n, big.NewInt(1))
			}
			return n.Int64()
		}
		require.Equal(t, values{seconds(a.full(), level), seconds(a.full(), level)}, a.reset(at(level)))
		short := min(level, Token-1)
		require.Equal(t, max(1, seconds(Token, short)), a.retryAfter(at(short)).lo)

		for name, c := range map[string]struct {
			read levels
			rule func(int64) int64
			at   int64
			most int64
		}{
			"remaining":   {a.readRemaining(level / Token), func(l int64) int64 { return l / Token }, level, a.full()},
			"reset":       {a.readReset(seconds(a.full(), level)), func(l int64) int64 { return seconds(a.full(), l) }, level, a.full()},
			"retry after": {a.readRetryAfter(max(1, seconds(Token, short))), func(l int64) int64 { return max(1, seconds(Token, l)) }, short, Token - 1},
		} {
			require.True(t, c.read.lo <= c.at && c.at <= c.read.hi, name)
			for _, l := range []int64{c.read.lo, min(c.read.hi, c.most)} {
				require.Equal(t, c.rule(c.at), c.rule(l), name)
			}
			if c.read.lo > 0 {
				require.NotEqual(t, c.rule(c.at), c.rule(c.read.lo-1), name)
			}
			if c.read.hi < c.most {
				require.NotEqual(t, c.rule(c.at), c.rule(c.read.hi+1), name)
			}
		}
	})
}

func TestNoValueOverflows(t *testing.T) {
	for _, a := range []Allowance{{1, 1, 1}, {1_000_000, 1_000_000, 1}} {
		for _, n := range []int64{0, 1, 1_000_000, math.MaxInt64 / 2, math.MaxInt64} {
			for _, l := range []levels{a.readRemaining(n), a.readReset(n), a.readRetryAfter(max(1, n))} {
				require.False(t, l.empty())
			}
			require.True(t, a.readRetryAfter(0).empty(), "no level explains it")
		}
		for _, micros := range []int64{math.MinInt64, -1, 0, 1, math.MaxInt64} {
			g := gain(a.RequestsPerMinute, micros)
			require.LessOrEqual(t, g, int64(math.MaxInt64/4))
			require.GreaterOrEqual(t, g, int64(-math.MaxInt64/4))
		}
	}
}

func TestScalingIsRoundedDownAndUndone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := rapid.Int64Range(1, 1_000_000).Draw(t, "from"), rapid.Int64Range(1, 1_000_000).Draw(t, "to")
		level := rapid.Int64Range(0, from*Token).Draw(t, "level")
		want := new(big.Int).Div(new(big.Int).Mul(big.NewInt(level), big.NewInt(to)), big.NewInt(from)).Int64()
		require.Equal(t, want, scaled(level, to, from))
		least := unscaled(want, to, from)
		require.LessOrEqual(t, least, level)
		require.GreaterOrEqual(t, scaled(least, to, from), want)
		if least > 0 {
			require.Less(t, scaled(least-1, to, from), want)
		}
	})
}

func TestLevelsInWords(t *testing.T) {
	for want, l := range map[string]levels{
		"exactly 0 tokens":            {0, 0},
		"exactly 1 token":             {Token, Token},
		"exactly 9 tokens":            {9 * Token, 9 * Token},
		"exactly 0.500 of a token":    {Token / 2, Token / 2},
		"0.000 to 0.013 of a token":   {0, 13*Token/1000 - 1},
		"0.333 to 0.334 of a token":   {Token / 3, Token / 3},
		"8.999 to 10.000 tokens":      {9*Token - 1, 10 * Token},
		"-1.000 to -0.500 of a token": {-Token, -Token / 2},
	} {
		require.Equal(t, want, l.String())
	}
}
