package target_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
)

const goodFile = `base-urls: [http://127.0.0.1:8080]
credential: { header: Authorization, template: "Bearer {key}" }
keys-file: brimline.keys
operations:
  valid: { method: POST, path: /v1/invoice/calculate, body-file: ok.json }
  invalid: { method: POST, path: /v1/invoice/calculate, body: "{}", expect: 422 }
outside-quotas: [/health, /ready]
allowances:
  free: { requests-per-minute: 10, burst: 10, concurrency: 2 }
can:
  stalled-upload: true
  control: { url: http://127.0.0.1:9091, token-file: control.token }
limits: { max-operations: 1000 }
`

// folder is a folder with the files that a target file names.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

func TestReadFile(t *testing.T) {
	dir := folder(t, map[string]string{"t.yaml": goodFile, "ok.json": `{"a":1}`})
	f, err := target.ReadFile(filepath.Join(dir, "t.yaml"))
	require.NoError(t, err)
	require.Equal(t, []string{"http://127.0.0.1:8080"}, f.BaseURLs)
	require.Equal(t, target.Credential{Header: "Authorization", Template: "Bearer {key}"}, f.Credential)
	require.Equal(t, target.Allowance{RequestsPerMinute: 10, Burst: 10, Concurrency: 2}, f.Allowances["free"])
	require.Equal(t, int64(422), f.Operations.Invalid.Expect)
	require.True(t, f.Can.StalledUpload)
	require.Equal(t, int64(1000), f.Limits.MaxOperations)
}

func TestReadFileRefuses(t *testing.T) {
	for name, c := range map[string]struct{ from, to, want string }{
		"unknown key":               {"limits:", "limitz:", ":13: limitz: unknown key; accepted: base-urls, protocol, credential, "},
		"missing part":              {"allowances:\n  free: { requests-per-minute: 10, burst: 10, concurrency: 2 }\n", "", ":1: allowances: missing"},
		"missing number":            {", concurrency: 2", "", ":9: allowances.free.concurrency: missing; accepted: a whole number"},
		"doubled key":               {"can:", "base-urls: [http://a]\ncan:", ":10: base-urls: given twice, first in line 1"},
		"a route's method":          {"limits:", "internal-routes: [{ method: put, path: /x }]\nlimits:", `:13: internal-routes[0].method: "put" is no method`},
		"a route's path":            {"limits:", "internal-routes: [{ method: PUT, path: x }]\nlimits:", `:13: internal-routes[0].path: "x" is no path`},
		"a page's path":             {"limits:", "  page: { path: x, sign-in: /s, field: key, negotiated: own }\nlimits:", `:13: can.page.path: "x" is no path`},
		"a page's sign-in":          {"limits:", "  page: { path: /b, sign-in: s, field: key, negotiated: own }\nlimits:", `:13: can.page.sign-in: "s" is no path`},
		"a page's field":            {"limits:", "  page: { path: /b, sign-in: /s, field: \"\", negotiated: own }\nlimits:", ":13: can.page.field: empty"},
		"a page's word":             {"limits:", "  page: { path: /b, sign-in: /s, field: key, negotiated: \"\" }\nlimits:", ":13: can.page.negotiated: empty"},
		"no address":                {"limits:", "  addresses: [127.0.0.2, here]\nlimits:", `:13: can.addresses[1]: "here" is neither an address nor a prefix; accepted: addresses and prefixes`},
		"a proxy from nowhere":      {"limits:", "  proxy: { from: here, trusted: [127.0.9.1] }\nlimits:", `:13: can.proxy.from: "here" is no address`},
		"a proxy nobody trusts":     {"limits:", "  proxy: { from: 127.0.0.1, trusted: [127.0.9.0/24] }\nlimits:", ":13: can.proxy.from: 127.0.0.1 is none of can.proxy.trusted"},
		"trust in a name":           {"limits:", "  proxy: { from: 127.0.9.1, trusted: [127.0.9.1, nginx] }\nlimits:", `:13: can.proxy.trusted[1]: "nginx" is neither`},
		"another client header":     {"limits:", "  proxy: { from: 127.0.9.1, trusted: [127.0.9.1], header: X-Client }\nlimits:", `:13: can.proxy.header: "X-Client"; accepted: X-Forwarded-For, Forwarded or X-Real-IP`},
		"no attempts":               {"can:", "anonymous: { requests-per-minute: 30, burst: 0, concurrency: 5 }\ncan:", ":10: anonymous.burst: 0; accepted: 1 to 1000000"},
		"half a policy":             {"can:", "anonymous: { burst: 3 }\ncan:", ":10: anonymous.requests-per-minute: missing"},
		"a wide prefix":             {"can:", "anonymous: { requests-per-minute: 30, burst: 1, concurrency: 5, ipv6-prefix: 8 }\ncan:", ":10: anonymous.ipv6-prefix: 8; accepted: 32 to 128"},
		"second document":           {"can:", "---\ncan:", ":10: a second document begins"},
		"a fraction":                {"burst: 10", "burst: 1.5", ":9: allowances.free.burst: got 1.5; accepted: a whole number"},
		"null":                      {"burst: 10", "burst: null", ":9: allowances.free.burst: null is no value"},
		"zero":                      {"burst: 10", "burst: 0", ":9: allowances.free.burst: 0; accepted: 1 to 1000000"},
		"too much":                  {"concurrency: 2", "concurrency: 100001", ":9: allowances.free.concurrency: 100001; accepted: 1 to 100000"},
		"negative":                  {"requests-per-minute: 10", "requests-per-minute: -1", ":9: allowances.free.requests-per-minute: -1; accepted: 1 to 1000000"},
		"no plan":                   {"  free: { requests-per-minute: 10, burst: 10, concurrency: 2 }\n", "  {}\n", "allowances: empty; accepted: at least one plan"},
		"no URL":                    {"[http://127.0.0.1:8080]", "[]", ":1: base-urls: empty; accepted: at least one URL"},
		"not a URL":                 {"[http://127.0.0.1:8080]", "[127.0.0.1:8080]", `:1: base-urls[0]: "127.0.0.1:8080" is no base URL; accepted: http or https`},
		"a URL with a path":         {"[http://127.0.0.1:8080]", "[http://a/b]", ":1: base-urls[0]: "},
		"a URL with a password":     {"[http://127.0.0.1:8080]", "[http://u:p@a]", ":1: base-urls[0]: "},
		"a port that is none":       {"[http://127.0.0.1:8080]", "[http://127.0.0.1:99999]", `:1: base-urls[0]: port 99999 of "http://127.0.0.1:99999" does not exist; accepted: a port from 1 to 65535`},
		"port zero":                 {"http://127.0.0.1:9091", "http://127.0.0.1:0", ":12: can.control.url: port 0 of "},
		"another scheme":            {"[http://127.0.0.1:8080]", "[ftp://a]", ":1: base-urls[0]: "},
		"template without key":      {"Bearer {key}", "Bearer", `:2: credential.template: "Bearer" does not hold {key} once`},
		"template with two keys":    {"Bearer {key}", "{key} {key}", ":2: credential.template: "},
		"no header name":            {"header: Authorization", "header: A b", `:2: credential.header: "A b" is no header name`},
		"no method":                 {"{ method: POST, path: /v1/invoice/calculate, body-file", "{ method: post, path: /v1/invoice/calculate, body-file", `:5: operations.valid.method: "post" is no method`},
		"no path":                   {"path: /v1/invoice/calculate, body: ", "path: v1, body: ", `:6: operations.invalid.path: "v1" is no path`},
		"two bodies":                {"body-file: ok.json", "body-file: ok.json, body: x", ":5: operations.valid.body-file: given beside body; accepted: one of the two"},
		"a body that is not there":  {"ok.json", "gone.json", "gone.json: no such file or directory"},
		"a wrong class of status":   {"expect: 422", "expect: 200", ":6: operations.invalid.expect: 200; accepted: a status from 400 to 499"},
		"status zero":               {"expect: 422", "expect: 0", ":6: operations.invalid.expect: 0 means nothing here"},
		"our own header":            {`body: "{}"`, `body: "{}", headers: { Host: x }`, ":6: operations.invalid.headers.Host: set by brimline"},
		"the credential's header":   {`body: "{}"`, `body: "{}", headers: { authorization: x }`, ":6: operations.invalid.headers.authorization: set by brimline"},
		"a header of two lines":     {`body: "{}"`, `body: "{}", headers: { X-A: "a\nb" }`, ":6: operations.invalid.headers.X-A: no header"},
		"slow for nothing":          {"outside-quotas:", "  slow: { method: POST, path: /pdf }\noutside-quotas:", ":7: operations.slow.takes: missing"},
		"slow for no time":          {"outside-quotas:", "  slow: { method: POST, path: /pdf, takes: 499ms }\noutside-quotas:", ":7: operations.slow.takes: 499ms; accepted: 500ms to 30s"},
		"slow for ever":             {"outside-quotas:", "  slow: { method: POST, path: /pdf, takes: 1m }\noutside-quotas:", ":7: operations.slow.takes: 1m0s; accepted: 500ms to 30s"},
		"slow and not let in":       {"outside-quotas:", "  slow: { method: POST, path: /pdf, takes: 3s, expect: 500 }\noutside-quotas:", ":7: operations.slow.expect: 500; accepted: a status from 200 to 299"},
		"slow and status zero":      {"outside-quotas:", "  slow: { method: POST, path: /pdf, takes: 3s, expect: 0 }\noutside-quotas:", ":7: operations.slow.expect: 0 means nothing here"},
		"no path outside":           {"[/health, /ready]", "[/health, ready]", `:7: outside-quotas[1]: "ready" is no path`},
		"an upload of nothing":      {"body-file: ok.json", `body: "x"`, ":11: can.stalled-upload: the valid operation has no body that could be half sent"},
		"a token over the network":  {"http://127.0.0.1:9091", "http://10.0.0.1:9091", ":12: can.control.url: "},
		"no token file":             {", token-file: control.token", "", ":12: can.control.token-file: missing; accepted: text"},
		"no operations at all":      {"max-operations: 1000", "max-operations: 0", ":13: limits.max-operations: 0 means nothing here"},
		"another header":            {"can:", "headers: { RateLimit-Rest: X }\ncan:", ":10: headers.RateLimit-Rest: none of the contract's; accepted: RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, X-Request-Id"},
		"a header called by two":    {"can:", "headers: { RateLimit-Limit: X-Limit, RateLimit-Reset: x-limit }\ncan:", ":10: headers.RateLimit-Reset: x-limit is what RateLimit-Limit is called; accepted: a name of its own"},
		"another's header":          {"can:", "headers: { RateLimit-Limit: ratelimit-reset }\ncan:", ":10: headers.RateLimit-Limit: ratelimit-reset is what the contract calls another"},
		"a header without a name":   {"can:", "headers: { RateLimit-Limit: \"\" }\ncan:", `:10: headers.RateLimit-Limit: "" is no name; accepted: a header name such as X-RateLimit-Limit`},
		"another reset":             {"can:", "reset-is: minutes\ncan:", `:10: reset-is: "minutes"; accepted: seconds, unix-time, date`},
		"another member":            {"can:", "error-body: { code: x }\ncan:", ":10: error-body.code: none of the contract's; accepted: requestId, errorCode, message"},
		"a member without a name":   {"can:", "error-body: { errorCode: error..code }\ncan:", `:10: error-body.errorCode: "error..code" is no name; accepted: a member such as code, or error.code`},
		"an answer nobody asks for": {"can:", "answers: { SLOW_DOWN: { status: 503 } }\ncan:", ":10: answers.SLOW_DOWN: nothing that the contract leaves open; accepted: UNAUTHENTICATED, CAPACITY_EXHAUSTED, NOT_FOUND, METHOD_NOT_ALLOWED, VALIDATION_FAILED, ENGINE_FAILURE, CAPACITY_UNAVAILABLE, ENGINE_TIMEOUT"},
		"an answer that is fixed":   {"can:", "answers: { RATE_LIMIT_EXCEEDED: { code: SLOW_DOWN } }\ncan:", ":10: answers.RATE_LIMIT_EXCEEDED: fixed by the contract (ERR-3); accepted: no other code for a request without a token"},
		"another that is":           {"can:", "answers: { CONCURRENCY_LIMIT_EXCEEDED: { code: BUSY } }\ncan:", ":10: answers.CONCURRENCY_LIMIT_EXCEEDED: fixed by the contract (CONC-2)"},
		"an empty answer":           {"can:", "answers: { UNAUTHENTICATED: {} }\ncan:", ":10: answers.UNAUTHENTICATED: empty; accepted: status, code or both"},
		"an answer that is none":    {"can:", "answers: { UNAUTHENTICATED: { status: 200 } }\ncan:", ":10: answers.UNAUTHENTICATED.status: 200; accepted: a status from 400 to 599 but 429"},
		"an answer of zero":         {"can:", "answers: { UNAUTHENTICATED: { status: 0, code: X } }\ncan:", ":10: answers.UNAUTHENTICATED.status: 0 means nothing here"},
		"an answer that is a 429":   {"can:", "answers: { UNAUTHENTICATED: { status: 429 } }\ncan:", ":10: answers.UNAUTHENTICATED.status: 429; accepted"},
		"an answer with their code": {"can:", "answers: { UNAUTHENTICATED: { code: RATE_LIMIT_EXCEEDED } }\ncan:", `:10: answers.UNAUTHENTICATED.code: "RATE_LIMIT_EXCEEDED"; accepted: an error code that is none of the contract's own three`},
		"one answer for two":        {"can:", "answers: { ENGINE_FAILURE: { status: 500, code: X }, ENGINE_TIMEOUT: { status: 500, code: X } }\ncan:", ":10: answers: 500 X for ENGINE_FAILURE and for ENGINE_TIMEOUT; accepted: an answer of its own for each"},
		"two words on one status":   {"can:", "answers: { VALIDATION_FAILED: { status: 400 } }\ncan:", ":6: operations.invalid.expect: 422, and answers.VALIDATION_FAILED says 400; accepted: the same, or one of the two"},
		"users beside a keys file":  {"can:", "users: [{ id: u, plan: free, keys: [{ env: K }] }]\ncan:", ":10: users: given beside keys-file; accepted: one of the two"},
		"a key in the file":         {"keys-file: brimline.keys", "users: [{ id: u, plan: free, keys: [isk_free_0123456789abcdef] }]", ":3: users[0].keys[0]: others read this file: no keys in it; accepted: { env: NAME }, { file: PATH }"},
		"a key under a name":        {"keys-file: brimline.keys", "users: [{ id: u, plan: free, keys: [{ key: isk_free_0123456789abcdef }] }]", ":3: users[0].keys[0].key: unknown key; accepted: env, file"},
		"a key for a variable":      {"keys-file: brimline.keys", "users: [{ id: u, plan: free, keys: [{ env: sk-live-0123456789abcdef }] }]", `:3: users[0].keys[0].env: "…" is no variable; accepted: letters, digits and _`},
		"a key from nowhere":        {"keys-file: brimline.keys", "users: [{ id: u, plan: free, keys: [{}] }]", ":3: users[0].keys[0]: neither a variable nor a file; accepted: { env: NAME } or { file: PATH }"},
		"a key from two places":     {"keys-file: brimline.keys", "users: [{ id: u, plan: free, keys: [{ env: K, file: k }] }]", ":3: users[0].keys[0]: a variable and a file; accepted: one of the two"},
		"a user without keys":       {"keys-file: brimline.keys", "users: [{ id: u, plan: free, keys: [] }]", ":3: users[0].keys: empty; accepted: at least one of"},
		"a user without a name":     {"keys-file: brimline.keys", `users: [{ id: "", plan: free, keys: [{ env: K }] }]`, `:3: users[0].id: "" is no name`},
		"a user twice":              {"keys-file: brimline.keys", "users: [{ id: u, plan: free, keys: [{ env: K }] }, { id: u, plan: free, keys: [{ env: L }] }]", `:3: users[1].id: "u" is users[0] as well; accepted: each user once, with all keys`},
		"a user of no plan":         {"keys-file: brimline.keys", "users: [{ id: u, plan: pro, keys: [{ env: K }] }]", `:3: users[0].plan: "pro" has no allowance; accepted: a plan of allowances`},
		"no TLS":                    {"can:", "tls: { ca-file: x }\ncan:", ":10: tls: no URL of base-urls is https"},
		"a certificate without key": {"[http://127.0.0.1:8080]", "[https://a]\ntls: { client-certificate: c.pem }", ":2: tls.client-key: missing beside client-certificate"},
		"a key without certificate": {"[http://127.0.0.1:8080]", "[https://a]\ntls: { client-key: c.pem }", ":2: tls.client-certificate: missing beside client-key"},
		"a careless word":           {"[http://127.0.0.1:8080]", "[https://a]\ntls: { insecure: \"yes\" }", `:2: tls.insecure: "yes"; accepted: anyone-may-answer-and-read-the-keys, in these words, or leave it out`},
		"a switch":                  {"[http://127.0.0.1:8080]", "[https://a]\ntls: { insecure: true }", ":2: tls.insecure: got true"},
		"trust and no trust":        {"[http://127.0.0.1:8080]", "[https://a]\ntls: { insecure: anyone-may-answer-and-read-the-keys, ca-file: x }", ":2: tls.insecure: given beside ca-file; accepted: one of the two"},

		"a failure that is none": {"outside-quotas:", "  failing: { method: POST, path: /f, expect: 404 }\noutside-quotas:", ":7: operations.failing.expect: 404; accepted: a status from 500 to 599"},
		"a failure of zero":      {"outside-quotas:", "  failing: { method: POST, path: /f, expect: 0 }\noutside-quotas:", ":7: operations.failing.expect: 0 means nothing here"},
		"fewer than none":        {"max-operations: 1000", "max-operations: -5", ":13: limits.max-operations: -5; accepted: a positive number"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, goodFile, c.from)
			dir := folder(t, map[string]string{"t.yaml": strings.Replace(goodFile, c.from, c.to, 1), "ok.json": `{"a":1}`})
			path := filepath.Join(dir, "t.yaml")
			_, err := target.ReadFile(path)
			require.ErrorContains(t, err, c.want)
			require.True(t, strings.HasPrefix(err.Error(), path), "%v", err)
			require.NotContains(t, err.Error(), "\n")
			require.NotContains(t, err.Error(), "0123456789", "no error shows a key")
		})
	}
	_, err := target.ReadFile("gone.yaml")
	require.EqualError(t, err, "gone.yaml: no such file or directory")
}

func TestWriteIsReadBack(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out.yaml")
	f := target.File{
		BaseURLs:   []string{"http://127.0.0.1:1"},
		Credential: target.Credential{Header: "Authorization", Template: "Bearer {key}"},
		Operations: target.Operations{
			Valid:   target.Operation{Method: "POST", Path: "/v1/invoice/calculate", Body: `{"a": "é", "b": [1]}`, Headers: map[string]string{"X-A": "1: 2"}},
			Invalid: &target.Operation{Method: "GET", Path: "/v1/invoice/x"},
		},
		OutsideQuotas: []string{"/health"},
		Allowances:    map[string]target.Allowance{"free": {RequestsPerMinute: 10, Burst: 10, Concurrency: 2}},
		Can:           target.Can{StalledUpload: true, Control: &target.ControlAddress{URL: "http://127.0.0.1:2"}},
	}
	keys := []target.Key{{User: "u,1", Plan: "free", Secret: target.NewSecret("isk_free_0123456789abcdef0123")}}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "out.keys"), []byte("old"), 0o644), "a file whose mode is too wide")
	require.NoError(t, target.Write(path, f, keys, target.NewSecret("the-token")))

	for name, mode := range map[string]os.FileMode{"out.yaml": 0o644, "out.keys": 0o600, "out.token": 0o600} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), name)
	}
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotContains(t, string(text), "0123456789")
	require.NotContains(t, string(text), "the-token")

	got, err := target.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "out.keys", got.KeysFile)
	require.Equal(t, "out.token", got.Can.Control.TokenFile)
	require.Equal(t, f.Operations, got.Operations)
	require.Equal(t, f.Allowances, got.Allowances)
	require.Empty(t, f.Can.Control.TokenFile, "the caller's file is left alone")

	back, err := target.ReadKeys(filepath.Join(dir, "out.keys"))
	require.NoError(t, err)
	keys[0].From = "out.keys:2"
	require.Equal(t, keys, back)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 3, "nothing temporary is left behind")

}

// What cannot be written whole is not begun: keys above all must not be left
// lying where nobody looks for them.
func TestWriteLeavesNothingBehind(t *testing.T) {
	f := target.File{Can: target.Can{Control: &target.ControlAddress{URL: "http://127.0.0.1:2"}}}
	keys := []target.Key{{User: "u", Plan: "free", Secret: target.NewSecret("isk_free_0123456789abcdef0123")}}
	for name, c := range map[string]struct{ path, want string }{
		"a folder":                    {".", ": a folder; accepted: a file to be written"},
		"a folder that is not there":  {"no/where.yaml", "no/where.yaml: no such file or directory"},
		"a folder where its keys go":  {"taken.yaml", "taken.keys: a folder; accepted"},
		"a folder where it goes":      {"taken.keys", "taken.keys: a folder; accepted"},
		"a folder where a token goes": {"also.yaml", "also.token: a folder; accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			for _, folder := range []string{"taken.keys", "also.token"} {
				require.NoError(t, os.Mkdir(folder, 0o700))
			}
			err := target.Write(c.path, f, keys, target.NewSecret("the-token"))
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "-1", "no temporary name")
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, left, 2)
		})
	}
}

// A file that the target file names is refused at the line that names it.
func TestNamedFilesAreRefusedWhereTheyAreNamed(t *testing.T) {
	for name, c := range map[string]struct{ keys, token, want string }{
		"no keys file":    {"gone.csv", "t.token", "t.yaml:3: keys-file: "},
		"a folder":        {".", "t.token", ": a folder; accepted: a file"},
		"no token file":   {"k.csv", "gone.token", "t.yaml:12: can.control.token-file: "},
		"bad lines in it": {"bad.csv", "t.token", "t.yaml:3: keys-file: "},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.NewReplacer("keys-file: brimline.keys", "keys-file: "+c.keys, "control.token", c.token, "http://127.0.0.1:8080", answering(t, 200)).Replace(goodFile)
			dir := folder(t, map[string]string{"t.yaml": text, "ok.json": `{"a":1}`, "k.csv": "user,plan,key\nu1,free,k1\n", "bad.csv": "user\n", "t.token": "x"})
			f, err := target.ReadFile(filepath.Join(dir, "t.yaml"))
			require.NoError(t, err)
			_, err = target.Open(t.Context(), f, target.Options{})
			require.ErrorContains(t, err, c.want)
			require.True(t, strings.HasPrefix(err.Error(), filepath.Join(dir, "t.yaml:")), "%v", err)
			require.NotContains(t, err.Error(), "chmod", "nobody is told to break a folder")
		})
	}
}

func TestReadKeys(t *testing.T) {
	const long = "isk_free_0123456789abcdef0123"
	for name, c := range map[string]struct{ text, want string }{
		"good":                  {"user,plan,key\nu1,free," + long + "\nu1,free,k2\n", ""},
		"byte order mark, CRLF": {"\ufeffuser,plan,key\r\nu1,free,k1\r\n", ""},
		"no header":             {"u1,free," + long + "\n", "k.csv:1: not the header of a keys file; accepted: user,plan,key"},
		"two columns":           {"user,plan,key\nu1," + long + "\n", "k.csv:2: wrong number of fields; accepted: user,plan,key"},
		"an open quote":         {"user,plan,key\nu1,free,\"" + long + "\n", "k.csv:2: extraneous or missing \" in quoted-field"},
		"no user":               {"user,plan,key\n,free," + long + "\n", "k.csv:2: a user or plan without a name"},
		"no key":                {"user,plan,key\nu1,free,\n", "k.csv:2: no key that could be sent"},
		"a key with a space":    {"user,plan,key\nu1,free,a b\n", "k.csv:2: no key that could be sent"},
		"a key of two lines":    {"user,plan,key\nu1,free,\"a\nb\"\n", "k.csv:2: no key that could be sent"},
		"a key twice":           {"user,plan,key\nu1,free," + long + "\nu2,free," + long + "\n", "k.csv:3: the key of line 2 again; accepted: each key once"},
		"a user on two plans":   {"user,plan,key\nu1,free,k1\nu1,pro,k2\n", `k.csv:3: user "u1" is on plan "free" as well as "pro"`},
		"nobody":                {"user,plan,key\n", "k.csv: no keys; accepted: lines of user,plan,key below that header"},
		"empty":                 {"", "k.csv: no keys"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string]string{"k.csv": c.text})
			keys, err := target.ReadKeys(filepath.Join(dir, "k.csv"))
			if c.want == "" {
				require.NoError(t, err)
				require.NotEmpty(t, keys)
				return
			}
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "0123456789", "no error shows a key")
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestSecretFilesAreTheirOwners(t *testing.T) {
	dir := folder(t, map[string]string{"k.csv": "user,plan,key\nu1,free,k1\n"})
	path := filepath.Join(dir, "k.csv")
	for _, mode := range []os.FileMode{0o640, 0o604, 0o644, 0o620, 0o660} {
		require.NoError(t, os.Chmod(path, mode))
		_, err := target.ReadKeys(path)
		require.ErrorContains(t, err, "lets others read it; accepted: 0600 (chmod 600 "+path+")")
	}
	for _, mode := range []os.FileMode{0o600, 0o400} {
		require.NoError(t, os.Chmod(path, mode))
		_, err := target.ReadKeys(path)
		require.NoError(t, err)
	}
}
