package target_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
)

func TestCurl(t *testing.T) {
	up := answering(t, 200)
	f := fileFor(up)
	f.Operations.Valid.Body, f.Operations.Valid.BodyFile = "", folder(t, map[string]string{"ok.json": `{"a":1}`})+"/ok.json"
	tg := open(t, f)
	u := lease(t, tg, "free", 1)
	valid := tg.Valid()
	other := tg.Valid()
	other.Body = []byte(`it's {"b":2}`)
	large := tg.Valid()
	large.Body = []byte(strings.Repeat("x", 500))
	invalid, _ := tg.Invalid()
	for name, c := range map[string]struct {
		r    target.Request
		want string
	}{
		"a body from a file": {valid, "curl -i -X POST URL/v1/invoice/calculate -H 'Authorization: Bearer isk_free_…' -H 'X-Kind: it'\\''s valid' -H 'Content-Type: application/json' --data-binary @" + f.Operations.Valid.BodyFile},
		"another body":       {other, "curl -i -X POST URL/v1/invoice/calculate -H 'Authorization: Bearer isk_free_…' -H 'X-Kind: it'\\''s valid' -H 'Content-Type: application/json' -d 'it'\\''s {\"b\":2}'"},
		"a large body":       {large, "curl -i -X POST URL/v1/invoice/calculate -H 'Authorization: Bearer isk_free_…' -H 'X-Kind: it'\\''s valid' -H 'Content-Type: application/json' --data-binary @body  # 500 bytes"},
		"the invalid one":    {invalid, "curl -i -X POST URL/v1/invoice/calculate -H 'Authorization: Bearer isk_free_…' -H 'Content-Type: application/json' -d '{}'"},
		"GET, no key":        {target.Request{Method: "GET", Path: "/health", Authorization: []string{}}, "curl -i URL/health"},
		"HEAD":               {target.Request{Method: "HEAD", Path: "/a?b=c&d", Authorization: []string{}}, "curl -i -I 'URL/a?b=c&d'"},
		"a path as it is":    {target.Request{Method: "GET", Path: "//v1/./x", Authorization: []string{}}, "curl -i --path-as-is URL//v1/./x"},
		"an absolute target": {target.Request{Method: "GET", Path: "http://a/b", Authorization: []string{}}, "curl -i --request-target 'http://a/b' URL"},
		"bad credentials": {target.Request{Method: "GET", Path: "/", Authorization: []string{tg.Credential(theKey[:len(theKey)-1] + "x"), "Basic dXNlcjppc2tfZnJlZV8=", "Bearer unknown"}},
			"curl -i URL/ -H 'Authorization: Bearer isk_free_…' -H 'Authorization: Basic …' -H 'Authorization: Bearer unknown'"},
		"a key where none belongs": {target.Request{Method: "GET", Path: "/x?key=" + theKey, Header: http.Header{"X-Key": {theKey}}, Authorization: []string{}}, "curl -i 'URL/x?key=isk_free_…' -H 'X-Key: isk_free_…'"},
	} {
		t.Run(name, func(t *testing.T) {
			e := tg.SendApart(t.Context(), u, c.r)
			require.NoError(t, e.Err)
			require.Equal(t, c.want, strings.ReplaceAll(e.Curl, up, "URL"))
			require.NotContains(t, e.Curl, theKey[9:])
		})
	}
	require.Equal(t, "its key is isk_free_…, said the server", tg.Mask("its key is "+theKey+", said the server"))
}
