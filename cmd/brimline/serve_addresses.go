package main

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reference/clientip"
	"github.com/invoicespec/brimline/reference/server"
)

// clientsOnLoopback are the addresses that a target file says to send from.
const clientsOnLoopback = "127.64.0.0/10"

// addressesOf says in a target file whose attempts a server counts, and how many:
// what it was told, and what can be sent from this machine.
func addressesOf(f *target.File, s *server.Server, cfg server.Config) {
	if a := cfg.Anonymous.Allowance; !a.IsZero() {
		f.Anonymous = &target.Anonymous{
			RequestsPerMinute: a.RequestsPerMinute(), Burst: a.Burst(), Concurrency: a.Concurrency(),
			IPv6Prefix: int64(cmp.Or(cfg.Addresses.IPv6Prefix, clientip.DefaultIPv6Prefix)),
		}
	}
	loopback := netip.MustParsePrefix("127.0.0.0/8") // all of it can be sent from
	listens, err := netip.ParseAddrPort(s.Addr().String())
	if err != nil || !loopback.Contains(listens.Addr().Unmap()) {
		return
	}
	trusted, clients := cfg.Addresses.Trusted, netip.MustParsePrefix(clientsOnLoopback)
	if !slices.ContainsFunc(trusted, clients.Overlaps) {
		f.Can.Addresses = []string{clientsOnLoopback}
	}
	here := slices.IndexFunc(trusted, func(p netip.Prefix) bool { return p.Bits() >= loopback.Bits() && loopback.Contains(p.Addr()) })
	if here < 0 {
		return
	}
	f.Can.Proxy = &target.Proxy{From: trusted[here].Addr().String(), Header: cfg.Addresses.Header}
	if !trusted[here].IsSingleIP() {
		f.Can.Proxy.From = trusted[here].Addr().Next().String()
	}
	for _, p := range trusted {
		f.Can.Proxy.Trusted = append(f.Can.Proxy.Trusted, p.String())
	}
}
