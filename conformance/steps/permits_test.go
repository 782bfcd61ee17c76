package steps

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
)

// A limiter that counts refused requests refuses for the rate where a bucket would
// have a token. That breaks a rule about the rate, and none about the cap: nothing
// got in beside it.
func TestARateRejectionIsNotAboveTheCap(t *testing.T) {
	for name, findings := range map[string][]oracle.Finding{
		"an undue one":    {{Clause: "RATE-2", Field: "status"}},
		"one that is due": nil,
	} {
		t.Run(name, func(t *testing.T) {
			u := &subject{User: &target.User{ID: "u", Bucket: oracle.NewFull(oracle.Allowance{RequestsPerMinute: 30, Burst: 5, Concurrency: 2})}}
			e := exchange{who: u, Exchange: answered("POST", "/v1/invoice/calculate", 429, nil, `{"errorCode":"`+contract.CodeRateLimited+`"}`)}
			e.Findings = findings
			s := &Scenario{suite: &Suite{}, clause: contract.Clause{ID: "PERMIT-8"}, they: []*subject{u}}
			require.ErrorIs(t, s.aboveTheCap(t.Context(), "CONC-6", e, 2), ErrInconclusive)
			require.Empty(t, s.found)
		})
	}
}
