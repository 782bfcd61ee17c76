package target

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
