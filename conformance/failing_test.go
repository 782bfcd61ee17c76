package conformance_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/wiring"
	"github.com/invoicespec/brimline/reports/record"
)

// A server that is short of processors, so that its engine is never done in time,
// still gives operations back.
func TestTimeoutsAreNotHeldAgainstOperations(t *testing.T) {
	t.Parallel()
	r := start(t, control.ClockFrozen, func(p *wiring.Parts) { p.Bounds.Engine = time.Nanosecond })
	c, err := conformance.Run(t.Context(), r.open(t), conformance.Options{Clauses: []string{"LOG-7"}, Strict: true})
	require.NoError(t, err)
	seen := 0
	for _, cl := range c.Clauses {
		for _, sc := range cl.Scenarios {
			if strings.HasSuffix(sc.Name, "gives its operation back") {
				seen++
				require.Equal(t, record.Inconclusive, sc.Verdict, "%s %+v", sc.Name, sc.Findings)
			}
		}
	}
	require.Equal(t, 4, seen)
}
