package accesslog

import (
	"bytes"
	"net/netip"
)

// maxName is the longest host name there is.
const maxName = 255

// clientOf picks the client from what stands before the stamp: "host ident user",
// "vhost:port host ident user", or a forwarded list and the peer before ident
// and user. The answer is in one spelling: without port, brackets or zone. Nil:
// nobody is named. list reports that it was a list.
func clientOf(head []byte, trusted []netip.Prefix) (client []byte, list bool) {
	first, rest, _ := bytes.Cut(head, []byte(" "))
	if bytes.IndexByte(first, ',') >= 0 {
		return fromList(head, trusted), true
	}
	if second, _, more := bytes.Cut(rest, []byte(" ")); more && bytes.IndexByte(first, ':') >= 0 {
		if _, ok := address(first); !ok {
			if _, ok := address(second); ok {
				first = second
			}
		}
	}
	return canonical(first), false
}

// fromList walks "a, b, c peer ident user" from the right, as the limiter walks
// X-Forwarded-For: the first valid address that is no trusted proxy. Where there
// is none it is the peer.
func fromList(head []byte, trusted []netip.Prefix) []byte {
	var list [][]byte
	words := bytes.Fields(head)
	for more := true; more && len(words) > 0; words = words[1:] {
		for entry := range bytes.SplitSeq(words[0], []byte(",")) {
			if len(entry) > 0 {
				list = append(list, entry)
			}
		}
		more = bytes.HasSuffix(words[0], []byte(","))
	}
	if len(words) > 0 {
		if _, ok := address(words[0]); ok {
			list = append(list, words[0])
		}
	}
	for i := len(list) - 1; i >= 0; i-- {
		if a, ok := address(list[i]); ok && !within(a, trusted) {
			return []byte(a.String())
		}
	}
	if len(list) == 0 {
		return nil
	}
	return canonical(list[len(list)-1])
}

func within(a netip.Addr, trusted []netip.Prefix) bool {
	for _, p := range trusted {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// canonical is one spelling for one client. A host name stays as it is, however
// much it looks like an address.
func canonical(word []byte) []byte {
	if plainIPv4(word) {
		return word
	}
	if a, ok := address(word); ok {
		return []byte(a.String())
	}
	if i := bytes.LastIndexByte(word, ':'); i > 0 && digits(word[i+1:]) {
		word = word[:i]
	}
	if len(word) == 0 || len(word) > maxName || string(word) == "-" {
		return nil
	}
	return word
}

// plainIPv4 spares the common case an allocation. Four numbers are enough: what
// is no address after all is then a name, and the same one every time.
func plainIPv4(b []byte) bool {
	dots := 0
	for _, c := range b {
		switch {
		case c == '.':
			dots++
		case c < '0' || c > '9':
			return false
		}
	}
	return dots == 3 && len(b) <= len("255.255.255.255")
}

// address reads an address with or without port, brackets and zone. An IPv4
// address written as IPv6 is IPv4.
func address(b []byte) (netip.Addr, bool) {
	text := string(b)
	a, err := netip.ParseAddr(text)
	if err != nil {
		p, err := netip.ParseAddrPort(text)
		if err != nil {
			if len(text) < 2 || text[0] != '[' || text[len(text)-1] != ']' {
				return a, false
			}
			if a, err = netip.ParseAddr(text[1 : len(text)-1]); err != nil {
				return a, false
			}
		} else {
			a = p.Addr()
		}
	}
	return a.Unmap().WithZone(""), true
}

func digits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}
