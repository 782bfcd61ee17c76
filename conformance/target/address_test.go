package target

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWithinASpace(t *testing.T) {
	for _, c := range []struct {
		space string
		n     uint64
		want  string
	}{
		{"127.0.0.5/32", 7, "127.0.0.5"},
		{"127.0.0.4/31", 0, "127.0.0.4"}, {"127.0.0.4/31", 1, "127.0.0.5"}, {"127.0.0.4/31", 2, "127.0.0.4"},
		{"127.0.0.0/30", 0, "127.0.0.1"}, {"127.0.0.0/30", 1, "127.0.0.2"}, {"127.0.0.0/30", 2, "127.0.0.1"},
		{"127.64.0.0/10", 0x3ffffd, "127.127.255.254"}, {"127.64.0.0/10", 0x3ffffe, "127.64.0.1"},
		{"2001:db8::/32", 0xffff_ffff_ffff_ffff, "2001:db8:0:1::"},
	} {
		require.Equal(t, c.want, within(netip.MustParsePrefix(c.space), c.n).String(), "%s %d", c.space, c.n)
	}
}

// Clients are new each time, and in networks of their own where they share pools
// by network.
func TestNewClients(t *testing.T) {
	for _, bits := range []int64{32, 48, 56, 64, 128} {
		tg := &Target{addresses: addresses{policy: contracts(), proxy: &proxy{header: XForwardedFor}}, time: newTimeline("frozen")}
		tg.addresses.policy.IPv6Prefix = bits
		networks, addresses := map[netip.Prefix]bool{}, map[netip.Addr]bool{}
		n := 1000
		if bits == 32 {
			n = 1 // there is one
		}
		for range n {
			a, err := tg.NewClient(true)
			require.NoError(t, err)
			p, err := a.Addr.Prefix(int(bits))
			require.NoError(t, err)
			networks[p] = true
			b, err := tg.NewClient(false)
			require.NoError(t, err)
			require.True(t, b.Addr.Is4())
			addresses[b.Addr] = true
			require.Equal(t, []string{b.Addr.String()}, b.lines[XForwardedFor])
		}
		require.Len(t, networks, n, "/%d", bits)
		require.Len(t, addresses, n)
	}
}

func TestAlmostProxies(t *testing.T) {
	for trusted, want := range map[string][2]string{
		"127.0.9.0/24":   {"127.0.10.0", "127.0.97.0"},
		"10.0.0.0/8":     {"11.0.0.0", ""},
		"127.0.9.1/32":   {"127.0.9.2", "127.0.97.1"},
		"192.0.200.0/24": {"192.0.201.0", ""},
		"2001:db8::/32":  {"2001:db9::", ""},
	} {
		p := netip.MustParsePrefix(trusted)
		tg := &Target{addresses: addresses{proxy: &proxy{from: p.Addr(), trusted: []netip.Prefix{p}}}}
		next, ok := tg.NextToProxies()
		require.True(t, ok)
		require.Equal(t, want[0], next.String(), trusted)
		alike, ok := tg.SpelledLikeProxies()
		require.Equal(t, want[1] != "", ok, trusted)
		require.True(t, !ok || alike.String() == want[1], alike)
		another, ok := tg.AnotherProxy()
		require.Equal(t, !p.IsSingleIP(), ok)
		require.True(t, !ok || p.Contains(another) && another != p.Addr())
	}
}

func TestNamed(t *testing.T) {
	require.Equal(t, "192.0.2.1, 2001:db8::1, unknown", Named(XForwardedFor, "192.0.2.1", "2001:db8::1", "unknown"))
	require.Equal(t, `for=192.0.2.1, for="[2001:db8::1]", for=unknown`, Named(Forwarded, "192.0.2.1", "2001:db8::1", "unknown"))
}
