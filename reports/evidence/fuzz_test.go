package evidence

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/internal/strictcsv"
)

func fuzz(f *testing.F, columns strictcsv.Columns, into func() func(strictcsv.Row) error) {
	header := strings.Join(append(columns.Required, columns.Optional...), ",")
	f.Fuzz(func(t *testing.T, text string) {
		err := strictcsv.From("t.csv", strings.NewReader(header+"\n"+text), columns, into())
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			require.True(t, strings.HasPrefix(err.Error(), "t.csv"))
		}
	})
}

func FuzzUsage(f *testing.F) {
	f.Add("a,2026-01-01,1,2")
	fuzz(f, usageColumns(), func() func(strictcsv.Row) error { return usageInto(new([]Usage)) })
}

func FuzzTickets(f *testing.F) {
	f.Add("T-1,a,2026-01-01,\"429 from\n192.0.2.1\"")
	fuzz(f, ticketColumns(), func() func(strictcsv.Row) error { return ticketsInto(new([]Ticket)) })
}

func FuzzPrices(f *testing.F) {
	f.Add("free,0,EUR,month,100")
	fuzz(f, priceColumns(), func() func(strictcsv.Row) error { return pricesInto(new([]Listed)) })
}

func FuzzMasked(f *testing.F) {
	f.Add("from 192.0.2.1 to acme", "acme")
	f.Fuzz(func(t *testing.T, text, user string) {
		got := Masked(text, user)
		require.LessOrEqual(t, len([]rune(got)), mostSymptom+1)
		require.NotContains(t, got, "\n")
		for _, w := range strings.Fields(got) {
			_, err := netip.ParseAddr(w)
			require.Error(t, err)
		}
	})
}
