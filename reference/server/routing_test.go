package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/wiring"
)

// fate is what becomes of a request.
type fate int

const (
	refused  fate = iota // before any handler
	outside              // by a handler that counts nothing
	counted              // by the chain: a token, an entry, the headers; not the operation
	operates             // the same, and the operation is carried out
	torn                 // an HTTP/2 stream that is reset while its handler runs: counted if it got that far
)

func (f fate) String() string {
	return [...]string{"refused", "outside", "counted", "operates", "torn"}[f]
}

// spelling is one way to send something, and what it has to get.
type spelling struct {
	text string // of a request, see [spelling.request]
	got  string // statuses in their order, and what became of the connection
	fate fate
}

// spellingsOf11 are sent over HTTP/1. A text without a line end is the request
// line up to its version, with the credential and a valid body to come; one that
// ends in an empty line is a whole request; else a body follows. After it comes
// one for /health, so that "kept" says that both ends agree on where the first
// one ended.
func spellingsOf11() []spelling {
	const op = "POST /v1/invoice/calculate"
	const head = op + " HTTP/1.1\nHost: x\nAuthorization: Bearer {key}\n"
	const chunks = "{size}\n{body}\n0\n\n"
	const smuggled = "0\n\nGET /v1/invoice/smuggled HTTP/1.1\nHost: x\nAuthorization: Bearer {key}\n\n"
	return []spelling{
		{op, "200 kept", operates},
		{op + "?x=1&y", "200 kept", operates},
		{op + "??", "200 kept", operates},
		{op + "?x?y", "200 kept", operates},
		{op + "?x=;", "200 kept", operates},
		{op + "?%zz", "200 kept", operates},
		{"POST http://elsewhere.example/v1/invoice/calculate", "200 kept", operates},
		{"POST HTTPS://elsewhere.example:9/v1/invoice/calculate", "200 kept", operates},
		{"POST /%76%31/invoice/calculate", "200 kept", operates},
		{"POST /v1/%69nvoice/calculate", "200 kept", operates},
		{"POST /v1%2finvoice/calculate", "200 kept", operates},
		{"POST /v1/invoice%2Fcalculate", "200 kept", operates},

		{"POST /v1/invoice", "404 closed", counted},
		{"POST /v1/invoice/", "404 closed", counted},
		{"POST /v1/invoice/nope", "404 closed", counted},
		{"POST /v1/invoice/health", "404 closed", counted},
		{op + "/", "404 closed", counted},
		{"POST /v1/invoice/Calculate", "404 closed", counted},
		{op + ";x", "404 closed", counted},
		{op + "%3Bx", "404 closed", counted},
		{op + "%00", "404 closed", counted},
		{op + "%20", "404 closed", counted},
		{op + "%3F", "404 closed", counted},
		{op + "#x", "404 closed", counted},
		{"POST /v1/invoice/a%2F%2Fb", "404 closed", counted},
		{"POST //v1/invoice/calculate", "404 closed", counted},
		{"POST /v1//invoice/calculate", "404 closed", counted},
		{"POST /v1/invoice//calculate", "404 closed", counted},
		{"POST /v1/./invoice/calculate", "404 closed", counted},
		{"POST /v1/invoice/./calculate", "404 closed", counted},
		{"POST /x/../v1/invoice/calculate", "404 closed", counted},
		{"POST /../v1/invoice/calculate", "404 closed", counted},
		{"POST /v1/invoice/../invoice/calculate", "404 closed", counted},
		{"POST /v1/invoice/../../health", "404 closed", counted},
		{"POST /x/%2e%2e/v1/invoice/calculate", "404 closed", counted},
		{"POST /x%2f..%2fv1/invoice/calculate", "404 closed", counted},
		{"POST /v1/invoice/%2e/calculate", "404 closed", counted},
		{"POST http://x//v1/invoice/calculate", "404 closed", counted},

		{"GET /v1/invoice/calculate", "405 closed", counted},
		{"HEAD /v1/invoice/calculate", "405 closed", counted},
		{"OPTIONS /v1/invoice/calculate", "405 closed", counted},
		{"PUT /v1/invoice/calculate", "405 closed", counted},
		{"DELETE /v1/invoice/calculate", "405 closed", counted},
		{"TRACE /v1/invoice/calculate", "405 closed", counted},
		{"CONNECT /v1/invoice/calculate", "405 closed", counted},
		{"CONNECT x:80/v1/invoice/calculate", "405 closed", counted},
		{"NONSENSE /v1/invoice/calculate", "405 closed", counted},
		{"post /v1/invoice/calculate", "405 closed", counted},
		{"PRI /v1/invoice/calculate", "405 closed", counted},
		{"HEAD /v1/invoice/nope", "404 closed", counted},
		{"OPTIONS /v1/invoice/nope", "404 closed", counted},

		{"POST /v1/invoicex", "404 kept", outside},
		{"POST /v1/invoicex/calculate", "404 kept", outside},
		{"POST /v1/invoice;a=b/calculate", "404 kept", outside},
		{"POST /v1;/invoice/calculate", "404 kept", outside},
		{"POST /v1/invoice%3Ba/calculate", "404 kept", outside},
		{"POST /v1/invoice%00/calculate", "404 kept", outside},
		{"POST /V1/Invoice/calculate", "404 kept", outside},
		{"POST /v1/invoice%252Fcalculate", "404 kept", outside},
		{"POST /%2576%2531/invoice/calculate", "404 kept", outside},
		{"POST /v1\\invoice\\calculate", "404 kept", outside},
		{"POST /v1/invoice/..", "404 closed", counted},
		{"POST http://x", "404 kept", outside},
		{"POST /", "404 kept", outside},
		{"POST /v1", "404 kept", outside},
		{"POST *", "404 kept", outside},
		{"CONNECT elsewhere.example:80", "404 kept", outside},
		{"OPTIONS *", "200 kept", refused}, // by net/http, which knows of no resource then
		{"GET /health", "200 kept", outside},
		{"GET /health?x", "200 kept", outside},
		{"GET http://x/health", "200 kept", outside},
		{"GET /%68ealth", "200 kept", outside},
		{"HEAD /health", "200 kept", outside},
		{"POST /health", "405 kept", outside},
		{"GET /ready", "200 kept", outside},
		{"GET /openapi.json", "200 kept", outside},
		{"GET /health/", "404 kept", outside},
		{"GET //health", "404 kept", outside},
		{"GET /./health", "404 kept", outside},
		{"GET /v1/../health", "404 kept", outside},
		{"GET /v1/invoice/../../health", "404 closed", counted},

		{"POST v1/invoice/calculate", "400 closed", refused},
		{"POST  /v1/invoice/calculate", "400 closed", refused},
		{"POST /v1/invoice/calculate HTTP/1.1 x", "400 closed", refused},
		{"POST /v1/invoice/%zz", "400 closed", refused},
		{"POST /v1/invoice/\x01", "400 closed", refused},
		{"CONNECT ", "404 kept", outside},
		{"POST ", "400 closed", refused},
		{"PO ST /v1/invoice/calculate", "400 closed", refused},
		{"", "400 closed", refused},

		// Versions and what a connection is kept for.
		{op + " HTTP/1.0\nAuthorization: Bearer {key}\nContent-Length: {length}\n\n{body}", "200 closed", operates},
		{op + " HTTP/1.0\nConnection: keep-alive\nAuthorization: Bearer {key}\nContent-Length: {length}\n\n{body}", "200 closed", operates},
		{op + " HTTP/1.0\nAuthorization: Bearer {key}\nTransfer-Encoding: chunked\n\n" + chunks, "422 closed", counted},
		{op + " HTTP/1.0\nConnection: keep-alive\nAuthorization: Bearer {key}\nTransfer-Encoding: chunked\n\n" + smuggled, "422 closed", counted},
		{op + " HTTP/1.2\nHost: x\nAuthorization: Bearer {key}\nContent-Length: {length}\n\n{body}", "200 kept", operates},
		{op + " HTTP/2.0\nHost: x\nAuthorization: Bearer {key}\nContent-Length: {length}\n\n{body}", "505 closed", refused},
		{op + " HTTP/0.9\n\n", "505 closed", refused},
		{"POST /v1/invoice/calculate\n\n", "400 closed", refused},
		{"PRI * HTTP/2.0\n\nSM\n\n", "404 closed", outside},
		{"PRI * HTTP/2.0\nAuthorization: Bearer {key}\n\nSM\n\n", "400 closed", refused},
		{head + "Connection: close\nContent-Length: {length}\n\n{body}", "200 closed", operates},
		{head + "Connection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\nContent-Length: {length}\n\n{body}", "200 kept", operates},
		{head + "Connection: Upgrade\nUpgrade: websocket\nContent-Length: {length}\n\n{body}", "200 kept", operates},
		{head + "Content-Length: {length}\n\n{body}" + head + "Content-Length: 2\n\n{}" + "GET /v1/invoice/x HTTP/1.1\nHost: x\nAuthorization: Bearer {key}\n\n", "200 422 404 kept", operates},
		{op + " HTTP/1.1\nAuthorization: Bearer {key}\n\n", "400 closed", refused},
		{head + "Host: y\n\n", "400 closed", refused},

		// Expectations.
		{head + "Expect: 100-continue\nContent-Length: {length}\n\n{body}", "100 200 kept", operates},
		{head + "Expect: 100-Continue\nTransfer-Encoding: chunked\n\n" + chunks, "100 200 closed", operates},
		{"GET /v1/invoice/x HTTP/1.1\nHost: x\nAuthorization: Bearer {key}\nExpect: 100-continue\n\n", "404 kept", counted},
		{"POST /v1/invoice/x HTTP/1.1\nHost: x\nAuthorization: Bearer {key}\nExpect: 100-continue\nContent-Length: {length}\n\n{body}", "404 closed", counted},
		{head + "Expect: nonsense\nContent-Length: {length}\n\n{body}", "417 closed", refused},
		{head + "Expect: 100-continue, nonsense\nContent-Length: {length}\n\n{body}", "100 200 kept", operates},

		// Framings, and what is smuggled in by them.
		{head + "Transfer-Encoding: chunked\n\n" + chunks, "200 closed", operates},
		{head + "Transfer-Encoding: chunked\n\n{size};ext=1\n{body}\n0\nX-Trailer: 1\n\n", "200 closed", operates},
		{head + "Transfer-Encoding: Chunked\n\n" + chunks, "200 closed", operates},
		{head + "Transfer-Encoding: chunked\nContent-Length: {length}\n\n" + chunks, "200 closed", operates},
		{head + "Content-Length: 6\nTransfer-Encoding: chunked\n\n" + smuggled, "422 closed", counted},
		{head + "Content-Length: 6\nTransfer-Encoding:chunked\n\n" + smuggled, "422 closed", counted},
		{"GET /health HTTP/1.1\nHost: x\nContent-Length: 6\nTransfer-Encoding: chunked\n\n" + smuggled, "200 closed", outside},
		{head + "Transfer-Encoding: xchunked\n\n" + chunks, "501 closed", refused},
		{head + "Transfer-Encoding: chunked, identity\n\n" + chunks, "501 closed", refused},
		{head + "Transfer-Encoding: identity, chunked\n\n" + chunks, "501 closed", refused},
		{head + "Transfer-Encoding: identity\nContent-Length: {length}\n\n{body}", "501 closed", refused},
		{head + "Transfer-Encoding: gzip, chunked\n\n" + chunks, "501 closed", refused},
		{head + "Transfer-Encoding: chunked\nTransfer-Encoding: chunked\n\n" + chunks, "501 closed", refused},
		{head + "Transfer-Encoding: \x0bchunked\n\n" + chunks, "400 closed", refused},
		{head + "Transfer-Encoding: \"chunked\"\n\n" + chunks, "501 closed", refused},
		{head + "Transfer-Encoding:\n chunked\n\n" + chunks, "200 closed", operates},
		{head + "Transfer-Encoding : chunked\n\n" + chunks, "400 closed", refused},
		{head + "Transfer_Encoding: chunked\nContent-Length: {length}\n\n{body}", "200 kept", operates},
		{head + "Content-Length: {length}\nContent-Length: {length}\n\n{body}", "200 kept", operates},
		{head + "Content-Length: {length}\nContent-Length: 5\n\n{body}", "400 closed", refused},
		{head + "Content-Length: {length}, {length}\n\n{body}", "400 closed", refused},
		{head + "Content-Length: +{length}\n\n{body}", "400 closed", refused},
		{head + "Content-Length: -1\n\n{body}", "400 closed", refused},
		{head + "Content-Length: 0x10\n\n{body}", "400 closed", refused},
		{head + "Content-Length:\n\n{body}", "400 closed", refused},
		{head + "Content-Length : {length}\n\n{body}", "400 closed", refused},
		{head + "Content-Length: 99999999999999999999\n\n{body}", "400 closed", refused},
		{head + "X-Folded: a\n b\nContent-Length: {length}\n\n{body}", "200 kept", operates},
		{op + " HTTP/1.1\nHost: x\nAuthorization: Bearer\n {key}\nContent-Length: {length}\n\n{body}", "200 kept", operates},
		{op + " HTTP/1.1\n X-Begins: folded\nHost: x\nAuthorization: Bearer {key}\nContent-Length: {length}\n\n{body}", "400 closed", refused},
		{head + "X-Null: a\x00b\nContent-Length: {length}\n\n{body}", "400 closed", refused},
		{head + ": nameless\nContent-Length: {length}\n\n{body}", "400 closed", refused},
		{head + "no colon\nContent-Length: {length}\n\n{body}", "400 closed", refused},
		{head + "X-Long: {long}\nContent-Length: {length}\n\n{body}", "431 closed", refused},
		{"\n" + head + "Content-Length: {length}\n\n{body}", "400 closed", refused},
		{head + "Transfer-Encoding: chunked\n\nno size\n", "422 closed", counted},
		{head + "Transfer-Encoding: chunked\n\n-1\n{body}\n0\n\n", "422 closed", counted},
		{head + "Transfer-Encoding: chunked\n\n0x5\n{body}\n0\n\n", "422 closed", counted},
		{head + "Transfer-Encoding: chunked\n\n5\n{body}\n0\n\n", "422 closed", counted},
		{head + "Transfer-Encoding: chunked\n\n99999999999999999\n", "422 closed", counted},
	}
}

// TestRouting sends each spelling as it is, through a raw socket. It is either
// counted and limited, for one token and with the bucket's headers, or answered
// by what lies outside the quotas, or refused before any handler; and nothing but
// the operation reaches the engine (SCOPE-1 to SCOPE-4, LOG-8).
//
// The table with what each one got: go test -v -run TestRouting ./reference/server
func TestRouting(t *testing.T) {
	r := newRouting(t, server.Transport{})
	for _, s := range spellingsOf11() {
		for _, ending := range []string{"\r\n", "\n"} {
			if ending == "\n" && s.text != "POST /v1/invoice/calculate" && s.text != "POST /v1/invoice/nope" {
				continue // bare line feeds end lines as well, in heads
			}
			r.one(s, strconv.Quote(s.text)+map[bool]string{true: " with bare LF"}[ending == "\n"], func(f *fixture, key string) (string, []map[string]string) {
				return f.converse(f.dial(), s.request(key, ending))
			})
		}
	}
	r.print()
}

// request is the text of a spelling, with another request after it.
func (s spelling) request(key, ending string) string {
	text := s.text
	if !strings.Contains(text, "\n") {
		text += " HTTP/1.1\nHost: x\nAuthorization: Bearer {key}\nContent-Length: {length}\n\n{body}"
	}
	if !strings.HasPrefix(s.text, "PRI * ") {
		text += "GET /health HTTP/1.1\nHost: x\nConnection: close\n\n"
	}
	text = strings.ReplaceAll(text, "\n", ending)
	return strings.NewReplacer("{key}", key, "{body}", goodInvoice, "{length}", strconv.Itoa(len(goodInvoice)),
		"{size}", strconv.FormatInt(int64(len(goodInvoice)), 16), "{long}", strings.Repeat("x", 64<<10)).Replace(text)
}

// converse sends text and reads answers until the connection ends.
func (f *fixture) converse(c net.Conn, text string) (got string, headers []map[string]string) {
	f.Helper()
	defer c.Close()
	// A server that has refused what it read so far may not take the rest.
	if _, err := io.WriteString(c, text); err != nil {
		require.True(f, errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET), err)
	}
	method, _, _ := strings.Cut(text, " ")
	r := bufio.NewReader(c)
	var words []string
	closed, healthy := false, false
	for {
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		if err != nil {
			require.True(f, errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET), "%v after %v", err, words)
			break
		}
		a := finish(f.T, resp)
		healthy = a.body == `{"status":"ok"}`
		closed = a.Close
		words = append(words, strconv.Itoa(a.StatusCode))
		if a.StatusCode < 200 {
			continue
		}
		method = http.MethodGet
		h := map[string]string{}
		for name := range a.Header {
			h[strings.ToLower(name)] = a.Header.Get(name)
		}
		headers = append(headers, h)
	}
	require.True(f, closed, "the connection ended without a word: %v", words)
	// The last answer is that of /health, if the connection was kept for it.
	if n := len(words); n > 1 && healthy && words[n-2] != "100" {
		return strings.Join(words[:n-1], " ") + " kept", headers[:len(headers)-1]
	}
	return strings.Join(words, " ") + " closed", headers
}

// routing is a server that counts who gets how far.
type routing struct {
	*fixture
	handled atomic.Int64 // requests that reached a handler
	lines   []string
}

func newRouting(t *testing.T, transport server.Transport) *routing {
	r := &routing{}
	r.fixture = start(t, server.Config{Transport: transport, Alter: func(p *wiring.Parts) {
		inScope := p.InScope
		p.InScope = func(path string) bool { r.handled.Add(1); return inScope(path) }
	}})
	return r
}

// one sends one spelling as a user of its own and looks at what that left.
func (r *routing) one(s spelling, name string, send func(f *fixture, key string) (string, []map[string]string)) {
	r.T.Run(name, func(t *testing.T) {
		f := r.in(t)
		u := f.newUser("free")
		before := r.handled.Load()
		got, headers := send(f, u.Keys[0])
		line := fmt.Sprintf("%-9s %-24s %s", s.fate, got, name)
		if len(line) > 160 {
			line = line[:160] + "…"
		}
		r.lines = append(r.lines, line)
		require.Equal(t, s.got, got)
		if s.fate == refused {
			require.LessOrEqual(t, r.handled.Load()-before, int64(strings.Count(s.got, "kept")), "only /health was handled")
		}
		answers := 0
		for _, h := range headers {
			inScope := h["ratelimit-limit"] != ""
			require.Equal(t, s.fate == counted || s.fate == operates, inScope, h)
			require.Equal(t, inScope, h["x-request-id"] != "")
			if inScope {
				answers++
			}
		}
		f.idle()
		a := f.audit(u)
		if s.fate == torn {
			for _, e := range a.Entries {
				require.Contains(t, []int{422, 499}, e.Status)
				if strings.Contains(e.Raw, `"decision"`) {
					answers++
				}
			}
		} else {
			require.Len(t, a.Entries, answers, "an entry for each")
		}
		require.EqualValues(t, map[bool]int{true: 1}[s.fate == operates], a.EngineCalls)
		require.Equal(t, strconv.Itoa(10-1-answers), f.calculate(u.Keys[0]).Header.Get("RateLimit-Remaining"), "a token for each")
	})
}

func (r *routing) print() {
	for _, line := range r.lines {
		r.Log(line)
	}
}
