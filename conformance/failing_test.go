package conformance_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/invoice"
	"github.com/invoicespec/brimline/reference/wiring"
	"github.com/invoicespec/brimline/reports/record"
)

// brittleEngine fails whatever is in Swiss francs.
type brittleEngine struct{ httpapi.Engine }

func (e brittleEngine) Calculate(ctx context.Context, in invoice.Invoice) (invoice.Result, error) {
	if in.Currency.Code == "CHF" {
		return invoice.Result{}, errors.New("no francs here")
	}
	return e.Engine.Calculate(ctx, in)
}

// An operation that is declared to fail shows without any control what the engine's
// failures do; one that does not fail as declared shows nothing.
func TestADeclaredFailure(t *testing.T) {
	for name, tc := range map[string]struct {
		currency string
		expect   int64
		want     record.Verdict
		reason   string
	}{
		"that fails":          {"CHF", 500, record.Pass, ""},
		"that succeeds":       {"EUR", 0, record.SetupFailed, "was answered with 200"},
		"with another status": {"CHF", 502, record.SetupFailed, "operations.failing.expect says 502"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, "", func(p *wiring.Parts) { p.Engine = brittleEngine{p.Engine} })
			r.file.Operations.Failing = &target.Operation{Method: http.MethodPost, Path: "/v1/invoice/calculate", Expect: tc.expect,
				Body: strings.Replace(sample, "EUR", tc.currency, 1)}
			tgt := r.open(t)
			require.True(t, tgt.Has(contract.NeedFail))
			require.False(t, tgt.Has(contract.NeedEngine))
			c, err := conformance.Run(t.Context(), tgt, conformance.Options{Clauses: []string{"RATE-4"}})
			require.NoError(t, err)
			seen := false
			for _, cl := range c.Clauses {
				for _, s := range cl.Scenarios {
					if cl.ID == "RATE-4" && strings.Contains(s.Name, "engine fails") {
						seen = true
						require.Equal(t, tc.want, s.Verdict, "%s %+v", s.Reason, s.Findings)
						require.Contains(t, s.Reason, tc.reason)
					}
				}
			}
			require.True(t, seen)
		})
	}
}
