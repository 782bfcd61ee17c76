package clientip_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/clientip"
)

// big is 64 KiB of what somebody might send to make the walk dear.
func big(piece string) string { return strings.Repeat(piece, 64<<10/len(piece)) }

var loads = []struct{ name, header, value string }{
	{"one", clientip.XForwardedFor, "203.0.113.5"},
	{"three hops", clientip.XForwardedFor, "203.0.113.5, 10.0.0.3:80, 10.0.0.2"},
	{"forwarded", clientip.Forwarded, `for="[2001:db8::5]:80";proto=https, for=10.0.0.2`},
	{"10,000 entries", clientip.XForwardedFor, strings.Repeat("198.51.100.1:80,", 10_000) + "203.0.113.5"},
	{"64 KiB trusted", clientip.XForwardedFor, big("10.0.0.2,")},
	{"64 KiB words", clientip.XForwardedFor, big("unknown,")},
	{"64 KiB of digits", clientip.XForwardedFor, big("1")},
	{"64 KiB of digits in commas", clientip.XForwardedFor, big("1.2.3.,")},
	{"64 KiB of zones", clientip.XForwardedFor, big("fe80::0%x0,") + "::%" + big("z")},
	{"64 KiB of commas", clientip.XForwardedFor, big(",")},
	{"64 KiB of quotes", clientip.Forwarded, big(`"`)},
	{"64 KiB of escapes", clientip.Forwarded, `for="` + big(`\"`) + `"`},
	{"64 KiB of pairs", clientip.Forwarded, big("a=b;")},
}

// BenchmarkClient is one request from a trusted proxy, told who the client is.
func BenchmarkClient(b *testing.B) {
	for _, l := range loads {
		b.Run("header="+strings.ReplaceAll(l.name, " ", "-"), func(b *testing.B) {
			r, h := trusting(b, l.header, proxies...), lines(l.header, l.value)
			b.ReportAllocs()
			for b.Loop() {
				r.Of(proxy, h)
			}
		})
	}
}

// A long header costs no more memory than the entries that are walked: at most
// an error for each.
func TestLongHeadersAllocateLittle(t *testing.T) {
	for _, l := range loads {
		t.Run(l.name, func(t *testing.T) {
			r, h := trusting(t, l.header, proxies...), lines(l.header, l.value)
			require.LessOrEqual(t, testing.AllocsPerRun(10, func() { r.Of(proxy, h) }), float64(2*clientip.MaxHops))
		})
	}
}
