package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/server"
)

// TestOutsideQuotasIsNeverLimited: neither an empty bucket nor a full cap nor an
// address without attempts left matters to an operational route, in any spelling
// that reaches it (SCOPE-2). What only looks like one is limited.
func TestOutsideQuotasIsNeverLimited(t *testing.T) {
	f := start(t, server.Config{Transport: h2c})
	u := f.empty(f.newUser("free"))
	full := f.newUser("free")
	f.gate(http.MethodPut, full, wire.PlaceEngine)
	f.hold(full)
	f.hold(full)
	f.waiting(full, wire.PlaceEngine, freeCap)
	const bad = "isk_free_0123456789abcdef"
	for f.calculate(bad).StatusCode == http.StatusUnauthorized {
	}
	keys := map[string]string{"emptied": u.Keys[0], "full": full.Keys[1], "unknown": bad, "none": ""}
	for name, key := range keys {
		for _, line := range []string{
			"GET /health", "GET /health?", "GET /health??x", "GET /%68ealth", "GET http://x/health", "GET https://y/ready", "HEAD /ready",
			"GET /ready", "GET /openapi.json", "GET /openapi%2ejson",
		} {
			for range 15 { // more than any burst here
				text := line + " HTTP/1.1\r\nHost: x\r\n"
				if key != "" {
					text += "Authorization: Bearer " + key + "\r\n"
				}
				got, headers := f.converse(f.dial(), text+"Connection: close\r\n\r\n")
				require.Equal(t, "200 closed", got, "%s, %s key", line, name)
				for header := range headers[0] {
					require.False(t, strings.HasPrefix(header, "ratelimit-"), header)
				}
			}
		}
		h := f.h2("h2c")
		for range 15 {
			a := h.answer(h.send(fields{":method", "GET", ":scheme", "http", ":authority", "x", ":path", "/health", "authorization", "Bearer " + key}, ""))
			require.Equal(t, "200", a.status)
			require.NotContains(t, a.header, "ratelimit-limit")
		}
		h.conn.Close()
		for _, path := range []string{"/v1/invoice/health", "/v1/invoice/ready", "/v1/invoice/../../health"} {
			got, _ := f.converse(f.dial(), at("GET "+path, key, "Connection: close\r\n"))
			require.Equal(t, "429 closed", got, "%s, %s key", path, name)
		}
	}
	f.gate(http.MethodDelete, full, wire.PlaceEngine)
	f.idle()
}
