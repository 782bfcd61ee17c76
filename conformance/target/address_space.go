package target

import (
	"math/big"
	"net/netip"
)

// AnotherProxy is a second address that is trusted; false: there is only one.
func (t *Target) AnotherProxy() (netip.Addr, bool) {
	p := t.addresses.proxy
	for _, trusted := range p.trusted {
		for a := trusted.Addr(); trusted.Contains(a); a = a.Next() {
			if a != p.from {
				return a, true
			}
		}
	}
	return netip.Addr{}, false
}

// NextToProxies is an address that follows a trusted one and is not trusted.
func (t *Target) NextToProxies() (netip.Addr, bool) {
	return t.untrusted(func(p netip.Prefix) netip.Addr {
		host := uint(p.Addr().BitLen() - p.Bits())
		return offset(p.Masked().Addr(), new(big.Int).Lsh(big.NewInt(1), host))
	})
}

// SpelledLikeProxies is an address that is not trusted, though its text begins
// like that of one that is: 10.0.97.0 where 10.0.9.0/24 is.
func (t *Target) SpelledLikeProxies() (netip.Addr, bool) {
	return t.untrusted(func(p netip.Prefix) netip.Addr {
		if !p.Addr().Is4() || p.Addr().As4()[2] > 24 {
			return netip.Addr{}
		}
		longer := p.Addr().As4()
		longer[2] = longer[2]*10 + 7
		return netip.AddrFrom4(longer)
	})
}

// untrusted is the first address made of a trusted prefix that is not trusted.
func (t *Target) untrusted(of func(netip.Prefix) netip.Addr) (netip.Addr, bool) {
	for _, p := range t.addresses.proxy.trusted {
		if a := of(p); a.IsValid() && !t.addresses.proxy.trusts(a) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

func (p *proxy) trusts(a netip.Addr) bool {
	for _, trusted := range p.trusted {
		if trusted.Contains(a) {
			return true
		}
	}
	return false
}

func (s *addresses) take() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	return s.next
}

// within is the n-th address of a space, counted round and round, its first and
// last left out where there are others.
func within(space netip.Prefix, n uint64) netip.Addr {
	host := space.Addr().BitLen() - space.Bits()
	if host == 0 {
		return space.Addr()
	}
	size := new(big.Int).Lsh(big.NewInt(1), uint(host))
	first := int64(0)
	if host > 1 {
		first = 1
		size.Sub(size, big.NewInt(2))
	}
	at := new(big.Int).Mod(new(big.Int).SetUint64(n), size)
	return offset(space.Masked().Addr(), at.Add(at, big.NewInt(first)))
}

// offset is the address so far after another one.
func offset(from netip.Addr, by *big.Int) netip.Addr {
	raw := from.As16()
	sum := new(big.Int).Add(by, new(big.Int).SetBytes(raw[:]))
	sum.FillBytes(raw[:])
	a := netip.AddrFrom16(raw)
	if from.Is4() {
		a = a.Unmap()
	}
	return a
}
