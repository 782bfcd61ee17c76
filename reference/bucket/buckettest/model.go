// Package buckettest is the token bucket of the contract told a second time, for
// tests to compare with: rational numbers of tokens and unbounded integers, no
// units, no overflow, nothing shared with package bucket. It is written for
// being obviously right, not for being fast.
package buckettest

import "math/big"

// Model is one bucket. The zero value was never seen, so it is full at first.
type Model struct {
	tokens *big.Rat // nil: never seen
	at     int64    // the latest instant so far, in microseconds
	rpm    int64
	burst  int64
}

// Take asks for one token at an instant, in microseconds, under an allowance of
// rpm requests per minute and burst tokens.
func (m *Model) Take(rpm, burst, at int64) bool {
	m.Settle(rpm, burst, at)
	one := big.NewRat(1, 1)
	if m.tokens.Cmp(one) < 0 {
		return false
	}
	m.tokens = new(big.Rat).Sub(m.tokens, one)
	return true
}

// Settle lets time pass under the allowance so far, then changes to the one
// given: the share of the burst that is held stays, rounded down to 1/60,000,000
// of a token.
func (m *Model) Settle(rpm, burst, at int64) {
	if m.tokens == nil {
		m.tokens, m.at, m.rpm, m.burst = big.NewRat(burst, 1), at, rpm, burst
		return
	}
	if at > m.at {
		refill := new(big.Rat).Mul(minutes(m.at, at), big.NewRat(m.rpm, 1))
		m.tokens = least(new(big.Rat).Add(m.tokens, refill), big.NewRat(m.burst, 1))
		m.at = at
	}
	if burst != m.burst {
		scaled := new(big.Rat).Mul(m.tokens, big.NewRat(burst, m.burst))
		m.tokens = new(big.Rat).SetFrac(Floor(new(big.Rat).Mul(scaled, perToken)), perToken.Num())
	}
	m.rpm, m.burst = rpm, burst
}

// SetTokens puts a number of tokens into a bucket that was settled before.
func (m *Model) SetTokens(tokens *big.Rat) { m.tokens = new(big.Rat).Set(tokens) }

// Tokens is what the bucket held when it was last settled.
func (m *Model) Tokens() *big.Rat { return new(big.Rat).Set(m.tokens) }

// Remaining is the whole tokens in it.
func (m *Model) Remaining() int64 { return Floor(m.tokens).Int64() }

// ToToken is the exact microseconds from an instant until one token is there.
func (m *Model) ToToken(at int64) *big.Rat { return m.until(1, at) }

// ToFull is the exact microseconds from an instant until the bucket is full.
func (m *Model) ToFull(at int64) *big.Rat { return m.until(m.burst, at) }

func (m *Model) until(tokens, at int64) *big.Rat {
	missing := new(big.Rat).Sub(big.NewRat(tokens, 1), m.tokens)
	if missing.Sign() <= 0 {
		return new(big.Rat)
	}
	wait := missing.Mul(missing, big.NewRat(60_000_000, m.rpm))
	wait.Add(wait, new(big.Rat).SetInt(span(at, m.at)))
	if wait.Sign() < 0 {
		return new(big.Rat)
	}
	return wait
}

// Floor is x rounded down.
func Floor(x *big.Rat) *big.Int { return new(big.Int).Div(x.Num(), x.Denom()) }

// Ceil is x rounded up.
func Ceil(x *big.Rat) *big.Int {
	up := Floor(x)
	if !x.IsInt() {
		up.Add(up, big.NewInt(1))
	}
	return up
}

var perToken = big.NewRat(60_000_000, 1)

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) <= 0 {
		return a
	}
	return b
}

func span(from, to int64) *big.Int { return new(big.Int).Sub(big.NewInt(to), big.NewInt(from)) }

func minutes(from, to int64) *big.Rat {
	return new(big.Rat).SetFrac(span(from, to), big.NewInt(60_000_000))
}
