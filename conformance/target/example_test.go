package target_test

import (
	"context"
	"fmt"

	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reference/server"
)

func ExampleOpen() {
	ctx := context.Background()
	s, err := server.Open(ctx, server.Config{Listen: "127.0.0.1:0", Control: "127.0.0.1:0", Clock: control.ClockFrozen})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close(ctx)

	// Most often this comes from ReadFile.
	t, err := target.Open(ctx, target.File{
		BaseURLs:   []string{s.URL()},
		Credential: target.Credential{Header: "Authorization", Template: "Bearer {key}"},
		Operations: target.Operations{Valid: target.Operation{Method: "POST", Path: "/v1/invoice/calculate", Body: invoice}},
		Allowances: map[string]target.Allowance{"free": {RequestsPerMinute: 10, Burst: 10, Concurrency: 2}},
		Can:        target.Can{Control: &target.ControlAddress{URL: s.ControlURL()}},
	}, target.Options{ControlToken: target.NewSecret(s.ControlToken())})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Close()

	u, err := t.Lease(ctx, "free", 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Return(ctx, u)
	e := t.Send(ctx, u, t.Valid())
	fmt.Println(e.Status, "remaining", e.Answer.Remaining, "findings", len(e.Findings))

	held, _ := t.Hold(ctx, u, t.Valid(), target.PlaceEngine)
	e = held.Finish(ctx)
	fmt.Println(e.Status, "remaining", e.Answer.Remaining, "findings", len(e.Findings))
	// Output:
	// 200 remaining 9 findings 0
	// 200 remaining 8 findings 0
}
