package server_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/clientip"
)

// TestMistakesThatLetClientsChoose shows what the guide warns of: with each of
// these, a client takes any address it likes, so that it is never held back and
// empties the pools of others.
func TestMistakesThatLetClientsChoose(t *testing.T) {
	appends := "proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n"
	for name, site := range map[string]site{
		"nginx is told nothing":                {build: nginxEdge(nginxNames(t), "")},
		"nginx passes X-Real-IP on":            {build: nginxEdge(nginxNames(t), appends), header: clientip.XRealIP},
		"nginx passes Forwarded on":            {build: nginxEdge(nginxNames(t), appends), header: clientip.Forwarded},
		"haproxy is told nothing":              {build: haproxyEdge(haproxyNames(t), "")},
		"haproxy, if-none":                     {build: haproxyEdge("option forwardfor", "option forwardfor if-none")},
		"haproxy, except the clients' network": {build: haproxyEdge("option forwardfor", "option forwardfor except 127.0.0.0/8")},
		"the clients' network is trusted":      {build: nginxEdge(), trusted: "127.0.0.0/8"},
	} {
		t.Run(name, func(t *testing.T) {
			w := behind(t, site, "127.0.0.1")
			attacker := w.client()
			for i := range 3 * burst {
				forged := fmt.Sprintf("203.0.113.%d", i)
				a := w.attempt(attacker, naming(forged)...)
				require.Equal(t, http.StatusUnauthorized, a.StatusCode)
				require.Equal(t, forged, w.logged(a.Header.Get("X-Request-Id")).Client)
			}
			for range burst {
				require.Equal(t, http.StatusUnauthorized, w.attempt(attacker, naming("198.51.100.7")...).StatusCode)
			}
			w.empty(attacker, naming("198.51.100.7")...)
		})
	}
}

// TestMistakesThatPutClientsTogether: these let nobody choose, but all clients
// are one, and share its pool.
func TestMistakesThatPutClientsTogether(t *testing.T) {
	for name, site := range map[string]site{
		"the proxy is not trusted":        {build: nginxEdge(), trusted: "192.0.2.1"},
		"the proxy writes no such header": {build: nginxEdge(), header: clientip.XRealIP},
		"the inner of two is trusted alone": {build: func(t *testing.T, host, upstream string) string {
			return haproxyEdge("    server one", "    source 127.0.0.78\n    server one")(t, host, nginxInner(t, upstream))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := behind(t, site, "127.0.0.1")
			for range burst {
				a := w.attempt(w.client(), naming("198.51.100.7")...)
				require.Equal(t, http.StatusUnauthorized, a.StatusCode)
				require.Regexp(t, `^127\.0\.0\.(1|78)$`, w.logged(a.Header.Get("X-Request-Id")).Client)
			}
			w.empty(w.client())
		})
	}
}

// TestMistakesWithRequestIDs: whoever writes the id alone decides what it is.
func TestMistakesWithRequestIDs(t *testing.T) {
	for name, c := range map[string]struct {
		build builder
		want  string
	}{
		"nginx passes the client's on":              {nginxEdge("proxy_set_header X-Request-Id $request_id;", ""), "chosen-by-the-client"},
		"haproxy adds a second":                     {haproxyEdge("http-request set-header X-Request-Id %[unique-id]", "unique-id-header X-Request-Id"), ""},
		"haproxy's usual form has other characters": {haproxyEdge("%[uuid()]", "%{+X}o\\ %ci:%cp_%fi:%fp_%Ts_%rt:%pid"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := behind(t, site{build: c.build}, "127.0.0.1")
			a := w.attempt(w.client(), "X-Request-Id: chosen-by-the-client")
			require.Equal(t, http.StatusUnauthorized, a.StatusCode)
			require.Equal(t, c.want, w.logged(a.Header.Get("X-Request-Id")).Correlation)
		})
	}
}
