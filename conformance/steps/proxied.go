package steps

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
)

// proxied are the sentences about who the client is: what others say of it, and
// what a trusted proxy does.
func (s *Scenario) proxied() []sentence {
	return []sentence{
		{given, `^a client behind a trusted proxy$`, "an address that the proxy names, of the scenario's own", needs{contract.NeedProxy}, func(ctx context.Context) error { return s.aClient(ctx, false, false) }},
		{given, `^an emptied client$`, "an address that the proxy names, its attempts spent on wrong keys", needs{contract.NeedProxy}, func(ctx context.Context) error { return s.aClient(ctx, false, true) }},
		{given, `^an emptied client with an IPv6 address$`, "an address that the proxy names, its attempts spent on wrong keys", needs{contract.NeedProxy}, func(ctx context.Context) error { return s.aClient(ctx, true, true) }},
		{given, `^an emptied client (next to|spelled like) a trusted proxy$`, "an address that only looks like a trusted one, its attempts spent on wrong keys", needs{contract.NeedProxy}, s.almostAProxy},
		{given, `^an emptied proxy$`, "the proxy's own address, its attempts spent on wrong keys", needs{contract.NeedProxy}, s.anEmptiedProxy},
		{when, `^attempts come from there with a new client in (.+) each time$`, "another forged address each time in a header, or in any look-alike of one", nil, s.tryNamingOthers},
		{when, `^attempts come for that client with (.+)$`, "four attempts, the client named in such a spelling", needs{contract.NeedProxy}, s.tryForClient},
		{when, `^attempts come for other clients with (.+)$`, "four attempts of four clients, each named in such a spelling", needs{contract.NeedProxy}, s.tryForOthers},
		{when, `^attempts come for other addresses of its prefix$`, "four attempts of neighbours, by IPv6", needs{contract.NeedProxy}, s.tryForPrefix},
		{when, `^attempts come for clients of other prefixes$`, "four attempts of clients that share no pool, by IPv6", needs{contract.NeedProxy}, s.tryForOtherPrefixes},
		{when, `^attempts come from it that name nobody$`, "no header, an empty one, one that holds no address, one of trusted addresses alone", needs{contract.NeedProxy}, s.tryNamingNobody},
		{then, `^each was held to that client's pool$`, "one at least was refused, and none got in that should not", nil, s.wasHeldToThePool},
		{then, `^each had a pool of its own$`, "each got 401", nil, s.hadItsOwn},
	}
}

// aClient takes a client of the scenario's own behind the trusted proxy.
func (s *Scenario) aClient(ctx context.Context, ipv6, emptied bool) error {
	a, err := s.NewClient(ipv6)
	if err != nil {
		return setup(err)
	}
	s.at = a
	if !emptied {
		return nil
	}
	return s.ready(s.emptyPool(ctx))
}

// almostAProxy is a client whose address only looks like a trusted one. There
// are few of them, so nothing is known of its pool.
func (s *Scenario) almostAProxy(ctx context.Context, how string) error {
	almost := s.NextToProxies
	if how == "spelled like" {
		almost = s.SpelledLikeProxies
	}
	addr, ok := almost()
	if !ok {
		return fmt.Errorf("%w: %w: no address is %s a trusted one", ErrSetup, target.ErrUnsupported, how)
	}
	a, err := s.Client(addr)
	if err != nil {
		return setup(err)
	}
	s.at = a
	return s.ready(s.emptyPool(ctx))
}

func (s *Scenario) anEmptiedProxy(ctx context.Context) error {
	a, err := s.ProxyAddress()
	if err != nil {
		return setup(err)
	}
	s.at = a
	return s.ready(s.emptyPool(ctx))
}

// lookAlikes are headers that some servers believe, and the contract does not
// know.
func lookAlikes() []string {
	return []string{"X-Client-IP", "X-Originating-IP", "X-Remote-IP", "X-Remote-Addr", "True-Client-IP", "CF-Connecting-IP",
		"X-Cluster-Client-IP", "Forwarded-For", "X-Forwarded", "X-Forwarded-Host"}
}

// tryNamingOthers tries in the name of others, as anybody can.
func (s *Scenario) tryNamingOthers(ctx context.Context, header string) error {
	return s.tryEach(ctx, fewAttempts, func(n int) (target.Request, error) {
		forged := stranger(n)
		if header != "any look-alike" {
			return s.with(http.Header{header: {target.Named(header, forged)}}), nil
		}
		all := http.Header{}
		for _, h := range lookAlikes() {
			all[h] = []string{forged}
		}
		return s.with(all), nil
	})
}

// stranger is the address of somebody else, another one for each n.
func stranger(n int) string {
	return netip.AddrFrom4([4]byte{203, 0, 113, byte(1 + n%250)}).String() // set aside for documents, RFC 5737
}

// with is a wrong key with header lines beside it.
func (s *Scenario) with(lines http.Header) target.Request {
	r := s.wrongKey()
	r.Header = r.Header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	for name, values := range lines {
		r.Header[name] = values
	}
	return r
}

func (s *Scenario) tryEach(ctx context.Context, n int, next func(n int) (target.Request, error)) error {
	return s.sends(func() (got []exchange, err error) {
		for i := range n {
			r, err := next(i)
			if err != nil {
				return got, err
			}
			e, err := s.try(ctx, r)
			if err != nil {
				return got, err
			}
			got = append(got, e)
		}
		return got, nil
	})
}

func (s *Scenario) tryForClient(ctx context.Context, spelling string) error {
	return s.tryEach(ctx, fewAttempts, func(n int) (target.Request, error) {
		lines, err := s.spelledClient(spelling, s.at.Addr, n)
		return s.with(lines), err
	})
}

func (s *Scenario) tryForOthers(ctx context.Context, spelling string) error {
	return s.tryEach(ctx, fewAttempts, func(n int) (target.Request, error) {
		a, err := s.NewClient(s.at.Addr.Is6())
		if err != nil {
			return target.Request{}, setup(err)
		}
		lines, err := s.spelledClient(spelling, a.Addr, n)
		r := s.with(lines)
		r.From = a
		return r, err
	})
}

func (s *Scenario) tryForPrefix(ctx context.Context) error {
	if s.Anonymous().IPv6Prefix > 120 {
		return fmt.Errorf("%w: %w: IPv6 addresses have pools of their own", ErrSetup, target.ErrUnsupported)
	}
	a := s.at.Addr
	return s.tryEach(ctx, fewAttempts, func(int) (target.Request, error) {
		a = a.Next()
		return s.with(http.Header{s.ProxyHeader(): {target.Named(s.ProxyHeader(), a.String())}}), nil
	})
}

func (s *Scenario) tryForOtherPrefixes(ctx context.Context) error {
	return s.tryEach(ctx, fewAttempts, func(int) (target.Request, error) {
		r := s.wrongKey()
		a, err := s.NewClient(true)
		r.From = a
		return r, asSetup(err)
	})
}

// tryNamingNobody tries as the proxy itself: without the header, with others in
// its place, and with it when it holds nobody.
func (s *Scenario) tryNamingNobody(ctx context.Context) error {
	header := s.ProxyHeader()
	others := http.Header{}
	all := []http.Header{nil, others, {header: {target.Named(header, "unknown")}}, {header: {target.Named(header, s.at.Addr.String())}}}
	if header != target.XRealIP {
		all = append(all, http.Header{header: {", ,"}})
		if hop, ok := s.AnotherProxy(); ok {
			all = append(all, http.Header{header: {target.Named(header, hop.String(), s.at.Addr.String())}})
		}
	}
	return s.tryEach(ctx, len(all), func(n int) (target.Request, error) {
		for _, h := range beside(header) {
			others[h] = []string{target.Named(h, stranger(n))}
		}
		return s.with(all[n]), nil
	})
}

// beside lists the headers that are not believed beside the one that is.
func beside(header string) []string {
	var all []string
	for _, h := range []string{target.XForwardedFor, target.Forwarded, target.XRealIP} {
		if h != header {
			all = append(all, h)
		}
	}
	return all
}

// spelledClient is how the proxy names a client in a certain way; n makes what
// is forged another each time.
func (s *Scenario) spelledClient(spelling string, client netip.Addr, n int) (http.Header, error) {
	header, c := s.ProxyHeader(), client.String()
	line := func(entries ...string) string { return target.Named(header, entries...) }
	lines := func(all ...string) (http.Header, error) {
		if isList(all) && header == target.XRealIP {
			return nil, fmt.Errorf("%w: %w: %s names one address", ErrSetup, target.ErrUnsupported, header)
		}
		return http.Header{header: all}, nil
	}
	hop, hops := s.AnotherProxy()
	if strings.Contains(spelling, "hop") && !hops {
		return nil, fmt.Errorf("%w: %w: a second trusted address", ErrSetup, target.ErrUnsupported)
	}
	switch spelling {
	case "its address alone":
		return lines(line(c))
	case "a trusted hop behind it":
		return lines(line(c, hop.String()))
	case "that client before them":
		return lines(line(s.at.Addr.String(), c))
	case "a forged entry before it":
		return lines(line(stranger(n), c))
	case "a line of its own":
		return lines(line(stranger(n)), line(c))
	case "a line before that of a hop":
		return lines(line(c), line(hop.String()))
	case "spaces around it":
		return lines(line(stranger(n)) + " ,\t " + line(c) + strings.Repeat(" ", n) + ",")
	case "a port":
		return lines(line(fmt.Sprintf("%s:%d", c, 40000+n)))
	case "quotes":
		return lines(line(`"` + c + `"`))
	case "an IPv4-mapped form":
		return lines(line("::ffff:" + c))
	case "an entry that is none behind it":
		return lines(line(c, fmt.Sprintf("unknown%d", n)))
	case "empty entries behind it":
		return lines(line(c) + ", ,")
	case "brackets and a port":
		return lines(line(fmt.Sprintf("[%s]:%d", c, 40000+n)))
	case "a zone":
		return lines(line(fmt.Sprintf("%s%%eth%d", c, n)))
	case "another client in the other headers":
		all := http.Header{header: {line(c)}}
		for _, h := range beside(header) {
			all[h] = []string{target.Named(h, stranger(n))}
		}
		return all, nil
	}
	return nil, fmt.Errorf("there is no spelling %q", spelling)
}

// isList reports whether header lines are more than one entry.
func isList(lines []string) bool { return len(lines) > 1 || strings.Contains(lines[0], ",") }

// hadItsOwn is for first attempts of addresses that nobody has tried anything
// from, while another one has nothing left.
func (s *Scenario) hadItsOwn() error {
	if err := s.claimPool(); err != nil {
		return err
	}
	for _, e := range s.got {
		if e.Answer.Status != http.StatusUnauthorized {
			return fmt.Errorf("%w: an attempt was answered with %s, not with %s", ErrInconclusive, statusAndCode(e), s.Wording().Reply(http.StatusUnauthorized))
		}
	}
	return nil
}
