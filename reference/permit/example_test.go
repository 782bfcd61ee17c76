package permit_test

import (
	"fmt"

	"github.com/invoicespec/brimline/reference/permit"
)

func Example() {
	table := permit.New()
	fmt.Println(table.Take("user-1", "request-a", 1))
	fmt.Println(table.Take("user-1", "request-b", 1))
	fmt.Println(table.Release("user-1", "request-a"))
	fmt.Println(table.Release("user-1", "request-a"))
	fmt.Println(table.Take("user-1", "request-b", 1))
	// Output:
	// 0 true
	// 1 false
	// true
	// false
	// 0 true
}
