package clientip

import (
	"net/netip"
	"strings"
)

// maxText is the length of the longest text of an address without a zone.
const maxText = len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255")

// parse reads an address in any form that proxies write it in: with a port, in
// brackets, with a zone, quoted, mapped into IPv6 (PROXY-4). A port is a number
// or, by RFC 7239, an obfuscated one. The unspecified address is nobody's.
//
// Bare IPv6 is taken whole, also in Forwarded, where RFC 7239 wants brackets: if
// it were passed over, the client could choose what stands to the left of it.
func parse(text string) (netip.Addr, bool) {
	host, port, ok := split(unquote(trim(text)))
	if !ok || port != "" && !isPort(port) {
		return netip.Addr{}, false
	}
	host, zone, zoned := strings.Cut(host, "%")
	if len(host) > maxText || zoned && zone == "" {
		return netip.Addr{}, false // the length also saves the cost of an error that quotes it
	}
	a, err := netip.ParseAddr(host)
	if err != nil || zoned && a.Is4() {
		return netip.Addr{}, false
	}
	if a = plain(a); a.IsUnspecified() {
		return netip.Addr{}, false
	}
	return a, true
}

// split parts a host from its port, which is empty if there is none.
func split(node string) (host, port string, ok bool) {
	if inner, bracketed := strings.CutPrefix(node, "["); bracketed {
		host, after, closed := strings.Cut(inner, "]")
		port, colon := strings.CutPrefix(after, ":")
		return host, port, closed && colon == (port != "")
	}
	host, port, colon := strings.Cut(node, ":")
	if !colon || strings.Contains(port, ":") {
		return node, "", true // no port, or IPv6
	}
	return host, port, port != ""
}

// isPort is RFC 7239, section 6.3: one to five digits, or an underscore and a
// name.
func isPort(s string) bool {
	if name, obfuscated := strings.CutPrefix(s, "_"); obfuscated {
		return name != "" && strings.Trim(name, nameBytes) == ""
	}
	return len(s) <= 5 && strings.Trim(s, "0123456789") == ""
}

const nameBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

// forwardedFor is the value of the parameter for of one element of a Forwarded
// header, or empty: it has none, or it has two and nobody can say which counts.
func forwardedFor(element string) string {
	node, seen := "", false
	for more := true; more; {
		var pair string
		pair, element, more = cutFirst(element)
		name, value, _ := strings.Cut(pair, "=")
		if !strings.EqualFold(trim(name), "for") {
			continue
		}
		if seen {
			return ""
		}
		node, seen = value, true
	}
	return node
}

// cutFirst cuts the first of the pairs that semicolons part, outside quoted
// strings.
func cutFirst(element string) (pair, rest string, more bool) {
	inside := false
	for i := 0; i < len(element); i++ {
		switch c := element[i]; {
		case c == '"':
			inside = !inside
		case c == '\\' && inside:
			i++
		case c == ';' && !inside:
			return element[:i], element[i+1:], true
		}
	}
	return element, "", false
}

// unquote strips a pair of quotes and, within them, the backslash before each
// escaped byte.
func unquote(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	s = s[1 : len(s)-1]
	if !strings.Contains(s, `\`) {
		return trim(s)
	}
	var plain strings.Builder
	for i := 0; i < len(s) && plain.Len() <= 2*maxText; i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		plain.WriteByte(s[i])
	}
	return trim(plain.String())
}

// trim strips what HTTP calls optional white space.
func trim(s string) string { return strings.Trim(s, " \t") }
