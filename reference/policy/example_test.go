package policy_test

import (
	"fmt"
	"time"

	"github.com/invoicespec/brimline/reference/policy"
)

func ExampleResolve() {
	plans := map[string]policy.Plan{
		"free": {Name: "free", Entitlements: map[policy.Dimension]string{
			policy.RequestsPerMinute: "10", policy.Burst: "10", policy.Concurrency: "2",
		}},
		"broken": {Name: "broken", Entitlements: map[policy.Dimension]string{policy.RequestsPerMinute: "unlimited"}},
	}
	negotiated := []policy.Override{{Dimension: policy.Burst, Value: "25"}}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

	effective, err := policy.Resolve(plans, policy.Subscription{Plan: "free"}, negotiated, now)
	fmt.Println(effective.Allowance, effective.Negotiated[policy.Burst], err)
	_, err = policy.Resolve(plans, policy.Subscription{Plan: "broken"}, nil, now)
	fmt.Println(err)
	// Output:
	// 10/25/2 true <nil>
	// plan "broken": requests-per-minute "unlimited" is no whole number from 1 to 1000000
}
