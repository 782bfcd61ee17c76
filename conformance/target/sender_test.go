package target

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSenders(t *testing.T) {
	spaces := func(texts ...string) (list []netip.Prefix) {
		for _, text := range texts {
			list = append(list, netip.MustParsePrefix(text))
		}
		return list
	}
	for name, c := range map[string]struct {
		addresses func(*addresses)
		n         int64
		why       string
	}{
		"of a large space":         {func(a *addresses) { a.spaces = spaces("127.64.0.0/10") }, 1000, ""},
		"all of a small space":     {func(a *addresses) { a.spaces = spaces("127.0.1.0/28"); a.next = 5 }, 14, ""},
		"more than a space has":    {func(a *addresses) { a.spaces = spaces("127.0.1.0/28") }, 15, "15 addresses to send from, there are 14"},
		"of several spaces":        {func(a *addresses) { a.spaces = spaces("127.0.1.0/28", "127.0.2.9/32") }, 15, ""},
		"too many of several":      {func(a *addresses) { a.spaces = spaces("127.0.1.0/28", "127.0.2.9/32") }, 16, "16 addresses to send from, there are 15"},
		"the same space twice":     {func(a *addresses) { a.spaces = spaces("127.0.1.0/30", "127.0.1.0/30") }, 3, "3 addresses to send from, there are 2"},
		"a proxy's":                {func(a *addresses) { a.proxy = &proxy{from: netip.MustParseAddr("127.0.9.1"), header: XForwardedFor} }, 1000, ""},
		"more than a proxy's":      {func(a *addresses) { a.proxy = &proxy{} }, 200_000, "200000 addresses to send from, there are 131070"},
		"where nothing is offered": {func(*addresses) {}, 1, "1 addresses to send from, there are 0"},
	} {
		t.Run(name, func(t *testing.T) {
			tg := &Target{time: newTimeline("frozen")}
			tg.addresses.policy = contracts()
			c.addresses(&tg.addresses)
			list, err := tg.Senders(c.n)
			if c.why != "" {
				require.ErrorContains(t, err, c.why)
				require.ErrorIs(t, err, ErrUnsupported)
				return
			}
			require.NoError(t, err)
			seen := map[netip.Addr]bool{}
			for _, s := range list {
				seen[s.Client] = true
				if p := tg.addresses.proxy; p != nil {
					require.Equal(t, p.from, s.From)
					require.Equal(t, s.Client.String(), s.Header.Get(XForwardedFor))
				} else {
					require.Equal(t, s.Client, s.From)
					require.Empty(t, s.Header)
				}
			}
			require.Len(t, seen, int(c.n))
		})
	}
}
