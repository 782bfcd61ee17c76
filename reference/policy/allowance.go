package policy

import "fmt"

// Dimension is one of the three numbers of an allowance.
type Dimension string

// The three dimensions, by the names that entitlements and overrides use.
const (
	RequestsPerMinute Dimension = "requests-per-minute"
	Burst             Dimension = "burst"
	Concurrency       Dimension = "concurrency"
)

// Dimensions lists all three in their usual order.
func Dimensions() []Dimension { return []Dimension{RequestsPerMinute, Burst, Concurrency} }

// Max is the largest value the contract allows in this dimension; the smallest
// is 1 in each. It is 0 for an unknown dimension.
func (d Dimension) Max() int64 {
	switch d {
	case RequestsPerMinute, Burst:
		return 1_000_000
	case Concurrency:
		return 100_000
	}
	return 0
}

// Check refuses what is none of the three dimensions.
func (d Dimension) Check() error {
	if d.Max() == 0 {
		return fmt.Errorf("%q is none of the dimensions %v", d, Dimensions())
	}
	return nil
}

// Allowance is what one user may do: a sustained rate, a burst and a
// concurrency cap, each positive and in range. It has one constructor,
// [NewAllowance]; the zero value is no allowance and whoever admits refuses it.
// Allowances compare with ==.
type Allowance struct {
	rpm, burst, concurrency int32
}

// NewAllowance returns the allowance of requests per minute, burst in tokens
// and concurrency in requests in flight. It fails, naming the dimension, when a
// value is out of the contract's range; there is no value for "unlimited".
func NewAllowance(rpm, burst, concurrency int64) (Allowance, error) {
	for _, v := range []struct {
		d Dimension
		n int64
	}{{RequestsPerMinute, rpm}, {Burst, burst}, {Concurrency, concurrency}} {
		if v.n < 1 || v.n > v.d.Max() {
			return Allowance{}, fmt.Errorf("%s %d is out of range: 1 to %d", v.d, v.n, v.d.Max())
		}
	}
	return Allowance{rpm: int32(rpm), burst: int32(burst), concurrency: int32(concurrency)}, nil
}

// RequestsPerMinute is the sustained rate.
func (a Allowance) RequestsPerMinute() int64 { return int64(a.rpm) }

// Burst is the capacity of the bucket in tokens.
func (a Allowance) Burst() int64 { return int64(a.burst) }

// Concurrency is the most requests in flight.
func (a Allowance) Concurrency() int64 { return int64(a.concurrency) }

// Of is the value of one dimension, or 0 if d is none.
func (a Allowance) Of(d Dimension) int64 {
	switch d {
	case RequestsPerMinute:
		return a.RequestsPerMinute()
	case Burst:
		return a.Burst()
	case Concurrency:
		return a.Concurrency()
	}
	return 0
}

// IsZero reports whether a was never made by [NewAllowance].
func (a Allowance) IsZero() bool { return a == Allowance{} }

// String renders a as "rate/burst/concurrency".
func (a Allowance) String() string {
	return fmt.Sprintf("%d/%d/%d", a.rpm, a.burst, a.concurrency)
}
