package conformance_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/features"
	"github.com/invoicespec/brimline/reference/server"
)

// exampleTarget opens a target that is described in code: its keys are in memory,
// and no file is read. The server stands for any that listens somewhere.
func exampleTarget(ctx context.Context) (*target.Target, func(), error) {
	s, err := server.Open(ctx, server.Config{Listen: "127.0.0.1:0", Control: "127.0.0.1:0", Clock: control.ClockFrozen, Users: 1})
	if err != nil {
		return nil, nil, err
	}
	users := s.Users()
	ada := users[slices.IndexFunc(users, func(u server.User) bool { return u.Plan == "free" })]
	const path, body = "/v1/invoice/calculate", `{"currency":"EUR","lines":[{"description":"Work","quantity":"1","unitPrice":"9.00","taxRate":"19"}]}`
	t, err := target.Open(ctx, target.File{
		BaseURLs:   []string{s.URL()},
		Credential: target.Credential{Header: "Authorization", Template: "Bearer {key}"},
		Operations: target.Operations{Valid: target.Operation{Method: "POST", Path: path, Body: body}},
		Allowances: map[string]target.Allowance{ada.Plan: {RequestsPerMinute: 10, Burst: 10, Concurrency: 2}},
		Can:        target.Can{Control: &target.ControlAddress{URL: s.ControlURL()}}, // without it, the clock is real
	}, target.Options{
		Keys:         []target.Key{{User: ada.ID, Plan: ada.Plan, Secret: target.NewSecret(ada.Keys[0].Reveal())}},
		ControlToken: target.NewSecret(s.ControlToken()),
	})
	if err != nil {
		s.Close(ctx)
		return nil, nil, err
	}
	return t, func() { t.Close(); s.Close(ctx) }, nil
}

func ExampleRun() {
	ctx := context.Background()
	t, end, err := exampleTarget(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	c, err := conformance.Run(ctx, t, conformance.Options{Clauses: []string{"RATE-1", "HDR-5", "PROXY-2"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.Result)
	for _, cl := range c.Clauses {
		if slices.Contains(c.Selected, cl.ID) {
			fmt.Printf("%s %s %q\n", cl.ID, cl.Verdict, cl.Reason)
		}
	}
	// Output:
	// partial
	// RATE-1 pass ""
	// HDR-5 pass ""
	// PROXY-2 not_run "needs proxy"
}

// A plan is made before anything is sent.
func ExampleNewPlan() {
	ctx := context.Background()
	t, end, err := exampleTarget(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer end()

	p, err := conformance.NewPlan(t, features.FS, []string{"RATE-6", "RATE-7"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range p.Running() {
		fmt.Println(s.Clauses[0], s.Name)
	}
	_, err = conformance.NewPlan(t, features.FS, []string{"PROXY-3"})
	fmt.Println(err)
	// Output:
	// RATE-6 an empty bucket is told before a full cap
	// RATE-6 rate rejections leave the cap as it was
	// RATE-7 a request at an empty bucket leaves a log entry and nothing else
	// nothing to run: the target is out of reach for all of it: needs proxy
}
