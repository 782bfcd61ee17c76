package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/server"
)

// TestRouting sends each spelling as it is, through a raw socket. Whatever
// decodes to a path in scope is served or refused by the chain, with the bucket's
// headers and for one token; nothing is redirected, and nothing else gets near
// the engine (SCOPE-1 to SCOPE-4).
func TestRouting(t *testing.T) {
	f := start(t, server.Config{})
	const (
		in  = true
		out = false
	)
	for _, c := range []struct {
		line    string // method and request target
		status  int
		inScope bool
	}{
		{"POST /v1/invoice/calculate", 200, in},
		{"POST /v1/invoice/calculate?x=1&y", 200, in},
		{"POST /v1/invoice/calculate??", 200, in},
		{"POST /v1/invoice/calculate?x=;", 200, in},
		{"POST http://elsewhere.example/v1/invoice/calculate", 200, in},
		{"POST /%76%31/invoice/calculate", 200, in},
		{"POST /v1/%69nvoice/calculate", 200, in},
		{"POST /v1%2finvoice/calculate", 200, in},
		{"POST /v1/invoice%2Fcalculate", 200, in},

		{"POST /v1/invoice", 404, in},
		{"POST /v1/invoice/", 404, in},
		{"POST /v1/invoice/nope", 404, in},
		{"POST /v1/invoice/health", 404, in},
		{"POST /v1/invoice/calculate/", 404, in},
		{"POST /v1/invoice/Calculate", 404, in},
		{"POST /v1/invoice/calculate;x", 404, in},
		{"POST /v1/invoice/calculate%3Bx", 404, in},
		{"POST /v1/invoice/calculate%00", 404, in},
		{"POST /v1/invoice/calculate%20", 404, in},
		{"POST /v1/invoice/calculate#x", 404, in},
		{"POST /v1/invoice/a%2F%2Fb", 404, in},
		{"POST //v1/invoice/calculate", 404, in},
		{"POST /v1//invoice/calculate", 404, in},
		{"POST /v1/invoice//calculate", 404, in},
		{"POST /v1/./invoice/calculate", 404, in},
		{"POST /v1/invoice/./calculate", 404, in},
		{"POST /x/../v1/invoice/calculate", 404, in},
		{"POST /v1/invoice/../invoice/calculate", 404, in},
		{"POST /v1/invoice/../../health", 404, in},
		{"POST /x/%2e%2e/v1/invoice/calculate", 404, in},
		{"POST /v1/invoice/%2e/calculate", 404, in},

		{"GET /v1/invoice/calculate", 405, in},
		{"HEAD /v1/invoice/calculate", 405, in},
		{"OPTIONS /v1/invoice/calculate", 405, in},
		{"PUT /v1/invoice/calculate", 405, in},
		{"DELETE /v1/invoice/calculate", 405, in},
		{"CONNECT /v1/invoice/calculate", 405, in},
		{"NONSENSE /v1/invoice/calculate", 405, in},
		{"post /v1/invoice/calculate", 405, in},
		{"HEAD /v1/invoice/nope", 404, in},
		{"OPTIONS /v1/invoice/nope", 404, in},

		{"POST /v1/invoicex", 404, out},
		{"POST /v1/invoicex/calculate", 404, out},
		{"POST /v1/invoice;a=b/calculate", 404, out},
		{"POST /v1;/invoice/calculate", 404, out},
		{"POST /v1/invoice%3Ba/calculate", 404, out},
		{"POST /V1/Invoice/calculate", 404, out},
		{"POST /v1/invoice%252Fcalculate", 404, out},
		{"POST /v1\\invoice\\calculate", 404, out},
		{"POST /", 404, out},
		{"POST /v1", 404, out},
		{"CONNECT elsewhere.example:80", 404, out},
		{"GET /health", 200, out},
		{"HEAD /health", 200, out},
		{"POST /health", 405, out},
		{"GET /ready", 200, out},
		{"GET /openapi.json", 200, out},
		{"GET /health/", 404, out},
		{"GET //health", 404, out},
		{"GET /v1/../health", 404, out},
	} {
		t.Run(c.line, func(t *testing.T) {
			f := f.in(t)
			u := f.newUser("free")
			text := fmt.Sprintf("%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
				c.line, u.Keys[0], len(goodInvoice), goodInvoice)
			conn := f.dial()
			_, err := conn.Write([]byte(text))
			require.NoError(t, err)
			method, _, _ := strings.Cut(c.line, " ")
			a := readAnswerTo(t, conn, method)
			require.Equal(t, c.status, a.StatusCode, a.body)
			if !c.inScope {
				require.Empty(t, a.Header.Get("RateLimit-Limit"))
				require.Equal(t, "9", f.calculate(u.Keys[0]).Header.Get("RateLimit-Remaining"), "no token was spent")
				return
			}
			require.Equal(t, "10", a.Header.Get("RateLimit-Limit"))
			require.Equal(t, "9", a.Header.Get("RateLimit-Remaining"))
			require.Equal(t, c.status, f.logged(a.Header.Get("X-Request-Id")).Status)
			require.Equal(t, "8", f.calculate(u.Keys[0]).Header.Get("RateLimit-Remaining"), "one token was spent")
			switch c.status {
			case 404, 405:
				if method != http.MethodHead {
					require.Equal(t, map[int]string{404: "NOT_FOUND", 405: "METHOD_NOT_ALLOWED"}[c.status], a.code(t))
				}
				require.Equal(t, c.status == 405, a.Header.Get("Allow") == "POST")
			}
		})
	}
	f.idle()
}

// TestOutsideQuotasWithAnEmptyBucket: operational paths know no user (SCOPE-2).
func TestOutsideQuotasWithAnEmptyBucket(t *testing.T) {
	f := start(t, server.Config{})
	u := f.newUser("free")
	for f.calculate(u.Keys[0]).StatusCode == http.StatusOK {
	}
	for _, path := range []string{"/health", "/ready", "/openapi.json"} {
		for range 20 {
			a := f.send(http.MethodGet, path, u.Keys[0], "")
			require.Equal(t, http.StatusOK, a.StatusCode)
			require.Equal(t, "application/json", a.Header.Get("Content-Type"))
			for name := range a.Header {
				require.NotContains(t, name, "Ratelimit-")
			}
		}
	}
}
