package target

import (
	"fmt"
	"net/netip"

	"github.com/invoicespec/brimline/conformance/oracle"
)

// Anonymous is what one client address may try without a good key.
type Anonymous struct {
	RequestsPerMinute int64 `yaml:"requests-per-minute"`
	Burst             int64 `yaml:"burst"`
	Concurrency       int64 `yaml:"concurrency"`
	IPv6Prefix        int64 `yaml:"ipv6-prefix,omitempty"` // bits of an IPv6 address that share a pool
}

// contracts is the contract's own policy for attempts.
func contracts() Anonymous {
	return Anonymous{RequestsPerMinute: 30, Burst: 10, Concurrency: 5, IPv6Prefix: 64}
}

// Proxy is a sender that the deployment takes for a trusted proxy of its own:
// ourselves, from a certain address.
type Proxy struct {
	From    string   `yaml:"from"`             // address to send from, one of those trusted
	Trusted []string `yaml:"trusted"`          // addresses and prefixes that the deployment trusts, all of them
	Header  string   `yaml:"header,omitempty"` // that it reads; default X-Forwarded-For
}

func (f File) anonymous() Anonymous {
	if f.Anonymous == nil {
		return contracts()
	}
	a := *f.Anonymous
	if a.IPv6Prefix == 0 {
		a.IPv6Prefix = contracts().IPv6Prefix
	}
	return a
}

func (a Anonymous) allowance() oracle.Allowance {
	return oracle.Allowance{RequestsPerMinute: a.RequestsPerMinute, Burst: a.Burst, Concurrency: a.Concurrency}
}

func (p Proxy) header() string {
	if p.Header == "" {
		return XForwardedFor
	}
	return p.Header
}

// parsePrefix reads an address or a prefix.
func parsePrefix(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}

// checkAddresses finds what makes no sense in what a file says of addresses.
func (f File) checkAddresses() *problem {
	if a := f.Anonymous; a != nil {
		for _, n := range []struct {
			key   string
			value int64
			most  int64
		}{
			{"requests-per-minute", a.RequestsPerMinute, 1_000_000}, {"burst", a.Burst, 1_000_000}, {"concurrency", a.Concurrency, 100_000},
		} {
			if n.value < 1 || n.value > n.most {
				return &problem{"anonymous." + n.key, fmt.Sprint(n.value), fmt.Sprintf("1 to %d", n.most)}
			}
		}
		if a.IPv6Prefix != 0 && (a.IPv6Prefix < 32 || a.IPv6Prefix > 128) {
			return &problem{"anonymous.ipv6-prefix", fmt.Sprint(a.IPv6Prefix), "32 to 128"}
		}
	}
	const accepted = "addresses and prefixes, such as 127.64.0.0/10"
	for i, text := range f.Can.Addresses {
		if _, err := parsePrefix(text); err != nil {
			return &problem{fmt.Sprintf("can.addresses[%d]", i), fmt.Sprintf("%q is neither an address nor a prefix", text), accepted}
		}
	}
	p := f.Can.Proxy
	if p == nil {
		return nil
	}
	from, err := netip.ParseAddr(p.From)
	if err != nil {
		return &problem{"can.proxy.from", fmt.Sprintf("%q is no address", p.From), "an address such as 127.0.9.1"}
	}
	read := proxy{}
	for i, text := range p.Trusted {
		prefix, err := parsePrefix(text)
		if err != nil {
			return &problem{fmt.Sprintf("can.proxy.trusted[%d]", i), fmt.Sprintf("%q is neither an address nor a prefix", text), accepted}
		}
		read.trusted = append(read.trusted, prefix)
	}
	if !read.trusts(from) {
		return &problem{"can.proxy.from", p.From + " is none of can.proxy.trusted", "an address that the deployment trusts"}
	}
	switch p.header() {
	case XForwardedFor, Forwarded, XRealIP:
		return nil
	}
	return &problem{"can.proxy.header", fmt.Sprintf("%q", p.Header), "X-Forwarded-For, Forwarded or X-Real-IP"}
}
