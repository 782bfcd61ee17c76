package clientip_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/clientip"
)

// FuzzForgedLeft puts any text to the left of what the trusted proxies wrote, in
// the same line and in lines before it: the client stays the same (PROXY-3).
func FuzzForgedLeft(f *testing.F) {
	for _, forged := range []string{
		"", "198.51.100.1", `"`, `\`, `"\`, `for="`, `for="\`, `for=198.51.100.1;host="`, "[", "[2001:db8::1", "%", ",,,",
		"198.51.100.1, for=198.51.100.1", `"a", "`, "for=198.51.100.1;", "\x00", strings.Repeat(`\`, 99) + `"`, strings.Repeat("1.1.1.1,", 99),
	} {
		f.Add(forged, forged, uint8(len(forged)))
	}
	tails := map[string][]string{
		clientip.XForwardedFor: {"203.0.113.5", "203.0.113.5:80, unknown, 10.0.0.2", `"203.0.113.5", [2001:db8:ffff::1]:80`},
		clientip.Forwarded: {
			"for=203.0.113.5", `for="203.0.113.5:80";by="[2001:db8:ffff::1]", for=10.0.0.2`,
			`host="a,for=198.51.100.1,b\"c\\";for=203.0.113.5, for=unknown, for="[2001:db8:ffff::1]:80"`,
		},
		clientip.XRealIP: {"203.0.113.5", "203.0.113.5:80"},
	}
	want := netip.MustParseAddr("203.0.113.5")
	resolvers := map[string]clientip.Resolver{}
	for header := range tails {
		resolvers[header] = trusting(f, header, proxies...)
	}
	f.Fuzz(func(t *testing.T, line, before string, pick uint8) {
		for header, of := range tails {
			tail := of[int(pick)%len(of)]
			r := resolvers[header]
			for _, h := range []http.Header{
				lines(header, line+","+tail), lines(header, line, tail), lines(header, before, line+", "+tail),
				lines(header, before, line, "", tail), lines(header, line+","+before+","+tail, ""),
			} {
				require.Equal(t, want, r.Of(proxy, h), "%q", h)
			}
		}
	})
}

// FuzzForgedLeftOfAnything is the same whatever the proxies wrote, as long as
// they named a client: in lines of their own for every header, and in the same
// line where nothing can be quoted.
func FuzzForgedLeftOfAnything(f *testing.F) {
	for _, written := range []string{
		"203.0.113.5", "203.0.113.5, unknown", `"203.0.113.5`, "for=203.0.113.5", `for=203.0.113.5;host="a`, `x", for="[2001:db8::5]:80"`, ",,203.0.113.5,,",
	} {
		f.Add(`for="198.51.100.1, "`, written, "10.0.0.2")
	}
	resolvers := map[string]clientip.Resolver{}
	for _, header := range []string{clientip.XForwardedFor, clientip.Forwarded, clientip.XRealIP} {
		resolvers[header] = trusting(f, header, proxies...)
	}
	peer := netip.MustParseAddrPort(proxy).Addr()
	f.Fuzz(func(t *testing.T, forged, first, second string) {
		for header, r := range resolvers {
			want := r.Of(proxy, lines(header, first, second))
			if want == peer {
				continue // the walk goes on into what the client wrote
			}
			require.Equal(t, want, r.Of(proxy, lines(header, forged, first, second)))
			require.Equal(t, want, r.Of(proxy, lines(header, forged, forged, first, second)))
			if header != clientip.Forwarded {
				require.Equal(t, want, r.Of(proxy, lines(header, forged+","+first, second)))
			}
		}
	})
}

// FuzzClient reads any header from any peer. The answer is the peer, or a plain
// address that is nobody's proxy; an untrusted peer is always the answer.
func FuzzClient(f *testing.F) {
	for _, remote := range []string{proxy, "203.0.113.9:1", "@", "[fe80::1%a]:1", "::ffff:10.0.0.1"} {
		f.Add(remote, "203.0.113.5, 10.0.0.2", `for="[2001:db8::1%z]:_x";by=a, for=_b`)
	}
	var resolvers []clientip.Resolver
	for _, header := range []string{clientip.XForwardedFor, clientip.Forwarded, clientip.XRealIP} {
		resolvers = append(resolvers, trusting(f, header, proxies...))
	}
	f.Fuzz(func(t *testing.T, remote, first, second string) {
		h := http.Header{}
		for _, header := range []string{clientip.XForwardedFor, clientip.Forwarded, clientip.XRealIP} {
			h.Add(header, first)
			h.Add(header, second)
		}
		peer := clientip.Peer(&http.Request{RemoteAddr: remote})
		for _, r := range resolvers {
			a := r.Of(remote, h)
			if !r.Trusts(peer) {
				require.Equal(t, peer, a)
			}
			if a != peer {
				require.True(t, a.IsValid())
				require.False(t, r.Trusts(a))
			}
			require.Equal(t, a.Unmap().WithZone(""), a)
			require.NotEmpty(t, r.Pool(a))
			if a.IsValid() {
				again := r.Of(a.String(), nil)
				require.Equal(t, a, again, "a client's text is its address")
			}
		}
	})
}

// FuzzParseTrusted takes what it accepts again from its own text, and never lets
// one entry trust everybody.
func FuzzParseTrusted(f *testing.F) {
	for _, text := range []string{"10.0.0.0/8", "10.0.0.7", "::1", "::ffff:10.0.0.0/104", "0.0.0.0/0", "10.0.0.5/8", "fe80::1%a"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := clientip.ParseTrusted([]string{text})
		if err != nil {
			require.ErrorContains(t, err, clientip.KeyTrusted)
			return
		}
		again, err := clientip.ParseTrusted([]string{list[0].String()})
		require.NoError(t, err)
		require.Equal(t, list, again)
		require.Positive(t, list[0].Bits())
		r, err := clientip.New(clientip.Config{Trusted: list})
		require.NoError(t, err)
		require.True(t, r.Trusts(list[0].Addr()))
	})
}
