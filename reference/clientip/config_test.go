package clientip_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/clientip"
)

const acceptedProxies = "; accepted: addresses and prefixes, such as 10.0.0.7, 10.0.0.0/8, 2001:db8::/32"

func TestParseTrusted(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.7":             "10.0.0.7/32",
		" 10.0.0.0/8\t":        "10.0.0.0/8",
		"2001:db8::1":          "2001:db8::1/128",
		"2001:db8::/32":        "2001:db8::/32",
		"::ffff:10.0.0.7":      "10.0.0.7/32",
		"::ffff:10.0.0.0/104":  "10.0.0.0/8",
		"::ffff:10.0.0.0/0104": "",
	} {
		got, err := clientip.ParseTrusted([]string{text})
		if want == "" {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, []netip.Prefix{netip.MustParsePrefix(want)}, got, text)
	}
	for text, problem := range map[string]string{
		"":                    "is neither an address nor a prefix",
		"proxy.example":       "is neither an address nor a prefix",
		"10.0.0.0/33":         "is neither an address nor a prefix",
		"10.0.0.7:80":         "is neither an address nor a prefix",
		"[::1]":               "is neither an address nor a prefix",
		"fe80::1%eth0":        "is neither an address nor a prefix",
		"10.0.0.1-10.0.0.9":   "is neither an address nor a prefix",
		"10.0.0.5/8":          "has bits set after the first 8: is 10.0.0.0/8 meant, or the one address?",
		"0.0.0.0/0":           "trusts everybody, so that clients could choose their own address",
		"::/0":                "trusts everybody, so that clients could choose their own address",
		"::ffff:0.0.0.0/96":   "trusts everybody, so that clients could choose their own address",
		"::ffff:128.0.0.0/90": "is only partly IPv4",
	} {
		_, err := clientip.ParseTrusted([]string{"10.0.0.1", text})
		require.EqualError(t, err, clientip.KeyTrusted+`: "`+text+`" `+problem+acceptedProxies)
	}
}

// Each refusal names its setting and what would be taken.
func TestNewRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg  clientip.Config
		want string
	}{
		"a header that is none of the three": {
			clientip.Config{Header: "True-Client-IP"},
			`invoicespec.rate-limit.anonymous.client-header: got "True-Client-IP"; accepted: X-Forwarded-For, Forwarded, X-Real-IP`,
		},
		"two headers": {
			clientip.Config{Header: "X-Forwarded-For, Forwarded"},
			`invoicespec.rate-limit.anonymous.client-header: got "X-Forwarded-For, Forwarded"; accepted: X-Forwarded-For, Forwarded, X-Real-IP`,
		},
		"a provider as one client": {
			clientip.Config{IPv6Prefix: 31},
			"invoicespec.rate-limit.anonymous.ipv6-prefix: 31 is out of range; accepted: 32 to 128",
		},
		"more bits than there are": {
			clientip.Config{IPv6Prefix: 129},
			"invoicespec.rate-limit.anonymous.ipv6-prefix: 129 is out of range; accepted: 32 to 128",
		},
		"a negative prefix": {
			clientip.Config{IPv6Prefix: -64},
			"invoicespec.rate-limit.anonymous.ipv6-prefix: -64 is out of range; accepted: 32 to 128",
		},
		"a precision": {
			clientip.Config{Logged: "half"},
			`invoicespec.rate-limit.anonymous.logged-address: got "half"; accepted: none, prefix, full`,
		},
		"a prefix that is none": {
			clientip.Config{Trusted: []netip.Prefix{{}}},
			`invoicespec.rate-limit.anonymous.trusted-proxies: "invalid Prefix" is no prefix` + acceptedProxies,
		},
		"a prefix with more bits set": {
			clientip.Config{Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.5/8")}},
			`invoicespec.rate-limit.anonymous.trusted-proxies: "10.0.0.5/8" has bits set after the first 8: is 10.0.0.0/8 meant, or the one address?` + acceptedProxies,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := clientip.New(tc.cfg)
			require.EqualError(t, err, tc.want)
			var refusal clientip.Refusal
			require.ErrorAs(t, err, &refusal)
		})
	}
}
