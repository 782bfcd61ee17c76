package limiter_test

import (
	"context"
	"fmt"
	"time"

	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
)

// A cap of one: the second request is refused until the first has ended, and has
// spent its token all the same.
func ExampleNewLocal() {
	ctx := context.Background()
	a, err := policy.NewAllowance(60, 20, 1)
	if err != nil {
		panic(err)
	}
	l := limiter.NewLocal(clock.NewFrozen(time.Unix(0, 0)), limiter.Config{})
	ask := func(id string) {
		d, err := l.Admit(ctx, "user-1", a, id)
		if err != nil {
			panic(err)
		}
		fmt.Println(d.Order, d.Outcome, d.Remaining())
	}
	ask("request-a")
	ask("request-b")
	if err := l.Release(ctx, "user-1", "request-a"); err != nil {
		panic(err)
	}
	ask("request-c")
	// Output:
	// 1 admitted 19
	// 2 concurrency 18
	// 3 admitted 17
}
