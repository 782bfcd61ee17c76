package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/reference/fault"
	"github.com/invoicespec/brimline/reports/record"
)

// One cause is told as what it is: what follows from it is no failure of other
// clauses, and users who may suffer from it are lent to nobody else.
func TestOneCauseBreaksNoOtherClause(t *testing.T) {
	t.Parallel()
	clauses := []string{"CONC-1", "CONC-2", "CONC-3", "CONC-4", "CONC-6", "ERR-3", "HDR-3", "HDR-9", "PERMIT-2", "PERMIT-3", "PERMIT-7", "PERMIT-8", "POOL-2", "RATE-1", "RATE-4", "RATE-6", "SCOPE-4"}
	for name, tc := range map[string]struct {
		fails string
		may   []string // what is true of it as well
	}{
		"leak-on-disconnect-upload": {"PERMIT-7", []string{"PERMIT-8"}},
		"cap-plus-one":              {"CONC-1", []string{"CONC-6"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrong, err := fault.ByName(name)
			require.NoError(t, err)
			c, err := conformance.Run(t.Context(), start(t, "", wrong.Apply).open(t), conformance.Options{Clauses: clauses, Strict: true})
			require.NoError(t, err)
			for _, cl := range c.Clauses {
				switch {
				case cl.ID == tc.fails:
					require.Equal(t, record.Fail, cl.Verdict, "%+v", cl)
				case cl.Verdict == record.Fail:
					require.Contains(t, tc.may, cl.ID, "%+v", cl.Scenarios)
				}
			}
		})
	}
}
