package conformance_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reference/clientip"
	"github.com/invoicespec/brimline/reference/wiring"
	"github.com/invoicespec/brimline/reports/record"
)

// A deployment that reads another header keeps PROXY-* as well. One whose header
// names a single address is not asked what only a list can show.
func TestOtherClientHeaders(t *testing.T) {
	clauses := []string{"ANON-2", "PROXY-1", "PROXY-2", "PROXY-3", "PROXY-4", "PROXY-5", "ERR-5"}
	for header, told := range map[string][]string{
		target.Forwarded: clauses,
		target.XRealIP:   {"ANON-2", "PROXY-1", "PROXY-5", "ERR-5"},
	} {
		t.Run(header, func(t *testing.T) {
			t.Parallel()
			clients, err := clientip.New(clientip.Config{Header: header, Trusted: []netip.Prefix{netip.MustParsePrefix("127.0.9.0/24")}})
			require.NoError(t, err)
			r := start(t, control.ClockFrozen, func(p *wiring.Parts) { p.Clients = clients })
			r.file.Can.Process, r.file.Can.Proxy.Header = nil, header
			c, err := conformance.Run(t.Context(), r.open(t), conformance.Options{Clauses: clauses})
			require.NoError(t, err)
			for _, cl := range c.Clauses {
				switch {
				case slices.Contains(told, cl.ID):
					require.Equal(t, record.Pass, cl.Verdict, "%s: %s %+v", cl.ID, cl.Reason, cl.Scenarios)
				case slices.Contains(clauses, cl.ID):
					require.Contains(t, []record.Verdict{record.Pass, record.NotRun}, cl.Verdict, "%s: %s %+v", cl.ID, cl.Reason, cl.Scenarios)
					require.Contains(t, cl.Reason, "names one address", cl.ID)
				default:
					require.Equal(t, record.NotRun, cl.Verdict, "%s: %s %+v", cl.ID, cl.Reason, cl.Scenarios)
				}
			}
		})
	}
}
