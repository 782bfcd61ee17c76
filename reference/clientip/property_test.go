package clientip_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/reference/clientip"
)

// entry is one entry of a header as the model knows it: text that was made from
// an address, or from none. The model never reads text.
type entry struct {
	text string
	addr netip.Addr // zero: no address
}

// client is the contract in a few words, over what the entries stand for.
func client(peer netip.Addr, trusted func(netip.Addr) bool, entries []entry) netip.Addr {
	if !trusted(peer) {
		return peer
	}
	for i, looked := len(entries)-1, 0; i >= 0 && looked < 32; i-- {
		if strings.TrimSpace(entries[i].text) == "" {
			continue
		}
		looked++
		if a := entries[i].addr; a.IsValid() && !trusted(a) {
			return a
		}
	}
	return peer
}

func trustedByModel(a netip.Addr) bool {
	for _, p := range proxies {
		if prefix, err := netip.ParsePrefix(p); err == nil && prefix.Contains(a) {
			return true
		}
	}
	return a == netip.MustParseAddr("192.168.1.7")
}

func drawAddr(t *rapid.T) netip.Addr {
	last := rapid.IntRange(1, 250).Draw(t, "last")
	form := rapid.SampledFrom([]string{
		"203.0.113.%d", "198.51.100.%d", "10.9.8.%d", "192.168.1.%d",
		"2001:db8::%x", "2001:db8:ffff::%x", "2001:db8:fffe::%x", "fe80::%x",
	}).Draw(t, "address")
	return netip.MustParseAddr(fmt.Sprintf(form, last))
}

// spell writes an address in one of the forms that stand for it.
func spell(t *rapid.T, a netip.Addr, header string) string {
	text := a.String()
	bracketed := false
	switch {
	case a.Is4() && rapid.IntRange(0, 3).Draw(t, "mapped") == 0:
		text = "::ffff:" + text
		bracketed = true
	case a.Is6():
		bracketed = true
		if rapid.Bool().Draw(t, "upper case") {
			text = strings.ToUpper(a.StringExpanded())
		}
		if rapid.Bool().Draw(t, "zone") {
			text += "%eth0." + rapid.StringMatching(`[a-z0-9]{1,3}`).Draw(t, "zone name")
		}
	}
	port := rapid.SampledFrom([]string{"", "", ":1", ":65535", ":_p"}).Draw(t, "port")
	if bracketed && (port != "" || rapid.Bool().Draw(t, "brackets")) {
		text = "[" + text + "]"
	}
	text += port
	if rapid.Bool().Draw(t, "quotes") {
		text = `"` + text + `"`
	}
	if header == clientip.Forwarded {
		element := rapid.SampledFrom([]string{"for=%s", "FOR=%s;proto=https", `by=_us;host="a,b;c\"";For=%s`}).Draw(t, "element")
		text = fmt.Sprintf(element, text)
	}
	return text
}

func drawEntry(header string) func(*rapid.T) entry {
	return func(t *rapid.T) entry {
		e := entry{text: rapid.SampledFrom([]string{
			"", " ", "unknown", "_hidden", "garbage", "1.2.3", "23189987", "for=unknown", "for=", "proto=http", "::1::", "0.0.0.0", "[::]:80",
		}).Draw(t, "no address")}
		if rapid.IntRange(0, 2).Draw(t, "kind") > 0 {
			e.addr = drawAddr(t)
			e.text = spell(t, e.addr, header)
		}
		pad := rapid.StringMatching(`[ \t]{0,2}`)
		e.text = pad.Draw(t, "before") + e.text + pad.Draw(t, "after")
		return e
	}
}

// Whatever stands in the header, in whatever spelling and over however many
// lines, the client is the one that the model finds.
func TestClientIsTheModels(t *testing.T) {
	for _, header := range []string{clientip.XForwardedFor, clientip.Forwarded, clientip.XRealIP} {
		t.Run(header, func(t *testing.T) {
			r := trusting(t, header, proxies...)
			rapid.Check(t, func(t *rapid.T) {
				peer := drawAddr(t)
				entries := rapid.SliceOfN(rapid.Custom(drawEntry(header)), 0, 40).Draw(t, "entries")
				h := http.Header{}
				for rest := entries; len(rest) > 0; {
					n := rapid.IntRange(1, len(rest)).Draw(t, "entries of a line")
					var texts []string
					for _, e := range rest[:n] {
						texts = append(texts, e.text)
					}
					h.Add(header, strings.Join(texts, ","))
					rest = rest[n:]
				}
				remote := netip.AddrPortFrom(peer, 4711).String()
				require.Equal(t, client(peer, trustedByModel, entries), r.Of(remote, h), "%q", h)
			})
		})
	}
}
