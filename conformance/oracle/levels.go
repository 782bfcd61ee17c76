package oracle

import (
	"fmt"
	"math"
	"math/big"
)

// levels is the closed range of units that a bucket can hold. Where a reading of
// headers is turned into levels it may lie outside of what a bucket can hold.
type levels struct{ lo, hi int64 }

func (l levels) empty() bool { return l.lo > l.hi }

func (l levels) and(m levels) levels { return levels{max(l.lo, m.lo), min(l.hi, m.hi)} }

// spent is what is left of l once a token was taken; empty if none can have been
// there.
func (l levels) spent() levels { return levels{max(l.lo, Token) - Token, l.hi - Token} }

// short is the part of l that has no whole token.
func (l levels) short() levels { return levels{l.lo, min(l.hi, Token-1)} }

// The same three for what is kept, which cannot be empty.

func (k kept) spent() kept       { return kept(levels(k).spent()) }
func (k kept) short() kept       { return kept(levels(k).short()) }
func (k kept) and(l levels) kept { return kept(levels(k).and(l)) }

// Products of rate, time and level do not fit 64 bits, so they are made of big
// integers and cut back to what a bucket can hold.

func product(a, b int64) *big.Int { return new(big.Int).Mul(big.NewInt(a), big.NewInt(b)) }

// gain is what refills in so many microseconds at a rate, within ±math.MaxInt64/4
// so that a level can be added to it.
func gain(rpm, micros int64) int64 {
	g := product(rpm, micros)
	if most := big.NewInt(math.MaxInt64 / 4); g.CmpAbs(most) > 0 {
		if g.Sign() < 0 {
			return -most.Int64()
		}
		return most.Int64()
	}
	return g.Int64()
}

// scaled is level × to ÷ from, rounded down.
func scaled(level, to, from int64) int64 {
	p := product(level, to)
	return p.Div(p, big.NewInt(from)).Int64()
}

// unscaled is the least level for which scaled gives at least want.
func unscaled(want, to, from int64) int64 {
	p := product(want, from)
	p.Add(p, big.NewInt(to-1))
	return p.Div(p, big.NewInt(to)).Int64()
}

// roundUp is a ÷ b rounded up, for a of either sign and b > 0.
func roundUp(a, b int64) int64 { return -floorDiv(-a, b) }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// full is the capacity in units.
func (a Allowance) full() int64 { return a.Burst * Token }

// perSecond is the units that refill in one second.
func (a Allowance) perSecond() int64 { return a.RequestsPerMinute * 1_000_000 }

// The three readings: which levels explain the value of a header.

func (a Allowance) readRemaining(n int64) levels {
	if n > a.Burst+1_000_000 { // far outside, and n tokens might not fit
		return levels{math.MaxInt64, math.MaxInt64}
	}
	return levels{n * Token, n*Token + Token - 1}
}

func (a Allowance) readReset(seconds int64) levels { return a.readWait(a.full(), seconds) }

func (a Allowance) readRetryAfter(seconds int64) levels {
	l := a.readWait(Token, seconds)
	l.hi = min(l.hi, Token-1)
	return l
}

// readWait gives the levels from which the bucket comes up to want in so many
// seconds, rounded up.
func (a Allowance) readWait(want, seconds int64) levels {
	if seconds == 0 {
		return levels{want, math.MaxInt64}
	}
	if seconds > math.MaxInt64/4/a.perSecond() {
		return levels{math.MinInt64, math.MinInt64}
	}
	return levels{want - seconds*a.perSecond(), want - (seconds-1)*a.perSecond() - 1}
}

// The same three, the other way round: which values some level in l explains.

type values struct{ lo, hi int64 }

func (v values) has(n int64) bool { return v.lo <= n && n <= v.hi }

func (v values) String() string {
	if v.lo == v.hi {
		return fmt.Sprint(v.lo)
	}
	return fmt.Sprintf("%d to %d", v.lo, v.hi)
}

func (l levels) remaining() values { return values{l.lo / Token, l.hi / Token} }

func (a Allowance) reset(l levels) values {
	return values{roundUp(a.full()-l.hi, a.perSecond()), roundUp(a.full()-l.lo, a.perSecond())}
}

func (a Allowance) retryAfter(l levels) values {
	return values{max(1, roundUp(Token-l.hi, a.perSecond())), max(1, roundUp(Token-l.lo, a.perSecond()))}
}

// String renders l for people, in tokens: the lower end rounded down to a
// thousandth, the upper end up.
func (l levels) String() string {
	lo, hi := floorDiv(l.lo, Token/1000), roundUp(l.hi, Token/1000)
	unit := "tokens"
	if hi <= 1000 {
		unit = "of a token"
	}
	if l.lo == l.hi && lo == hi {
		if hi == 1000 {
			return "exactly 1 token"
		}
		if lo%1000 == 0 {
			return fmt.Sprintf("exactly %d tokens", lo/1000)
		}
		return fmt.Sprintf("exactly %s %s", thousandths(lo), unit)
	}
	return fmt.Sprintf("%s to %s %s", thousandths(lo), thousandths(hi), unit)
}

func thousandths(n int64) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	return fmt.Sprintf("%s%d.%03d", sign, n/1000, n%1000)
}
