package server_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"math/big"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/internal/proxytest"
	"github.com/invoicespec/brimline/reference/clientip"
)

// guideBlocks are the configurations in the guide, by the name before each.
func guideBlocks(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/behind-a-proxy.md")
	require.NoError(t, err)
	blocks := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)<!-- tested: ([a-z-]+) -->\n```[a-z]+\n(.*?)```\n").FindAllStringSubmatch(string(text), -1) {
		require.NotContains(t, blocks, m[1])
		blocks[m[1]] = m[2]
	}
	return blocks
}

// TestGuideIsTested: what the guide calls tested is, below, and nothing else.
func TestGuideIsTested(t *testing.T) {
	require.ElementsMatch(t, []string{
		"nginx", "nginx-inner", "nginx-forwarded", "nginx-forwarded-map", "nginx-real-ip",
		"haproxy", "haproxy-inner", "haproxy-real-ip",
	}, slices.Collect(maps.Keys(guideBlocks(t))))
}

// with is text with replacements; each of what they replace has to be there.
func with(t *testing.T, text string, oldNew ...string) string {
	t.Helper()
	for i := 0; i < len(oldNew); i += 2 {
		require.Contains(t, text, oldNew[i])
		text = strings.ReplaceAll(text, oldNew[i], oldNew[i+1])
	}
	return text
}

// server addresses as the guide writes them.
const guideServer, guideInner = "127.0.0.1:8080", "10.0.0.3:8000"

// builder starts the proxies in front of a server at upstream.
type builder func(t *testing.T, host, upstream string) (addr string)

func nginxEdge(change ...string) builder {
	return func(t *testing.T, host, upstream string) string {
		chain, key := certificate(t)
		return proxytest.Nginx(t, host, func(listen string) string {
			return with(t, with(t, guideBlocks(t)["nginx"], change...), "listen 443", "listen "+listen, guideServer, upstream,
				"/etc/nginx/tls/chain.pem", proxytest.File(t, "chain.pem", chain),
				"/etc/nginx/tls/key.pem", proxytest.File(t, "key.pem", key))
		})
	}
}

func haproxyEdge(change ...string) builder {
	return func(t *testing.T, host, upstream string) string {
		chain, key := certificate(t)
		return proxytest.HAProxy(t, host, func(bind string) string {
			return with(t, with(t, guideBlocks(t)["haproxy"], change...), "bind :443", "bind "+bind, guideServer, upstream,
				"/etc/haproxy/tls/site.pem", proxytest.File(t, "site.pem", chain+key))
		})
	}
}

func nginxInner(t *testing.T, upstream string) string {
	return proxytest.Nginx(t, "127.0.0.1", func(listen string) string {
		return with(t, guideBlocks(t)["nginx-inner"], guideInner, listen, guideServer, upstream)
	})
}

func haproxyInner(t *testing.T, upstream string) string {
	return proxytest.HAProxy(t, "127.0.0.1", func(bind string) string {
		return with(t, guideBlocks(t)["haproxy-inner"], guideInner, bind, guideServer, upstream)
	})
}

// site is a server behind proxies, and what it is told of them.
type site struct {
	build   builder
	header  string // the one that is believed; empty: X-Forwarded-For
	trusted string // empty: 127.0.0.1, where all proxies are
	h2c     bool   // the server takes HTTP/2 from its proxy
}

// sites are those that the guide recommends.
func sites(t *testing.T) map[string]site {
	b := guideBlocks(t)
	return map[string]site{
		"nginx":            {build: nginxEdge()},
		"nginx, X-Real-IP": {build: nginxEdge(nginxNames(t), b["nginx-real-ip"]), header: clientip.XRealIP},
		"nginx, Forwarded": {build: nginxEdge("upstream brimline {", b["nginx-forwarded-map"]+"upstream brimline {",
			nginxNames(t), b["nginx-forwarded"]), header: clientip.Forwarded},
		"haproxy":            {build: haproxyEdge()},
		"haproxy, HTTP/2":    {build: haproxyEdge(" check\n", " check proto h2\n"), h2c: true},
		"haproxy, X-Real-IP": {build: haproxyEdge(haproxyNames(t), b["haproxy-real-ip"]), header: clientip.XRealIP},
		"haproxy, then nginx": {build: func(t *testing.T, host, upstream string) string {
			return haproxyEdge()(t, host, nginxInner(t, upstream))
		}},
		"nginx, then haproxy": {build: func(t *testing.T, host, upstream string) string {
			return nginxEdge()(t, host, haproxyInner(t, upstream))
		}},
	}
}

// nginxNames and haproxyNames are the lines of the guide's first blocks that say
// who the client is.
func nginxNames(t *testing.T) string {
	return namesIn(t, "nginx", `( *proxy_set_header (X-Forwarded-For|X-Real-IP|Forwarded) .*\n){3}`)
}

func haproxyNames(t *testing.T) string {
	return namesIn(t, "haproxy", ` *option forwardfor\n( *http-request del-header .*\n){2}`)
}

func namesIn(t *testing.T, block, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindString(guideBlocks(t)[block])
	require.NotEmpty(t, found)
	return found
}

// certificate is a self-signed one and its key, in PEM.
func certificate(t *testing.T) (chain, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(k)
	require.NoError(t, err)
	block := func(kind string, b []byte) string {
		var out bytes.Buffer
		require.NoError(t, pem.Encode(&out, &pem.Block{Type: kind, Bytes: b}))
		return out.String()
	}
	return block("CERTIFICATE", der), block("PRIVATE KEY", private)
}
