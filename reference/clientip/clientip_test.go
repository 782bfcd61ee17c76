package clientip_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/clientip"
)

// The proxies that tests trust, and one of them as a peer.
var proxies = []string{"10.0.0.0/8", "192.168.1.7", "2001:db8:ffff::/48"}

const proxy = "10.0.0.1:4711"

func trusting(t testing.TB, header string, trusted ...string) clientip.Resolver {
	t.Helper()
	list, err := clientip.ParseTrusted(trusted)
	require.NoError(t, err)
	r, err := clientip.New(clientip.Config{Trusted: list, Header: header})
	require.NoError(t, err)
	return r
}

func lines(name string, values ...string) http.Header {
	h := http.Header{}
	for _, v := range values {
		h.Add(name, v)
	}
	return h
}

// PROXY-1: a peer that is no trusted proxy is the client, whatever it says.
func TestUntrustedPeerIsTheClient(t *testing.T) {
	everything := http.Header{}
	for _, name := range []string{
		"X-Forwarded-For", "X-Real-IP", "True-Client-IP", "CF-Connecting-IP", "X-Originating-IP",
		"X-Remote-IP", "X-Remote-Addr", "X-Forwarded", "Forwarded-For", "X-Client-IP",
		"X-Custom-IP-Authorization", "X-Cluster-Client-IP",
	} {
		everything.Set(name, "198.51.100.66")
	}
	everything.Set("Forwarded", "for=198.51.100.66")
	for _, header := range []string{"", clientip.XForwardedFor, clientip.Forwarded, clientip.XRealIP} {
		for name, trusted := range map[string][]string{"nobody trusted": nil, "others trusted": proxies} {
			for remote, want := range map[string]string{
				"203.0.113.9:4711":          "203.0.113.9",
				"203.0.113.9":               "203.0.113.9",
				"[2001:db8::9]:4711":        "2001:db8::9",
				"[fe80::9%eth0.100]:4711":   "fe80::9",
				"[::ffff:203.0.113.9]:4711": "203.0.113.9",
				"11.0.0.0:1":                "11.0.0.0", // just outside of a range
				"9.255.255.255:1":           "9.255.255.255",
				"192.168.1.70:1":            "192.168.1.70", // begins with a trusted text
			} {
				t.Run(fmt.Sprint(header, " ", name, " ", remote), func(t *testing.T) {
					require.Equal(t, want, trusting(t, header, trusted...).Of(remote, everything).String())
				})
			}
		}
	}
}

// PROXY-2 to PROXY-4 on X-Forwarded-For; empty: the peer, which is the proxy.
func TestXForwardedFor(t *testing.T) {
	for _, tc := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"no header", nil, ""},
		{"one client", []string{"203.0.113.5"}, "203.0.113.5"},
		{"a forged left", []string{"198.51.100.1, 203.0.113.5"}, "203.0.113.5"},
		{"an untrusted hop in the middle", []string{"198.51.100.1, 203.0.113.5, 10.0.0.2"}, "203.0.113.5"},
		{"several trusted hops", []string{"203.0.113.5, 10.0.0.3, 192.168.1.7, 10.0.0.2"}, "203.0.113.5"},
		{"trusted hops of both families", []string{"2001:db8::5, 2001:db8:ffff::1, 10.0.0.2"}, "2001:db8::5"},
		{"all trusted", []string{"10.0.0.9, 10.0.0.8"}, ""},
		{"an edge that appends an address of its own, another each time", []string{"203.0.113.5, 10.77.3.9"}, "203.0.113.5"},
		{"a number of proxies that nobody trusts", []string{"203.0.113.5, 11.77.3.9"}, "11.77.3.9"},
		{"a neighbour of a trusted prefix", []string{"203.0.113.5, 2001:db8:fffe:ffff::1"}, "2001:db8:fffe:ffff::1"},

		{"two lines", []string{"198.51.100.1", "203.0.113.5"}, "203.0.113.5"},
		{"the second trusted", []string{"203.0.113.5", "10.0.0.2"}, "203.0.113.5"},
		{"a line that is empty", []string{"203.0.113.5", ""}, "203.0.113.5"},
		{"empty elements", []string{"203.0.113.5, , ,\t,", " , 10.0.0.2,"}, "203.0.113.5"},

		{"garbage is passed over", []string{"203.0.113.5, unknown, _hidden, 10.0.0.2"}, "203.0.113.5"},
		{"garbage on the left", []string{"evil.example, 203.0.113.50, 10.0.0.1"}, "203.0.113.50"},
		{"garbage alone", []string{"garbage, 23189987, 1.2.3, 1.2.3.4.5, 256.1.1.1, 010.0.0.5, -, 10.0.0.2"}, ""},
		{"the unspecified addresses", []string{"203.0.113.5, 0.0.0.0, ::, ::ffff:0.0.0.0"}, "203.0.113.5"},
		{"a stray quote on the left", []string{`"2.2.2.2, 1.1.1.1`}, "1.1.1.1"},
		{"a quote within", []string{`2.2"2.2, 1.1.1.1`}, "1.1.1.1"},
		{"a quote that opens to the right", []string{`203.0.113.5, "1.1.1.1`}, "203.0.113.5"},
		{"a control character", []string{"203.0.113.5, 198.51.100.1\x00"}, "203.0.113.5"},

		{"spaces and tabs", []string{" \t203.0.113.5 \t, \t10.0.0.2 "}, "203.0.113.5"},
		{"other space is none", []string{"203.0.113.5, \u00a0198.51.100.1"}, "203.0.113.5"},
		{"a port", []string{"203.0.113.5:5555"}, "203.0.113.5"},
		{"a port of a trusted hop", []string{"203.0.113.5:1, 10.0.0.2:2"}, "203.0.113.5"},
		{"no number for a port", []string{"203.0.113.5, 198.51.100.1:http"}, "203.0.113.5"},
		{"six digits for a port", []string{"203.0.113.5, 198.51.100.1:123456"}, "203.0.113.5"},
		{"a colon and no port", []string{"203.0.113.5, 198.51.100.1:"}, "203.0.113.5"},
		{"IPv6", []string{"2001:DB8:0:0::5"}, "2001:db8::5"},
		{"brackets", []string{"[2001:db8::5]"}, "2001:db8::5"},
		{"brackets and a port", []string{"[2001:db8::5]:443"}, "2001:db8::5"},
		{"brackets that do not close", []string{"203.0.113.5, [2001:db8::5"}, "203.0.113.5"},
		{"text after the brackets", []string{"203.0.113.5, [2001:db8::5]443"}, "203.0.113.5"},
		{"a colon after the brackets", []string{"203.0.113.5, [2001:db8::5]:"}, "203.0.113.5"},
		{"quotes", []string{`"203.0.113.5"`}, "203.0.113.5"},
		{"quotes, brackets, spaces and a port", []string{` " [2001:db8::5]:443 " `}, "2001:db8::5"},
		{"a zone", []string{"2001:db8:9::7%rot1"}, "2001:db8:9::7"},
		{"a zone in brackets", []string{"[fe80::1%eth0.100]:80"}, "fe80::1"},
		{"a zone that is empty", []string{"203.0.113.5, fe80::1%"}, "203.0.113.5"},
		{"a zone of IPv4", []string{"203.0.113.5, 198.51.100.1%eth0"}, "203.0.113.5"},
		{"a zone of a trusted hop", []string{"203.0.113.5, 2001:db8:ffff::1%2"}, "203.0.113.5"},
		{"IPv4 in IPv6, dotted", []string{"::ffff:203.0.113.5"}, "203.0.113.5"},
		{"IPv4 in IPv6, hexadecimal", []string{"::ffff:cb00:7105"}, "203.0.113.5"},
		{"IPv4 in IPv6, trusted", []string{"203.0.113.5, ::ffff:10.0.0.2"}, "203.0.113.5"},
		{"IPv6 that ends like IPv4", []string{"2001:db8::203.0.113.5"}, "2001:db8::cb00:7105"},

		{"10,000 on the left", []string{strings.Repeat("198.51.100.1,", 10_000) + "203.0.113.5"}, "203.0.113.5"},
		{"10,000 lines above", append(slices.Repeat([]string{"198.51.100.1"}, 10_000), "203.0.113.5"), "203.0.113.5"},
		{"64 KiB on the left", []string{strings.Repeat("x", 64<<10) + ",203.0.113.5"}, "203.0.113.5"},
		{"10,000 that are trusted", []string{"203.0.113.5, " + strings.Repeat("10.0.0.2,", 10_000)}, ""},
		{"32 entries", []string{"203.0.113.5" + strings.Repeat(", 10.0.0.2", 31)}, "203.0.113.5"},
		{"33 entries", []string{"203.0.113.5" + strings.Repeat(", 10.0.0.2", 32)}, ""},
		{"32 entries over lines", append([]string{"203.0.113.5"}, strings.Split(strings.Repeat("x ", 31), " ")...), "203.0.113.5"},
		{"33 entries over lines", append([]string{"203.0.113.5"}, strings.Split(strings.Repeat("x ", 32), " ")...), ""},
		{"empty ones do not count", []string{"203.0.113.5" + strings.Repeat(",", 100)}, "203.0.113.5"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.want == "" {
				tc.want = "10.0.0.1"
			}
			r := trusting(t, clientip.XForwardedFor, proxies...)
			require.Equal(t, tc.want, r.Of(proxy, lines(clientip.XForwardedFor, tc.lines...)).String())
		})
	}
}

// The same for Forwarded (RFC 7239).
func TestForwarded(t *testing.T) {
	for _, tc := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"IPv4", []string{"for=203.0.113.5"}, "203.0.113.5"},
		{"the name in any case", []string{"For=203.0.113.5;proto=http"}, "203.0.113.5"},
		{"among others", []string{"by=10.0.0.1;for=203.0.113.5;host=a;proto=http"}, "203.0.113.5"},
		{"space around pairs", []string{"by=10.0.0.1 ; for=203.0.113.5 ; host=a"}, "203.0.113.5"},
		{"IPv6 and a port", []string{`for="[2001:db8::5]:80"`}, "2001:db8::5"},
		{"an obfuscated port", []string{`for="203.0.113.5:_p-1.x"`}, "203.0.113.5"},
		{"an obfuscated port with no name", []string{`for=203.0.113.5, for="198.51.100.1:_"`}, "203.0.113.5"},
		{"a port without quotes", []string{"for=203.0.113.5:80"}, "203.0.113.5"},
		{"IPv6 without brackets", []string{"for=198.51.100.1, for=2001:db8::5"}, "2001:db8::5"},
		{"IPv6 without quotes", []string{"for=[2001:db8::5]"}, "2001:db8::5"},
		{"IPv6 without brackets, and perhaps a port", []string{"for=198.51.100.1, for=2001:db8::5:8080"}, "2001:db8::5:8080"},
		{"escaped bytes", []string{`for="\2\03.0.113.\5"`}, "203.0.113.5"},
		{"escapes without end", []string{`for=203.0.113.5, for="` + strings.Repeat(`\1`, 5000) + `"`}, "203.0.113.5"},
		{"unknown and hidden", []string{"for=203.0.113.5, for=unknown, for=_hidden, for=unknown:abc"}, "203.0.113.5"},
		{"a comma in quotes", []string{`for=203.0.113.5;host="a,for=198.51.100.1"`}, "203.0.113.5"},
		{"an element in quotes, such as a host that the client chose", []string{`for=203.0.113.5;host="a,for=198.51.100.1,b"`}, "203.0.113.5"},
		{"a semicolon in quotes", []string{`host="a;for=198.51.100.1;x";for=203.0.113.5`}, "203.0.113.5"},
		{"an escaped quote in quotes", []string{`for=203.0.113.5;host="a\",for=198.51.100.1"`}, "203.0.113.5"},
		{"an escaped backslash in quotes", []string{`for=203.0.113.5;host="a\\", for=10.0.0.2`}, "203.0.113.5"},
		{"a forged left", []string{"for=198.51.100.1, for=203.0.113.5, for=10.0.0.2"}, "203.0.113.5"},
		{"a quote that never closes on the left", []string{`for="198.51.100.1, for="[2001:db8::5]:80"`}, "2001:db8::5"},
		{"an escape on the left", []string{`for="\, for="[2001:db8::5]:80"`}, "2001:db8::5"},
		{"a quote that never closes in another line", []string{`for="198.51.100.1`, "for=203.0.113.5"}, "203.0.113.5"},
		{"two in one element", []string{"for=203.0.113.5, for=198.51.100.1;for=198.51.100.2"}, "203.0.113.5"},
		{"none in one element", []string{"for=203.0.113.5, proto=https;by=198.51.100.1"}, "203.0.113.5"},
		{"a name that merely ends so", []string{"for=203.0.113.5, xfor=198.51.100.1"}, "203.0.113.5"},
		{"no pair at all", []string{"for=203.0.113.5, 198.51.100.1, for, =198.51.100.1, ;;"}, "203.0.113.5"},
		{"empty elements", []string{"for=203.0.113.5,, ,"}, "203.0.113.5"},
		{"all trusted", []string{`for=10.0.0.3, for="[2001:db8:ffff::1]"`}, "10.0.0.1"},
		{"33 entries", []string{"for=203.0.113.5" + strings.Repeat(",for=10.0.0.2", 32)}, "10.0.0.1"},
		{"10,000 on the left", []string{strings.Repeat(`for="198.51.100.1`, 10_000) + ", for=203.0.113.5"}, "203.0.113.5"},
		{"10,000 lines above", append(slices.Repeat([]string{`for="198.51.100.1`}, 10_000), "for=203.0.113.5"), "203.0.113.5"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := trusting(t, "forwarded", proxies...)
			require.Equal(t, tc.want, r.Of(proxy, lines(clientip.Forwarded, tc.lines...)).String())
		})
	}
}

// Peers, hops and clients are of either family, whatever the listener makes of
// IPv4; each client has a pool of its own.
func TestFamilies(t *testing.T) {
	for _, tc := range []struct{ remote, header, want, pool string }{
		{"10.0.0.1:1", "203.0.113.5", "203.0.113.5", "203.0.113.5"},
		{"10.0.0.1:1", "2001:db8::5", "2001:db8::5", "2001:db8::/64"},
		{"[2001:db8:ffff::1]:1", "203.0.113.5", "203.0.113.5", "203.0.113.5"},
		{"[2001:db8:ffff::1]:1", "2001:db8:1::5", "2001:db8:1::5", "2001:db8:1::/64"},
		{"[2001:db8:ffff::1]:1", "203.0.113.5, 10.0.0.2, 2001:db8:ffff::2", "203.0.113.5", "203.0.113.5"},
		{"[2001:db8:ffff::1]:1", "2001:db8::5, 2001:db8:ffff::2, 10.0.0.2", "2001:db8::5", "2001:db8::/64"},
		{"[2001:db8:ffff::1%eth0]:1", "203.0.113.5", "203.0.113.5", "203.0.113.5"},
		{"[::ffff:10.0.0.1]:1", "203.0.113.5", "203.0.113.5", "203.0.113.5"},
		{"[::ffff:10.0.0.1]:1", "::ffff:203.0.113.6", "203.0.113.6", "203.0.113.6"},
		{"[::ffff:203.0.113.7]:1", "198.51.100.1", "203.0.113.7", "203.0.113.7"},
		{"[::ffff:203.0.113.8]:1", "198.51.100.1", "203.0.113.8", "203.0.113.8"},
		{"[2001:db8:fffe::1]:1", "198.51.100.1", "2001:db8:fffe::1", "2001:db8:fffe::/64"},
	} {
		t.Run(tc.remote+" "+tc.header, func(t *testing.T) {
			r := trusting(t, "", proxies...)
			a := r.Of(tc.remote, lines(clientip.XForwardedFor, tc.header))
			require.Equal(t, tc.want, a.String())
			require.Equal(t, tc.pool, r.Pool(a))
		})
	}
}

// PROXY-5: proxies hand the client's own copies of the other headers through.
func TestOneHeaderIsHonoured(t *testing.T) {
	said := map[string][2]string{ // value, client
		clientip.XForwardedFor: {"203.0.113.1", "203.0.113.1"},
		clientip.Forwarded:     {"for=203.0.113.2", "203.0.113.2"},
		clientip.XRealIP:       {"203.0.113.3", "203.0.113.3"},
	}
	for honoured, own := range said {
		t.Run(honoured, func(t *testing.T) {
			r := trusting(t, honoured, proxies...)
			all, others := http.Header{}, http.Header{}
			for name, s := range said {
				all.Set(name, s[0])
				if name != honoured {
					others.Set(name, s[0])
				}
			}
			require.Equal(t, own[1], r.Of(proxy, all).String())
			require.Equal(t, "10.0.0.1", r.Of(proxy, others).String(), "absent: the peer, not another header")
		})
	}
}

// Trusted proxies are compared as addresses, not as text.
func TestTrusts(t *testing.T) {
	r := trusting(t, "", "0:0:0:0:0:0:0:1", "::ffff:10.0.0.0/104", "10.1.0.0/16", "10.1.2.3", "172.16.0.0/12",
		"172.16.0.0/16", "2001:db8::/32", "2001:db8:5::/48", "203.0.113.7")
	for text, want := range map[string]bool{
		"::1": true, "::2": false,
		"10.0.0.0": true, "10.1.2.3": true, "10.255.255.255": true, "9.255.255.255": false, "11.0.0.0": false,
		"::ffff:10.42.0.1": true, "::ffff:11.0.0.1": false,
		"172.15.255.255": false, "172.16.0.1": true, "172.31.255.255": true, "172.32.0.0": false,
		"2001:db8:5::1": true, "2001:db8:ffff::1%eth0": true, "2001:db9::": false,
		"203.0.113.6": false, "203.0.113.7": true, "203.0.113.8": false,
	} {
		require.Equal(t, want, r.Trusts(netip.MustParseAddr(text)), text)
	}
	require.False(t, r.Trusts(netip.Addr{}))
	require.False(t, clientip.Resolver{}.Trusts(netip.MustParseAddr("::1")), "the default trusts nobody")
}

// A listener on a unix socket has peers without an address: one known pool for
// all of them, and no header is believed.
func TestPeerWithoutAddress(t *testing.T) {
	r := trusting(t, "", proxies...)
	for _, remote := range []string{"", "@", "/run/x.sock", "a name:80", "0.0.0.0:80"} {
		a := r.Of(remote, lines(clientip.XForwardedFor, "203.0.113.5"))
		require.False(t, a.IsValid(), remote)
		require.Equal(t, clientip.NoAddress, r.Pool(a))
		require.Empty(t, r.Logged(a))
	}
}

func TestClientOfARequest(t *testing.T) {
	req := httptest.NewRequest(http.MethodPost, "/", nil)
	req.RemoteAddr = "[::ffff:10.0.0.1]:80"
	req.Header.Set("x-forwarded-for", "203.0.113.5")
	r := trusting(t, "", proxies...)
	require.Equal(t, "203.0.113.5", r.Client(req).String())
	require.Equal(t, "10.0.0.1", clientip.Peer(req).String())
	require.True(t, r.Trusts(clientip.Peer(req)))
}

func TestPoolAndLog(t *testing.T) {
	for _, tc := range []struct {
		addr                  string
		bits                  int
		pool, prefix, logFull string
	}{
		{"203.0.113.5", 0, "203.0.113.5", "203.0.113.0/24", "203.0.113.5"},
		{"203.0.113.5", 32, "203.0.113.5", "203.0.113.0/24", "203.0.113.5"},
		{"::ffff:203.0.113.5", 0, "203.0.113.5", "203.0.113.0/24", "203.0.113.5"},
		{"2001:db8:1:2:3:4:5:6", 0, "2001:db8:1:2::/64", "2001:db8:1:2::/64", "2001:db8:1:2:3:4:5:6"},
		{"2001:db8:1:2:3:4:5:6%eth0", 48, "2001:db8:1::/48", "2001:db8:1:2::/64", "2001:db8:1:2:3:4:5:6"},
		{"2001:db8:1:2ff::6", 56, "2001:db8:1:200::/56", "2001:db8:1:2ff::/64", "2001:db8:1:2ff::6"},
		{"2001:db8::6", 128, "2001:db8::6/128", "2001:db8::/64", "2001:db8::6"},
	} {
		t.Run(fmt.Sprint(tc.addr, " ", tc.bits), func(t *testing.T) {
			a := netip.MustParseAddr(tc.addr)
			for precision, want := range map[clientip.Precision]string{
				"": tc.prefix, clientip.LogNone: "", clientip.LogPrefix: tc.prefix, clientip.LogFull: tc.logFull,
			} {
				r, err := clientip.New(clientip.Config{IPv6Prefix: tc.bits, Logged: precision})
				require.NoError(t, err)
				require.Equal(t, tc.pool, r.Pool(a))
				require.Equal(t, want, r.Logged(a), "%q", precision)
			}
		})
	}
}
