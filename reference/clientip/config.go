package clientip

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// The headers that a trusted proxy may name the client in.
const (
	XForwardedFor = "X-Forwarded-For"
	Forwarded     = "Forwarded" // RFC 7239
	XRealIP       = "X-Real-IP"
)

// Precision is how much of an address is logged.
type Precision string

// The precisions.
const (
	LogNone   Precision = "none"
	LogPrefix Precision = "prefix" // /24 or /64
	LogFull   Precision = "full"
)

// The names of the settings, which refusals begin with.
const (
	KeyTrusted    = "invoicespec.rate-limit.anonymous.trusted-proxies"
	KeyHeader     = "invoicespec.rate-limit.anonymous.client-header"
	KeyIPv6Prefix = "invoicespec.rate-limit.anonymous.ipv6-prefix"
	KeyLogged     = "invoicespec.rate-limit.anonymous.logged-address"
)

// The prefix lengths that make sense for one client: a provider has a /32, and
// what is shorter would put strangers into one pool.
const (
	MinIPv6Prefix     = 32
	MaxIPv6Prefix     = 128
	DefaultIPv6Prefix = 64
)

// Config says whom to believe. The zero value trusts nobody, and takes the
// default for each other field.
type Config struct {
	Trusted    []netip.Prefix // proxies; see [ParseTrusted]
	Header     string         // the one that the proxies write; empty: [XForwardedFor]
	IPv6Prefix int            // bits that addresses of one pool share; 0: 64
	Logged     Precision      // empty: [LogPrefix]
}

// Refusal is a setting that makes no sense.
type Refusal struct{ Key, Problem, Accepted string }

func (r Refusal) Error() string { return r.Key + ": " + r.Problem + "; accepted: " + r.Accepted }

// New returns the resolver for a configuration, or a [Refusal].
func New(cfg Config) (Resolver, error) {
	r := Resolver{
		header:     http.CanonicalHeaderKey(cmp.Or(cfg.Header, XForwardedFor)),
		ipv6Prefix: cmp.Or(cfg.IPv6Prefix, DefaultIPv6Prefix),
		logged:     cmp.Or(cfg.Logged, LogPrefix),
	}
	known := []string{XForwardedFor, Forwarded, XRealIP}
	if !slices.ContainsFunc(known, func(h string) bool { return http.CanonicalHeaderKey(h) == r.header }) {
		return Resolver{}, Refusal{KeyHeader, fmt.Sprintf("got %q", cfg.Header), strings.Join(known, ", ")}
	}
	if r.ipv6Prefix < MinIPv6Prefix || r.ipv6Prefix > MaxIPv6Prefix {
		return Resolver{}, Refusal{KeyIPv6Prefix, fmt.Sprintf("%d is out of range", cfg.IPv6Prefix),
			fmt.Sprintf("%d to %d", MinIPv6Prefix, MaxIPv6Prefix)}
	}
	if !slices.Contains([]Precision{LogNone, LogPrefix, LogFull}, r.logged) {
		return Resolver{}, Refusal{KeyLogged, fmt.Sprintf("got %q", cfg.Logged), "none, prefix, full"}
	}
	trusted := make([]netip.Prefix, 0, len(cfg.Trusted))
	for _, p := range cfg.Trusted {
		p, problem := proxies(p)
		if problem != "" {
			return Resolver{}, refuseTrusted(p.String(), problem)
		}
		trusted = append(trusted, p)
	}
	r.trusted = disjoint(trusted)
	return r, nil
}

// ParseTrusted reads a list of trusted proxies: addresses and CIDR prefixes.
// Its error is a [Refusal] that names the entry.
func ParseTrusted(list []string) ([]netip.Prefix, error) {
	parsed := make([]netip.Prefix, 0, len(list))
	for _, text := range list {
		p, err := parsePrefix(trim(text))
		if err != nil {
			return nil, refuseTrusted(text, "is neither an address nor a prefix")
		}
		p, problem := proxies(p)
		if problem != "" {
			return nil, refuseTrusted(text, problem)
		}
		parsed = append(parsed, p)
	}
	return parsed, nil
}

func parsePrefix(text string) (netip.Prefix, error) {
	if strings.Contains(text, "/") {
		return netip.ParsePrefix(text)
	}
	a, err := netip.ParseAddr(text)
	if err == nil && a.Zone() != "" {
		err = fmt.Errorf("%s has a zone", text)
	}
	return netip.PrefixFrom(a, a.BitLen()), err
}

// proxies is a prefix in the form that addresses are compared with, or what is
// wrong with it.
func proxies(p netip.Prefix) (netip.Prefix, string) {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	switch {
	case !p.IsValid():
		return p, "is no prefix"
	case p.Bits() == 0:
		return p, "trusts everybody, so that clients could choose their own address"
	case p.Addr().Is4In6():
		return p, "is only partly IPv4"
	case p != p.Masked():
		return p, fmt.Sprintf("has bits set after the first %d: is %s meant, or the one address?", p.Bits(), p.Masked())
	}
	return p, ""
}

// disjoint sorts prefixes and drops those within another, so that one binary
// search finds the only one that can contain an address.
func disjoint(list []netip.Prefix) []netip.Prefix {
	slices.SortFunc(list, netip.Prefix.Compare)
	kept := list[:0]
	for _, p := range list {
		if len(kept) == 0 || !kept[len(kept)-1].Overlaps(p) {
			kept = append(kept, p)
		}
	}
	return kept
}

func refuseTrusted(text, problem string) error {
	return Refusal{KeyTrusted, fmt.Sprintf("%q %s", text, problem),
		"addresses and prefixes, such as 10.0.0.7, 10.0.0.0/8, 2001:db8::/32"}
}
