package target

import (
	"encoding/binary"
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

// AlmostProxies are addresses that are not trusted, though their text begins like
// one that is, or they lie next to one.
func (t *Target) AlmostProxies() []netip.Addr {
	var all []netip.Addr
	for _, trusted := range t.addresses.proxy.trusted {
		last := trusted.Addr()
		if !last.Is4() {
			continue
		}
		end := last.As4()
		bits := binary.BigEndian.Uint32(end[:]) | uint32(1<<(32-trusted.Bits())-1)
		binary.BigEndian.PutUint32(end[:], bits)
		beyond := netip.AddrFrom4(end).Next()
		alike := trusted.Addr().As4()
		alike[2] = alike[2]%25*10 + 7 // 10.0.9.0 to 10.0.97.0
		for _, a := range []netip.Addr{beyond, netip.AddrFrom4(alike)} {
			if a.IsValid() && !t.addresses.proxy.trusts(a) {
				all = append(all, a)
			}
		}
	}
	return all
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
