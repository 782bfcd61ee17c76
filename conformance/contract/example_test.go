package contract_test

import (
	"fmt"
	"net/http"

	"github.com/invoicespec/brimline/conformance/contract"
)

func ExampleParseAnswer() {
	header := http.Header{"Retry-After": {"6"}, "Ratelimit-Remaining": {"0", "0"}}
	body := []byte(`{"requestId":"7f3a","errorCode":"RATE_LIMIT_EXCEEDED","message":"Too many requests."}`)

	a := contract.ParseAnswer(429, header, body)
	fmt.Println(a.Body.ErrorCode.Value)
	fmt.Println("Retry-After:", a.RetryAfter.State, a.RetryAfter.Value)
	fmt.Println("Remaining:", a.Remaining.State)
	fmt.Println("Limit:", a.Limit.State)
	// Output:
	// RATE_LIMIT_EXCEEDED
	// Retry-After: good 6
	// Remaining: doubled
	// Limit: absent
}

func ExampleFindClause() {
	c, _ := contract.FindClause("HDR-5")
	fmt.Println(c.ID, c.Level, c.Needs)
	fmt.Println(c.Sentence)
	// Output:
	// HDR-5 MUST [http]
	// A rate 429 carries Retry-After: the seconds until one token, rounded up, at least 1.
}
