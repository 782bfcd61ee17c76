package target

import (
	"fmt"
	"net/http"
	"net/netip"
)

// Sender is how requests come from a client address of their own.
type Sender struct {
	Client netip.Addr  // as the deployment sees it
	From   netip.Addr  // to send from
	Header http.Header // that names the client, where a trusted proxy sends for it
}

// mostClients is how many clients a proxy names at most: those of 198.18.0.0/15.
const mostClients = 1<<17 - 2

// Senders are so many different client addresses: this machine's own, where the
// deployment takes them for the client's, else of clients for whom a trusted
// proxy sends. It fails with [ErrUnsupported] where there are not so many.
func (t *Target) Senders(n int64) ([]Sender, error) {
	there, next := int64(0), func() *Address { return nil }
	switch {
	case len(t.addresses.spaces) > 0:
		for _, p := range t.addresses.spaces {
			there += size(p)
		}
		next = func() *Address { a, _ := t.NewAddress(); return a }
	case t.addresses.proxy != nil:
		there = mostClients
		next = func() *Address { a, _ := t.NewClient(false); return a }
	}
	if there < n {
		return nil, fmt.Errorf("%w: %d addresses to send from, there are %d", ErrUnsupported, n, there)
	}
	seen := map[netip.Addr]bool{}
	var list []Sender
	for tries := int64(0); int64(len(list)) < n && tries < 100*n+1000; tries++ {
		a := next()
		if !seen[a.Addr] { // small spaces are gone round, large ones are not
			seen[a.Addr] = true
			list = append(list, Sender{Client: a.Addr, From: a.from, Header: a.lines})
		}
	}
	if int64(len(list)) < n {
		return nil, fmt.Errorf("%w: %d addresses to send from, there are %d", ErrUnsupported, n, len(list))
	}
	return list, nil
}

// size is how many addresses of a space are used; of a large one, enough.
func size(p netip.Prefix) int64 {
	switch host := p.Addr().BitLen() - p.Bits(); {
	case host > 32:
		return 1 << 32
	case host > 1:
		return 1<<host - 2
	default:
		return 1 << host
	}
}
