package conformance_test

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/wiring"
	"github.com/invoicespec/brimline/reports/record"
)

// onOnePlan is the reference with nothing but one plan.
func onOnePlan(t *testing.T, clock control.ClockMode, a target.Allowance, alter func(*wiring.Parts)) reference {
	const name = "basic"
	plan := policy.Plan{Name: name, Operations: 100_000, Entitlements: map[policy.Dimension]string{
		policy.RequestsPerMinute: strconv.FormatInt(a.RequestsPerMinute, 10),
		policy.Burst:             strconv.FormatInt(a.Burst, 10),
		policy.Concurrency:       strconv.FormatInt(a.Concurrency, 10),
	}}
	r, err := newReferenceOver(server.Transport{H2C: true}, map[string]policy.Plan{name: plan}, clock, nil, alter)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	r.file.Allowances = map[string]target.Allowance{name: a}
	r.file.Can.Process = nil // that has plans of its own
	return r
}

// smallPlans are plans on which tokens are few, or come late, beside the cap.
var smallPlans = map[string]target.Allowance{
	"burst 1, cap 1":  {RequestsPerMinute: 30, Burst: 1, Concurrency: 1},
	"burst 2, cap 5":  {RequestsPerMinute: 30, Burst: 2, Concurrency: 5},
	"burst 5, cap 2":  {RequestsPerMinute: 30, Burst: 5, Concurrency: 2},
	"burst 5, cap 5":  {RequestsPerMinute: 30, Burst: 5, Concurrency: 5},
	"one in a minute": {RequestsPerMinute: 1, Burst: 5, Concurrency: 2},
}

// A bucket that is empty by right is nobody's fault: not the cap's, not anybody
// else's.
func TestSmallPlanAloneIsNotHeldAgainstACorrectServer(t *testing.T) {
	t.Parallel()
	for name, a := range smallPlans {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := conformance.Run(t.Context(), onOnePlan(t, control.ClockFrozen, a, nil).open(t), conformance.Options{Strict: true})
			require.NoError(t, err)
			require.Zero(t, falseAlarms(t, c))
			require.Greater(t, c.Counts.Pass, 30)
		})
	}
}

// The same over plain HTTP, where users were used before and tokens take their time.
// What the plan has no room for is not run, and says what it takes.
func TestSmallPlanAloneOverPlainHTTP(t *testing.T) {
	t.Parallel()
	clauses := []string{"CONC-1", "CONC-3", "CONC-6", "PERMIT-2", "PERMIT-8", "POOL-2", "RATE-4", "RATE-6"}
	for name, tc := range map[string]struct {
		allowance target.Allowance
		want      record.Verdict // of CONC-6
		says      string
	}{
		"room for the cap": {target.Allowance{RequestsPerMinute: 600, Burst: 5, Concurrency: 2}, record.Pass, ""},
		"no room for it":   {target.Allowance{RequestsPerMinute: 600, Burst: 5, Concurrency: 6}, record.NotRun, "needs a plan with burst ≥ 6"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := conformance.Run(t.Context(), onOnePlan(t, "", tc.allowance, nil).open(t), conformance.Options{Clauses: clauses, Strict: true})
			require.NoError(t, err)
			require.Zero(t, falseAlarms(t, c))
			i := slices.IndexFunc(c.Clauses, func(cl record.Clause) bool { return cl.ID == "CONC-6" })
			accepted := []record.Verdict{tc.want}
			if tc.want == record.Pass {
				accepted = append(accepted, record.Inconclusive) // on a machine too busy to tell
			}
			require.Contains(t, accepted, c.Clauses[i].Verdict, "%+v", c.Clauses[i])
			require.Contains(t, c.Clauses[i].Reason, tc.says)
		})
	}
}
