package fault

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/clientip"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/wiring"
)

func clientFaults() []Fault {
	const xff, realIP, forwarded = clientip.XForwardedFor, clientip.XRealIP, clientip.Forwarded
	return []Fault{
		{"anon-one-pool", "ANON-2", "all addresses share one pool", pooling(func(httpapi.Clients, netip.Addr) string { return "everybody" })},
		{"anon-ipv6-each", "ANON-2", "each IPv6 address has a pool of its own", pooling(func(_ httpapi.Clients, a netip.Addr) string { return a.String() })},
		{"anon-ipv6-wide", "ANON-2", "IPv6 addresses share a pool by their /32", pooling(func(c httpapi.Clients, a netip.Addr) string {
			if !a.Is6() || a.Is4In6() {
				return c.Pool(a)
			}
			p, _ := a.Prefix(32) // 32 bits are in range
			return p.String()
		})},

		{"xff-from-anyone", "PROXY-1", "X-Forwarded-For is believed, whoever sends it", fromAnyone(xff)},
		{"realip-from-anyone", "PROXY-1", "X-Real-IP is believed, whoever sends it", fromAnyone(realIP)},
		{"forwarded-from-anyone", "PROXY-1", "Forwarded is believed, whoever sends it", fromAnyone(forwarded)},
		{"true-client-ip-from-anyone", "PROXY-1", "True-Client-IP is believed, whoever sends it", fromAnyone("True-Client-IP")},

		{"xff-never", "PROXY-2", "X-Forwarded-For is ignored, also from a trusted proxy",
			clients(func(_ httpapi.Clients, r *http.Request) netip.Addr { return clientip.Peer(r) })},
		{"xff-no-skip-trusted", "PROXY-2", "the rightmost entry is the client, trusted or not", proxied(xff, func(_ httpapi.Clients, entries []string) netip.Addr {
			return node(entries[len(entries)-1])
		})},
		{"cidr-as-text", "PROXY-2", "an address is trusted if its text begins like that of a trusted range", trusting(xff, func(c httpapi.Clients, a netip.Addr) bool {
			parts := strings.Split(a.String(), ".")
			for i := range parts {
				if len(parts) == 4 && len(parts[i]) > 1 {
					cut := slices.Clone(parts)
					cut[i] = cut[i][:len(cut[i])-1]
					if shorter, err := netip.ParseAddr(strings.Join(cut, ".")); err == nil && c.Trusts(shorter) {
						return true
					}
				}
			}
			return c.Trusts(a)
		})},
		{"cidr-too-wide", "PROXY-2", "the address next to a trusted range is trusted as well", trusting(xff, func(c httpapi.Clients, a netip.Addr) bool {
			return c.Trusts(a) || a.Prev().IsValid() && c.Trusts(a.Prev())
		})},

		{"xff-leftmost", "PROXY-3", "the leftmost entry is the client", proxied(xff, func(_ httpapi.Clients, entries []string) netip.Addr {
			return node(entries[0])
		})},

		{"xff-first-line", "PROXY-4", "of several lines only the first is read", lineOnly(xff, func(lines []string) []string { return lines[:1] })},
		{"xff-last-line", "PROXY-4", "of several lines only the last is read", lineOnly(xff, func(lines []string) []string { return lines[len(lines)-1:] })},
		{"xff-no-trim", "PROXY-4", "spaces around an entry make another client of it", asText(xff, func(entry string) string { return entry })},
		{"xff-port-kept", "PROXY-4", "each port of an address is another client", asText(xff, func(entry string) string {
			return strings.Trim(entry, " \t")
		})},
		{"xff-port-is-garbage", "PROXY-4", "an entry with a port is no address", passingOver(xff, func(entry string) bool { return strings.Count(entry, ":") == 1 })},
		{"xff-quotes-are-garbage", "PROXY-4", "an entry in quotes is no address", passingOver(xff, func(entry string) bool { return strings.Contains(entry, `"`) })},
		{"xff-brackets-are-garbage", "PROXY-4", "an entry in brackets is no address", passingOver(xff, func(entry string) bool { return strings.Contains(entry, "[") })},
		{"xff-mapped-is-ipv6", "PROXY-4", "an IPv4 address mapped into IPv6 is another one", asText(xff, func(entry string) string {
			if a, err := netip.ParseAddr(strings.Trim(entry, " \t")); err == nil && a.Is4In6() {
				return a.String()
			}
			return node(entry).String()
		})},
		{"xff-zone-kept", "PROXY-4", "each zone of an address is another client", asText(xff, func(entry string) string {
			if a, err := netip.ParseAddr(strings.Trim(entry, " \t")); err == nil && a.Zone() != "" {
				return a.String()
			}
			return node(entry).String()
		})},
		{"xff-garbage-identity", "PROXY-4", "an entry that is no address is a client", asText(xff, func(entry string) string {
			if a := node(entry); a.IsValid() {
				return a.String()
			}
			return strings.Trim(entry, " \t")
		})},
		{"xff-garbage-stops", "PROXY-4", "an entry that is no address ends the walk", stopping(xff, func(entry string) bool {
			return entry != "" && !node(entry).IsValid()
		})},
		{"xff-empty-stops", "PROXY-4", "an empty entry ends the walk", stopping(xff, func(entry string) bool { return entry == "" })},

		{"realip-over-xff", "PROXY-5", "X-Real-IP of a trusted proxy counts for more than X-Forwarded-For", beside(realIP, true)},
		{"forwarded-over-xff", "PROXY-5", "Forwarded of a trusted proxy counts for more than X-Forwarded-For", beside(forwarded, true)},
		{"realip-fallback", "PROXY-5", "X-Real-IP of a trusted proxy counts where X-Forwarded-For is absent", beside(realIP, false)},
		{"all-trusted-leftmost", "PROXY-5", "where every entry is trusted, the leftmost one is the client", proxied(xff, func(c httpapi.Clients, entries []string) netip.Addr {
			if slices.ContainsFunc(entries, func(e string) bool { return !c.Trusts(node(e)) }) {
				return netip.Addr{}
			}
			return node(entries[0])
		})},

		{"correlation-from-anyone", "ERR-5", "a request id that anybody sends is logged", correlating(func(httpapi.Clients, netip.Addr) bool { return true })},
		{"correlation-dropped", "ERR-5", "a request id that a trusted proxy sends is not logged", correlating(func(httpapi.Clients, netip.Addr) bool { return false })},
		{"request-id-of-proxy", "ERR-5", "a request id that a trusted proxy sends is taken over",
			before(httpapi.LinkAPILog, func(p *httpapi.Ports, next http.Handler) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					if x := httpapi.From(r.Context()); x.Correlation != "" {
						x.ID = r.Header.Get(contract.HeaderRequestID)
					}
					next.ServeHTTP(w, r)
				}
			})},
	}
}

// another is other answers to who a client is; a nil function is the right one.
type another struct {
	httpapi.Clients
	client func(httpapi.Clients, *http.Request) netip.Addr
	trusts func(httpapi.Clients, netip.Addr) bool
	pool   func(httpapi.Clients, netip.Addr) string
}

func (o another) Client(r *http.Request) netip.Addr {
	if o.client == nil {
		return o.Clients.Client(r)
	}
	return o.client(o.Clients, r)
}

func (o another) Trusts(a netip.Addr) bool {
	if o.trusts == nil {
		return o.Clients.Trusts(a)
	}
	return o.trusts(o.Clients, a)
}

func (o another) Pool(a netip.Addr) string {
	if o.pool == nil {
		return o.Clients.Pool(a)
	}
	return o.pool(o.Clients, a)
}

func clients(client func(httpapi.Clients, *http.Request) netip.Addr) alteration {
	return func(p *wiring.Parts) { p.Clients = another{Clients: p.Clients, client: client} }
}

func pooling(pool func(httpapi.Clients, netip.Addr) string) alteration {
	return func(p *wiring.Parts) { p.Clients = another{Clients: p.Clients, pool: pool} }
}

func correlating(trusts func(httpapi.Clients, netip.Addr) bool) alteration {
	return func(p *wiring.Parts) { p.Clients = another{Clients: p.Clients, trusts: trusts} }
}

// fromAnyone believes a header of a peer that is not trusted.
func fromAnyone(header string) alteration {
	return clients(func(c httpapi.Clients, r *http.Request) netip.Addr {
		if a := node(strings.TrimPrefix(r.Header.Get(header), "for=")); a.IsValid() && !c.Trusts(clientip.Peer(r)) {
			return a
		}
		return c.Client(r)
	})
}

// beside believes another header of a trusted proxy, over the right one or in
// its place.
func beside(header string, over bool) alteration {
	return clients(func(c httpapi.Clients, r *http.Request) netip.Addr {
		if a := node(strings.TrimPrefix(r.Header.Get(header), "for=")); a.IsValid() && c.Trusts(clientip.Peer(r)) &&
			(over || r.Header[clientip.XForwardedFor] == nil) {
			return a
		}
		return c.Client(r)
	})
}

// proxied picks the client among what a trusted proxy says; the zero Addr: as is
// right.
func proxied(header string, pick func(c httpapi.Clients, entries []string) netip.Addr) alteration {
	return clients(func(c httpapi.Clients, r *http.Request) netip.Addr {
		if all := said(r, header); len(all) > 0 && c.Trusts(clientip.Peer(r)) {
			if a := pick(c, all); a.IsValid() {
				return a
			}
		}
		return c.Client(r)
	})
}

// trusting walks as is right, but trusts others as well.
func trusting(header string, trusts func(httpapi.Clients, netip.Addr) bool) alteration {
	return proxied(header, func(c httpapi.Clients, entries []string) netip.Addr {
		for _, e := range slices.Backward(entries) {
			if a := node(e); a.IsValid() && !trusts(c, a) {
				return a
			}
		}
		return netip.Addr{}
	})
}

// stopping ends the walk at some entries, so that the proxy is the client.
func stopping(header string, at func(entry string) bool) alteration {
	return clients(func(c httpapi.Clients, r *http.Request) netip.Addr {
		for _, e := range slices.Backward(said(r, header)) {
			if at(strings.Trim(e, " \t")) {
				return clientip.Peer(r)
			}
			if a := node(e); a.IsValid() && !c.Trusts(a) {
				break
			}
		}
		return c.Client(r)
	})
}

// passingOver does not understand some entries.
func passingOver(header string, garbage func(entry string) bool) alteration {
	return clients(func(c httpapi.Clients, r *http.Request) netip.Addr {
		r = r.Clone(r.Context())
		kept := slices.DeleteFunc(said(r, header), garbage)
		r.Header[header] = []string{strings.Join(kept, ",")}
		return c.Client(r)
	})
}

// lineOnly reads some of a header's lines.
func lineOnly(header string, some func(lines []string) []string) alteration {
	return clients(func(c httpapi.Clients, r *http.Request) netip.Addr {
		if lines := r.Header[header]; len(lines) > 1 {
			r = r.Clone(r.Context())
			r.Header[header] = some(lines)
		}
		return c.Client(r)
	})
}

// asText tells clients behind a trusted proxy apart by a text made of the first
// entry from the right that is neither trusted nor empty. The text travels as the
// zone of an address.
func asText(header string, text func(entry string) string) alteration {
	return func(p *wiring.Parts) {
		p.Clients = another{Clients: p.Clients,
			client: func(c httpapi.Clients, r *http.Request) netip.Addr {
				if c.Trusts(clientip.Peer(r)) {
					for _, e := range slices.Backward(said(r, header)) {
						if strings.Trim(e, " \t") != "" && !c.Trusts(node(e)) && text(e) != (netip.Addr{}).String() {
							return netip.IPv6Unspecified().WithZone(text(e))
						}
					}
				}
				return c.Client(r)
			},
			pool: func(c httpapi.Clients, a netip.Addr) string {
				if zone := a.Zone(); zone != "" {
					return zone
				}
				return c.Pool(a)
			}}
	}
}

// said is the entries of all lines of a header, as they are.
func said(r *http.Request, header string) []string {
	if len(r.Header[header]) == 0 {
		return nil
	}
	return strings.Split(strings.Join(r.Header[header], ","), ",")
}

// node is the address in an entry, with or without a port; the zero Addr: none.
func node(entry string) netip.Addr {
	entry = strings.Trim(entry, " \t\"")
	a, err := netip.ParseAddr(strings.Trim(entry, "[]"))
	if err != nil {
		withPort, err := netip.ParseAddrPort(entry)
		if err != nil {
			return netip.Addr{}
		}
		a = withPort.Addr()
	}
	return a.Unmap().WithZone("")
}
