package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/server"
)

// spellingOf2 is one way to send something over HTTP/2: fields that replace or
// follow those of the valid operation, and how the stream has to end.
type spellingOf2 struct {
	fields fields
	body   string
	got    string
	fate   fate
}

func spellingsOf2() []spellingOf2 {
	path := func(p string) fields { return fields{":path", p} }
	method := func(m string) fields { return fields{":method", m} }
	return []spellingOf2{
		{nil, goodInvoice, "200", operates},
		{path("/v1/invoice/calculate??"), goodInvoice, "200", operates},
		{path("/%76%31/invoice/calculate"), goodInvoice, "200", operates},
		{path("/v1%2finvoice/calculate"), goodInvoice, "200", operates},
		{path("http://x/v1/invoice/calculate"), goodInvoice, "200", operates},
		{path("//v1/invoice/calculate"), goodInvoice, "404", counted},
		{path("/x/../v1/invoice/calculate"), goodInvoice, "404", counted},
		{path("/v1/invoice/%2e/calculate"), goodInvoice, "404", counted},
		{path("/v1/invoice/calculate/"), goodInvoice, "404", counted},
		{path("/v1/invoice/calculate;x"), goodInvoice, "404", counted},
		{path("/v1/invoice/calculate%00"), goodInvoice, "404", counted},
		{path("/v1/invoice/calculate#x"), goodInvoice, "404", counted},
		{path("/v1/invoice/../../health"), "", "404", counted},
		{method("GET"), "", "405", counted},
		{method("HEAD"), "", "405", counted},
		{method("OPTIONS"), "", "405", counted},
		{method("PRI"), "", "405", counted},

		{path("/V1/Invoice/calculate"), goodInvoice, "404", outside},
		{path("/v1/invoice%3Ba/calculate"), goodInvoice, "404", outside},
		{path("/v1/invoice%252Fcalculate"), goodInvoice, "404", outside},
		{fields{":method", "GET", ":path", "/health"}, "", "200", outside},
		{fields{":method", "GET", ":path", "/%68ealth"}, "", "200", outside},
		{fields{":method", "GET", ":path", "//health"}, "", "404", outside},
		{path("*"), "", "404", outside},
		{fields{":method", "OPTIONS", ":path", "*"}, "", "200", refused},

		{path("/v1/invoice/%zz"), "", "reset PROTOCOL_ERROR", refused},
		{path("v1/invoice/calculate"), "", "reset PROTOCOL_ERROR", refused},
		{path(""), "", "reset PROTOCOL_ERROR", refused},
		{fields{":method", ""}, "", "reset PROTOCOL_ERROR", refused},
		{fields{":method", "CONNECT"}, "", "reset PROTOCOL_ERROR", refused},
		{fields{":method", "CONNECT", ":scheme", "-", ":path", "-", ":authority", "x:80"}, "", "404", outside},
		{fields{":scheme", "-"}, "", "reset PROTOCOL_ERROR", refused},
		{fields{":unknown", "x"}, "", "reset PROTOCOL_ERROR", refused},
		{fields{"connection", "keep-alive"}, "", "400", refused},
		{fields{"transfer-encoding", "chunked"}, goodInvoice, "400", refused},
		{fields{"Upper", "case"}, "", "reset PROTOCOL_ERROR", refused},
		{fields{"x-line", "a\r\nb"}, "", "reset PROTOCOL_ERROR", refused},
		{fields{"x-long", strings.Repeat("x", 6<<10), "x-long", strings.Repeat("y", 6<<10), "x-long", strings.Repeat("z", 6<<10)}, "", "431", refused},
		{fields{"x-long", strings.Repeat("x", 64<<10)}, "", "goaway COMPRESSION_ERROR", refused},
		{fields{"expect", "100-continue"}, goodInvoice, "100 200", operates},
		{fields{"expect", "nonsense"}, goodInvoice, "200", operates},
		{fields{"content-length", fmt.Sprint(len(goodInvoice))}, goodInvoice, "200", operates},
		{fields{"content-length", "5"}, goodInvoice, "reset PROTOCOL_ERROR", torn},
		{fields{"content-length", "500"}, goodInvoice, "422", counted},
		{fields{"content-length", "5", "content-length", fmt.Sprint(len(goodInvoice))}, goodInvoice, "reset PROTOCOL_ERROR", torn},
		{fields{"te", "trailers"}, goodInvoice, "200", operates},
	}
}

// TestRoutingOverHTTP2 is TestRouting for HTTP/2, over TLS and without: what
// cannot be said there is refused stream by stream, and the rest gets what it
// gets over HTTP/1.
func TestRoutingOverHTTP2(t *testing.T) {
	cert, key := writePair(t, t.TempDir(), 1)
	for over, transport := range map[string]server.Transport{
		"TLS": {Certificate: cert, Key: key},
		"h2c": {H2C: true},
	} {
		t.Run(over, func(t *testing.T) {
			r := newRouting(t, transport)
			for _, s := range spellingsOf2() {
				name := strings.Join(s.fields, " ")
				if len(name) > 60 {
					name = name[:60] + "…"
				}
				r.one(spelling{got: s.got, fate: s.fate}, fmt.Sprintf("HTTP/2 %s %q", over, name), func(f *fixture, key string) (string, []map[string]string) {
					h := f.h2(over)
					defer h.conn.Close()
					a := h.answer(h.send(replaced(operation(key), s.fields), s.body))
					if a.header[":none"] == "" && len(a.header) == 0 {
						return a.status, nil
					}
					return a.status, []map[string]string{a.header}
				})
			}
			r.print()
		})
	}
}

// replaced is f with the values of with, and what else is there after it; a
// pseudo-header of the value "-" is left out.
func replaced(f, with fields) (all fields) {
	var after fields
	value := map[string]string{}
	for i := 0; i < len(with); i += 2 {
		if strings.HasPrefix(with[i], ":") && with[i] != ":unknown" {
			value[with[i]] = with[i+1]
		} else {
			after = append(after, with[i], with[i+1])
		}
	}
	for i := 0; i < len(f); i += 2 {
		v, ok := value[f[i]]
		if !ok {
			v = f[i+1]
		}
		if v != "-" {
			all = append(all, f[i], v)
		}
	}
	if len(after) > 0 && after[0] == ":unknown" {
		return append(after, all...)
	}
	return append(all, after...)
}

// h2 opens an HTTP/2 connection over TLS or without.
func (f *fixture) h2(over string) *h2 {
	f.Helper()
	const window = 1 << 20
	if over == "h2c" {
		return newH2(f.T, f.dial(), window)
	}
	return newH2(f.T, f.dialTLS("h2"), window)
}

// TestProtocols: which one a client gets is said by configuration alone.
func TestProtocols(t *testing.T) {
	cert, key := writePair(t, t.TempDir(), 1)
	t.Run("in the clear", func(t *testing.T) {
		f := start(t, server.Config{})
		got, _ := f.converse(f.dial(), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
		require.Equal(t, "404 closed", got, "HTTP/2 only when told")
	})
	t.Run("TLS", func(t *testing.T) {
		f := start(t, server.Config{Transport: server.Transport{Certificate: cert, Key: key}})
		require.True(t, strings.HasPrefix(f.URL(), "https://"))
		got, _ := f.converse(f.dialTLS("http/1.1"), "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		require.Equal(t, "200 closed", got)
		got, _ = f.converse(f.dial(), "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		require.Equal(t, "400 closed", got, "not in the clear")
	})
}
