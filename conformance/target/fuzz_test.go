package target

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/invoicespec/brimline/internal/strictyaml"
)

// FuzzKeys looks for keys files that crash, whose errors show what is in them or
// take more than a line, and for keys that do not survive being written.
func FuzzKeys(f *testing.F) {
	f.Add("user,plan,key\nu1,free,k1\n")
	f.Add("\ufeffuser,plan,key\r\n\"u,1\",\"a\"\"b\",k2\r\n")
	f.Add("user,plan,key\nu1,free\n")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := parseKeys("k.csv", []byte(text))
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		again, err := parseKeys("k.csv", encodeKeys(keys))
		require.NoError(t, err)
		for i := range keys { // a reader of CSV takes \r\n in a name for \n
			keys[i].User, keys[i].Plan = strings.ReplaceAll(keys[i].User, "\r\n", "\n"), strings.ReplaceAll(keys[i].Plan, "\r\n", "\n")
		}
		require.Equal(t, keys, again)
	})
}

// FuzzMeters looks for pages of metrics that crash, and for errors that take more
// than a line.
func FuzzMeters(f *testing.F) {
	f.Add("# TYPE a_total counter\na_total{kind=\"x\"} 3\n")
	f.Add("# TYPE c histogram\nc_bucket{le=\"0.1\"} 1\nc_bucket{le=\"+Inf\"} 2\nc_sum 5\nc_count 2\n")
	f.Add("# TYPE s summary\ns{quantile=\"0.5\"} 1\ns_count 2\nu NaN\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parseMeters("page", []byte(text))
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		for _, m := range all {
			require.NotEmpty(t, m.Name)
			require.NotNil(t, m.Labels)
		}
	})
}

// FuzzFile looks for target files that crash, or whose errors take more than a
// line.
func FuzzFile(f *testing.F) {
	f.Add("base-urls: [http://a]\ncredential: {header: A, template: \"{key}\"}\noperations: {valid: {method: GET, path: /}}\nallowances: {free: {requests-per-minute: 1, burst: 1, concurrency: 1}}\n")
	f.Add("operations: {invalid: {method: GET, path: /, expect: 0}}\n")
	f.Add("base-urls: [https://a]\ntls: {client-key: k}\nusers: [{id: u, plan: free, keys: [{env: E}, k]}]\nheaders: {Retry-After: X}\nreset-is: date\nerror-body: {message: a.b}\nanswers: {NOT_FOUND: {status: 410}}\noperations: {failing: {method: GET, path: /, expect: 0}}\n")
	f.Fuzz(func(t *testing.T, text string) {
		var file File
		doc, err := strictyaml.Parse("t.yaml", []byte(text), &file)
		if err == nil && file.Operations.Valid.BodyFile == "" && (file.Operations.Invalid == nil || file.Operations.Invalid.BodyFile == "") && (file.Operations.Failing == nil || file.Operations.Failing.BodyFile == "") {
			err = file.makesSense(doc)
		}
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
		}
	})
}

// FuzzCompose makes sure that whatever a scenario asks for goes out as one
// request, or not at all.
func FuzzCompose(f *testing.F) {
	f.Add("GET", "/a", "X-A", "b", "Bearer k", "body")
	f.Add("GET", "/a\r\n\r\nGET /b", "X", "a\r\nB: c", "k", "")
	base := &url.URL{Scheme: "http", Host: "h:1"}
	f.Fuzz(func(t *testing.T, method, path, name, value, credential, body string) {
		r := Request{Method: method, Path: path, Header: http.Header{name: {value}}, Body: []byte(body)}
		m, err := compose(base, r, [][2]string{{"Authorization", credential}}, "brimline", false, HTTP1)
		if err != nil || isOurs(name) { // those a caller spells at its own risk
			return
		}
		b := bufio.NewReader(io.MultiReader(bytes.NewReader(m.spell()), bytes.NewReader(m.body)))
		lines := 0
		for {
			line, err := b.ReadString('\n')
			require.NoError(t, err)
			require.True(t, strings.HasSuffix(line, "\r\n"))
			require.Equal(t, 1, strings.Count(line, "\r"))
			if line == "\r\n" {
				break
			}
			lines++
		}
		rest, err := io.ReadAll(b)
		require.NoError(t, err)
		require.Equal(t, body, string(rest))
		require.Equal(t, 1, strings.Count(string(m.spell()), "\r\n\r\n"))
		require.GreaterOrEqual(t, lines, 4)
	})
}

// canned is the other side of a connection that says one thing and hears nothing.
type canned struct {
	net.Conn
	io.Reader
}

func (c canned) Read(b []byte) (int, error)      { return c.Reader.Read(b) }
func (canned) Write(b []byte) (int, error)       { return len(b), nil }
func (canned) SetDeadline(time.Time) error       { return nil }
func (c canned) SetReadDeadline(time.Time) error { return nil }

// FuzzHTTP2 looks for frames that crash a conversation, that it does not come to
// an end with, and for answers that break its bounds.
func FuzzHTTP2(f *testing.F) {
	frames := func(write func(*http2.Framer)) []byte {
		var b bytes.Buffer
		fr := http2.NewFramer(&b, nil)
		fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1})
		write(fr)
		return b.Bytes()
	}
	f.Add(frames(func(fr *http2.Framer) {
		fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}, EndHeaders: true}) // :status 200
		fr.WriteWindowUpdate(1, 1<<30)
		fr.WriteData(1, true, []byte("hello"))
	}))
	f.Add(frames(func(fr *http2.Framer) {
		fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x88}})
		fr.WriteContinuation(1, true, []byte{0x0f, 0x0d, 0x01, '2'}) // content-length 2
		fr.WritePing(false, [8]byte{})
		fr.WriteRSTStream(1, http2.ErrCodeNo)
	}))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		c := newHTTP2(&line{Conn: canned{Reader: bytes.NewReader(said)}}, "http")
		if c.greet(t.Context()) != nil {
			return
		}
		c.ask(message{method: "POST", path: "/", host: "h", body: []byte("body")}, 2)
		interims := 0
		a, err := c.read(func() int64 { return 0 }, func(int) { interims++ })
		require.LessOrEqual(t, interims, maxInterim)
		require.LessOrEqual(t, len(a.body), maxBody)
		if err == nil {
			require.GreaterOrEqual(t, a.status, 200)
			c.more(4)
			c.awaitClose()
		}
	})
}
