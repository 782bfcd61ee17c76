package conformancetest_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/invoicespec/brimline/conformance/conformancetest"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reports/record"
)

// A service on a real clock, of which nothing is known but its plan and one key.
// In a test, conformancetest.Run(t, s, config) does the same and reports one
// subtest per clause and scenario.
func ExampleJudge() {
	s := newService()
	s.runs = true
	s.plans = map[string]target.Allowance{"quick": {RequestsPerMinute: 120, Burst: 3, Concurrency: 2}}
	ada, _ := s.newUser(context.Background(), "quick", 1)

	config := conformancetest.Config{
		Target: target.File{
			Operations: target.Operations{Valid: target.Operation{Method: "POST", Path: "/v1/invoice/draft", Body: `{"lines":[1]}`}},
			Allowances: s.plans,
		},
		Users: []control.User{ada},
	}
	config.Options.Clauses = []string{"RATE-1", "HDR-2", "CONC-1"}
	got, err := conformancetest.Judge(context.Background(), s, config)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range got.Clauses {
		if slices.Contains(got.Selected, c.ID) {
			fmt.Printf("%s %s %q\n", c.ID, c.Verdict, c.Reason)
		}
	}
	// Output:
	// RATE-1 pass ""
	// HDR-2 pass ""
	// CONC-1 not_run "needs hold"
}

// A handler that reads what is sent to it has requests in flight while half of a
// body is there: that is enough for the cap. Keys are sent as the service wants.
func ExampleJudge_inFlight() {
	s := newService()
	s.runs = true
	s.plans = map[string]target.Allowance{"quick": {RequestsPerMinute: 120, Burst: 9, Concurrency: 2}}
	ada, _ := s.newUser(context.Background(), "quick", 1)

	config := conformancetest.Config{
		Target: target.File{
			Credential: target.Credential{Header: "Authorization", Template: "Bearer {key}"},
			Operations: target.Operations{Valid: target.Operation{Method: "POST", Path: "/v1/invoice/draft", Body: `{"lines":[1]}`}},
			Allowances: s.plans,
			Can:        target.Can{StalledUpload: true},
		},
		Users: []control.User{ada},
	}
	config.Options.Clauses = []string{"CONC-1"}
	got, err := conformancetest.Judge(context.Background(), s, config)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range got.Clauses {
		if c.ID == "CONC-1" {
			fmt.Println(c.ID, c.Verdict)
		}
	}
	// Output:
	// CONC-1 pass
}

// With hooks the suite makes its own users, moves the clock instead of waiting,
// and holds requests in flight.
func ExampleJudge_hooks() {
	s := newService()
	got, err := conformancetest.Judge(context.Background(), s, s.config())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(got.Counts.Fail, "fail, more than 40 pass:", got.Counts.Pass > 40)
	for _, c := range got.Clauses {
		if c.ID == "CONC-1" || c.ID == "LOG-1" {
			fmt.Printf("%s %s %q\n", c.ID, c.Verdict, c.Reason)
		}
	}
	// Output:
	// 0 fail, more than 40 pass: true
	// CONC-1 pass ""
	// LOG-1 not_run "needs audit"
}

// The same service, but for seconds that are rounded down.
func ExampleJudge_mistake() {
	s := newService()
	s.wait = roundedDown
	c := s.config()
	c.Options.Clauses = []string{"HDR-4"}
	got, err := conformancetest.Judge(context.Background(), s, c)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range got.Clauses {
		if c.Verdict == record.Fail {
			f := c.Scenarios[0].Findings[0]
			fmt.Printf("%s %s\n%s: expected %s, got %s\n", c.ID, c.Sentence, f.Field, f.Expected, f.Got)
		}
	}
	// Output:
	// HDR-4 RateLimit-Reset is the seconds until the bucket is full, rounded up.
	// RateLimit-Reset: expected 1, got 0
}
