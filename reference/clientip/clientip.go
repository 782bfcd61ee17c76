// Package clientip says which address a request comes from, given the reverse
// proxies that are trusted. It carries out PROXY-1 to PROXY-5, what an address
// shares its pool with (ANON-2), and how much of one is logged (LOG-2).
//
// Most callers want [New], then [Resolver.Client] and [Resolver.Pool].
//
// A request counts as its peer's unless the peer is a trusted proxy. Then one
// configured header is read from its right end, which the proxies wrote, to the
// left, which anybody can write: trusted hops are skipped, what is no address is
// passed over, and the first address left is the client. Nothing to the left of
// it is even looked at.
package clientip

import (
	"net/http"
	"net/netip"
	"sort"
	"strings"
)

// MaxHops is the most entries of a header that are looked at (PROXY-4).
const MaxHops = 32

// NoAddress is the pool of peers that have no address, such as those of a unix
// socket. Nothing tells them apart, so they share it.
const NoAddress = "no-address"

// Resolver finds the client of a request. Make one with [New].
type Resolver struct {
	trusted    []netip.Prefix // sorted, none within another
	header     string         // in canonical form
	ipv6Prefix int
	logged     Precision
}

// Client is the address of the client that sent r. It is the zero Addr only if
// the peer has no address.
func (r Resolver) Client(req *http.Request) netip.Addr { return r.Of(req.RemoteAddr, req.Header) }

// Of is the client of a request with the header h that a peer at remote sent;
// remote is an address, with or without a port.
func (r Resolver) Of(remote string, h http.Header) netip.Addr {
	peer, ok := parse(remote)
	if !ok || !r.Trusts(peer) {
		return peer
	}
	lines, quoted := h[r.header], r.header == Forwarded
	for i, hops := len(lines)-1, 0; i >= 0; i-- {
		for rest, more := lines[i], true; more; {
			var entry string
			rest, entry, more = cutLast(rest, quoted)
			if entry == "" {
				continue // RFC 9110, section 5.6.1: an empty element is none
			}
			if hops++; hops > MaxHops {
				return peer
			}
			if quoted {
				entry = forwardedFor(entry)
			}
			if a, ok := parse(entry); ok && !r.Trusts(a) {
				return a
			}
		}
	}
	return peer
}

// Trusts reports whether a is a trusted proxy's.
func (r Resolver) Trusts(a netip.Addr) bool {
	a = plain(a)
	after := sort.Search(len(r.trusted), func(i int) bool { return a.Less(r.trusted[i].Addr()) })
	return after > 0 && r.trusted[after-1].Contains(a)
}

// Peer is the address of whoever sent req to us, a proxy or not: the zero Addr
// if it has none.
func Peer(req *http.Request) netip.Addr {
	a, _ := parse(req.RemoteAddr)
	return a
}

// Pool names the pool of attempts that a draws on: an IPv4 address has one of
// its own, an IPv6 address shares that of its prefix, since one host owns all
// addresses in there (ANON-2).
func (r Resolver) Pool(a netip.Addr) string {
	switch a = plain(a); {
	case !a.IsValid():
		return NoAddress
	case a.Is6():
		return cut(a, r.ipv6Prefix)
	}
	return a.String()
}

// Logged is the form in which a goes into the log; empty: not at all.
func (r Resolver) Logged(a netip.Addr) string {
	switch a = plain(a); {
	case !a.IsValid() || r.logged == LogNone:
		return ""
	case r.logged == LogFull:
		return a.String()
	case a.Is4():
		return cut(a, 24)
	}
	return cut(a, 64)
}

// cut is the prefix of a that is bits long, as text.
func cut(a netip.Addr, bits int) string {
	p, _ := a.Prefix(bits) // fails for bits alone, and those were checked
	return p.String()
}

// plain gives every spelling of an address one value: an IPv4 address mapped
// into IPv6 is IPv4, and no zone is left.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// cutLast cuts the last element off a list, trimmed, and says whether there was
// a comma before it. In a header with quoted strings a comma in one is no
// separator. They are followed from the right: whatever somebody wrote further
// left, such as a quote that never closes, cannot reach what a proxy appended.
func cutLast(list string, quoted bool) (rest, element string, more bool) {
	at := strings.LastIndexByte(list, ',')
	if quoted {
		at = lastComma(list)
	}
	if at < 0 {
		return "", trim(list), false
	}
	return list[:at], trim(list[at+1:]), true
}

// lastComma is the place of the last comma outside quoted strings, or -1.
func lastComma(list string) int {
	inside := false
	for i := len(list) - 1; i >= 0; i-- {
		switch list[i] {
		case ',':
			if !inside {
				return i
			}
		case '"':
			if escapes := i - len(strings.TrimRight(list[:i], `\`)); escapes%2 == 0 {
				inside = !inside
			}
		}
	}
	return -1
}
