package reassess_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/reassess"
	"github.com/invoicespec/brimline/reports/record"
)

func Example() {
	dir, err := os.MkdirTemp("", "reassess")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	log := filepath.Join(dir, "access.log")
	if err := os.WriteFile(log, []byte(week(40, 200)), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	evidence, err := reassess.Read(context.Background(), reassess.Files(log), accesslog.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	rules := reassess.Rules()
	rules.Required = nil // whether the engine has room is somebody else's question
	report, err := evidence.Report(context.Background(), reassess.Options{
		Gates: reassess.Gates{Rules: rules}, Plan: "free", Allowance: &record.ReportAllowance{RequestsPerMinute: 10, Burst: 10},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range report.Plans {
		fmt.Printf("%s: %s\n%s\n", p.Plan, p.Verdict.Headline, p.Verdict.Because[0])
	}
	// Output:
	// free: raise to 15 a minute, burst 15
	// At today's 10/10, 10 % of its clients (40 of 400, 95 % interval 7.43–13.33 %) meet a 429 in 7 days of traffic; at 15/15 it would be 0 % (0).
}
