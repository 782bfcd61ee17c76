package anonymous_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/clock"
)

// Somebody guesses keys until the pool of the address is empty. A key that was
// seen good passes from the same address all the same.
func ExampleGate_Authenticate() {
	ctx, digester := context.Background(), account.NewDigester()
	alices, err := account.NewKey("pro")
	if err != nil {
		panic(err)
	}
	stored := map[account.Digest]account.Record{digester.Of(alices): {User: "alice"}}

	g := anonymous.New(clock.NewFrozen(time.Unix(0, 0)), anonymous.Config{})
	try := func(k account.Key) string {
		d := digester.Of(k)
		record, err := g.Authenticate(ctx, "203.0.113.7", d, func(context.Context) (account.Record, error) {
			if r, ok := stored[d]; ok {
				return r, nil
			}
			return account.Record{}, account.ErrUnknownKey
		})
		if rejection, ok := errors.AsType[anonymous.Rejection](err); ok {
			return fmt.Sprintf("429, Retry-After: %d", rejection.RetryAfter)
		}
		if err != nil {
			return "401"
		}
		return record.User
	}

	fmt.Println(try(alices))
	var guesses []string
	for range 12 {
		guess, err := account.NewKey("pro")
		if err != nil {
			panic(err)
		}
		guesses = append(guesses, try(guess))
	}
	fmt.Println(strings.Join(guesses[8:], "; "))
	fmt.Println(try(alices))
	// Output:
	// alice
	// 401; 401; 429, Retry-After: 2; 429, Retry-After: 2
	// alice
}
