package target

import (
	"context"
	"crypto/rand"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
)

// The headers that a proxy may name the client in.
const (
	XForwardedFor = "X-Forwarded-For"
	Forwarded     = "Forwarded"
	XRealIP       = "X-Real-IP"
)

// Address is a client address, as the deployment sees it, with what is known of
// its pool of attempts.
type Address struct {
	Addr     netip.Addr // the zero Addr: whatever this machine sends from
	Attempts *oracle.Attempts

	from  netip.Addr  // to send from; the zero Addr: any
	lines http.Header // that name it, where it is sent for by a proxy
	mu    sync.Mutex  // one attempt at a time
	gone  int64       // when the target was gone: see [Target.sinceGone]
}

// addresses hands out client addresses.
type addresses struct {
	policy Anonymous
	own    *Address
	spaces []netip.Prefix // to send from
	proxy  *proxy         // nil: none

	mu   sync.Mutex
	next uint64 // of those never handed out
}

// proxy is a [Proxy] that was read.
type proxy struct {
	from    netip.Addr
	trusted []netip.Prefix
	header  string
}

// openAddresses tries the first address of each kind, and believes nothing of what
// this machine cannot send from. f was checked.
func (t *Target) openAddresses(ctx context.Context) {
	t.addresses.policy = t.file.anonymous()
	t.addresses.own = &Address{Attempts: oracle.NewUnknownAttempts(t.addresses.policy.allowance(), t.time.atMost())}
	// Two runs on one deployment, a moment apart, should not meet in one pool.
	t.addresses.next = uint64(time.Now().Unix()) * addressesASecond
	for _, text := range t.file.Can.Addresses {
		p, _ := parsePrefix(text)
		if !t.sends(ctx, p.Addr()) {
			t.disbelieve(contract.NeedAddresses, fmt.Sprintf("can.addresses: this machine cannot send from %s", p.Addr()))
			t.addresses.spaces = nil
			break
		}
		t.addresses.spaces = append(t.addresses.spaces, p)
	}
	if c := t.file.Can.Proxy; c != nil {
		from, _ := netip.ParseAddr(c.From)
		if !t.sends(ctx, from) {
			t.disbelieve(contract.NeedProxy, fmt.Sprintf("can.proxy: this machine cannot send from %s", from))
			return
		}
		t.addresses.proxy = &proxy{from: from, header: c.header()}
		for _, text := range c.Trusted {
			p, _ := parsePrefix(text)
			t.addresses.proxy.trusted = append(t.addresses.proxy.trusted, p)
		}
	}
}

// addressesASecond is how many addresses a run may use in each second that it
// lasts before it meets those of one that began later.
const addressesASecond = 64

// sends reports whether every base URL can be reached from an address.
func (t *Target) sends(ctx context.Context, from netip.Addr) bool {
	for _, base := range t.bases {
		c, err := dial(ctx, base, t.trust, from, t.patience, t.protocol)
		if err != nil {
			return false
		}
		c.Close()
	}
	return true
}

// Anonymous is what one client address may try.
func (t *Target) Anonymous() Anonymous { return t.addresses.policy }

// OwnAddress is the address that everything is sent from that asks for no other.
// What is known of its pool holds only as long as nobody else tries anything.
func (t *Target) OwnAddress() *Address { return t.addresses.own }

// NewAddress is a source address that was not used before; false: there is none.
func (t *Target) NewAddress() (*Address, bool) {
	if len(t.addresses.spaces) == 0 {
		return nil, false
	}
	n := t.addresses.take()
	space := t.addresses.spaces[n%uint64(len(t.addresses.spaces))]
	a := within(space, n/uint64(len(t.addresses.spaces)))
	return t.rested(a, a, nil), true
}

// NewClient is a client for whom a trusted proxy sends, not used before: one with
// an IPv4 address, or with a prefix of its own in IPv6. It fails with
// [ErrUnsupported] where there is no such proxy.
func (t *Target) NewClient(ipv6 bool) (*Address, error) {
	space := netip.MustParsePrefix("198.18.0.0/15") // set aside for tests of networks, RFC 2544
	n := t.addresses.take()
	if ipv6 {
		space = netip.MustParsePrefix("2001:db8::/32") // set aside for documents, RFC 3849
		shared := 128 - int(t.addresses.policy.IPv6Prefix)
		return t.client(offset(space.Addr(), new(big.Int).Lsh(big.NewInt(int64(n%(1<<min(31, 96-shared)))), uint(shared))).Next(), true)
	}
	return t.client(within(space, n), true)
}

// Client is a client at an address for whom a trusted proxy sends, of whose pool
// nothing is known.
func (t *Target) Client(a netip.Addr) (*Address, error) { return t.client(a, false) }

func (t *Target) client(a netip.Addr, rested bool) (*Address, error) {
	p := t.addresses.proxy
	if p == nil {
		return nil, fmt.Errorf("%w: a trusted proxy to send through", ErrUnsupported)
	}
	c := t.rested(a, p.from, http.Header{p.header: {Named(p.header, a.String())}})
	if !rested {
		c.Attempts = oracle.NewUnknownAttempts(t.addresses.policy.allowance(), t.time.atMost())
	}
	return c, nil
}

// ProxyAddress is the proxy itself, as a client of its own.
func (t *Target) ProxyAddress() (*Address, error) {
	p := t.addresses.proxy
	if p == nil {
		return nil, fmt.Errorf("%w: a trusted proxy to send through", ErrUnsupported)
	}
	return &Address{Addr: p.from, Attempts: oracle.NewUnknownAttempts(t.addresses.policy.allowance(), t.time.atMost()), from: p.from}, nil
}

// ProxyHeader is the header in which the proxy names the client.
func (t *Target) ProxyHeader() string {
	if t.addresses.proxy == nil {
		return XForwardedFor
	}
	return t.addresses.proxy.header
}

// Named is how a header names addresses, those farther from us first.
func Named(header string, entries ...string) string {
	text := ""
	for i, e := range entries {
		if i > 0 {
			text += ", "
		}
		if header == Forwarded {
			if a, err := netip.ParseAddr(e); err == nil && a.Is6() {
				e = "[" + e + "]"
			}
			if strings.ContainsAny(e, ":[%") {
				e = `"` + e + `"`
			}
			e = "for=" + e
		}
		text += e
	}
	return text
}

// WrongKey is a key that nobody has, of the form of those that are known to be
// good, and another one each time.
func (t *Target) WrongKey() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.known {
		if other := k.Another(); !slices.ContainsFunc(t.known, func(k Secret) bool { return k.text == other }) {
			return other
		}
	}
	return "wrong-" + rand.Text()
}

// TwistedKey is WrongKey for one that begins like a good one.
func (t *Target) TwistedKey(s Secret) string {
	other := s.Twisted()
	t.mu.Lock()
	taken := slices.ContainsFunc(t.known, func(k Secret) bool { return k.text == other })
	t.mu.Unlock()
	if taken {
		return t.WrongKey()
	}
	return other
}

// Attempt sends a request that must not authenticate, from r's address, and lets
// the oracle judge the answer against that address's pool.
func (t *Target) Attempt(ctx context.Context, r Request) Exchange {
	from := r.From
	if from == nil {
		from = t.addresses.own
	}
	from.mu.Lock()
	defer from.mu.Unlock()
	f := t.exchange(ctx, nil, r)
	if f.sent {
		t.sinceGone(&from.gone, func(int64) { from.Attempts.Forget(f.exchange.Span.From) })
	}
	switch e := &f.exchange; {
	case e.Err == nil && len(r.Authorization) > 1 && e.RefusedByParser() && e.Answer.RequestID.State == contract.Absent:
		e.Unread = true
		from.Attempts.Lose(e.Span)
	case e.Err == nil:
		e.Findings = from.Attempts.Judge(e.Answer, e.Span)
	case f.sent:
		from.Attempts.Lose(e.Span)
	}
	return f.exchange
}

// AttemptsIn is how long it takes until so many attempts from an address, or its
// whole burst if that is less, would certainly be let through; not positive: they
// would be now.
func (t *Target) AttemptsIn(a *Address, attempts int64) time.Duration {
	return time.Duration(a.Attempts.ReadyAt(attempts)-t.time.atLeast()) * time.Microsecond
}

func (t *Target) rested(a, from netip.Addr, lines http.Header) *Address {
	return &Address{Addr: a, Attempts: oracle.NewRestedAttempts(t.addresses.policy.allowance()), from: from, lines: lines, gone: t.gone.Load()}
}

// localAddr is what a dialer takes.
func localAddr(a netip.Addr) net.Addr {
	if !a.IsValid() {
		return nil
	}
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(a, 0))
}
