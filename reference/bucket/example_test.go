package bucket_test

import (
	"fmt"

	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/policy"
)

// Ten a minute, burst two: empty after two requests, and a token every six seconds.
func ExampleState_Take() {
	a, err := policy.NewAllowance(10, 2, 1)
	if err != nil {
		panic(err)
	}
	var state bucket.State
	for _, now := range []bucket.Instant{0, 0, 0, 5_999_999, 6_000_000} {
		var ok bool
		state, ok = state.Take(a, now)
		fmt.Println(ok, state.Remaining(), state.ToToken(now))
	}
	// Output:
	// true 1 0
	// true 0 6000000
	// false 0 6000000
	// false 0 1
	// true 0 6000000
}
