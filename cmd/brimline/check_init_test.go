package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
)

const initKey = "isk_free_0123456789abcdef0123"

// runInit runs "brimline check init" with a key in ADA_KEY.
func runInit(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"check", "init"}, args...), world{
		getenv: func(name string) (string, bool) {
			if name == "ADA_KEY" {
				return initKey, true
			}
			return "", false
		},
		stdin: strings.NewReader(""), stdout: &out, stderr: &errs,
	})
	return code, out.String(), errs.String()
}

// Against the reference the file works at once, and holds no key.
func TestInitOfTheReference(t *testing.T) {
	s := runServe(t)
	key := apiKey.FindString(s.stdout.String())
	base := strings.Fields(strings.TrimPrefix(s.stdout.String(), "listening on "))[0]
	t.Chdir(t.TempDir())
	var out, errs bytes.Buffer
	getenv := func(name string) (string, bool) { return key, name == "ADA_KEY" }
	code := run(t.Context(), []string{"check", "init", "--url", base, "--key-env", "ADA_KEY", "--plan", "free"}, world{getenv: getenv, stdin: strings.NewReader(""), stdout: &out, stderr: &errs})
	require.Equal(t, exitHolds, code, errs.String())
	require.Equal(t, "target.yaml: written after 11 requests; 0 places to fill in\nnext: brimline check --target target.yaml --plan\n", out.String())
	require.NotContains(t, textOf(t, "target.yaml"), key)

	f, err := target.ReadFile("target.yaml")
	require.NoError(t, err)
	require.Equal(t, target.Allowance{RequestsPerMinute: 10, Burst: 10, Concurrency: 2}, f.Allowances["free"])
	tgt, err := target.Open(t.Context(), f, target.Options{Environment: getenv})
	require.NoError(t, err)
	defer tgt.Close()
	require.Contains(t, tgt.Describe(), "can: hold, invalid, outside")
	u, err := tgt.Lease(t.Context(), "free", 1)
	require.NoError(t, err)
	e := tgt.Send(t.Context(), u, tgt.Valid())
	require.NoError(t, e.Err)
	require.Equal(t, tgt.ExpectValid(), e.Status)
	require.Empty(t, e.Findings)
	require.Equal(t, exitHolds, s.ended())
}

// otherDeployment speaks in words of its own, and shows whatever it is sent.
func otherDeployment(t *testing.T, asked *atomic.Int64) string {
	api, err := json.Marshal(map[string]any{
		"paths":      map[string]any{"/a/{id}": map[string]any{"post": map[string]any{}}, "/b": map[string]any{"get": map[string]any{}}, "/c": map[string]any{"post": map[string]any{}}},
		"components": map[string]any{"securitySchemes": map[string]any{"k": map[string]string{"type": "apiKey", "in": "header", "name": "X-Api-Key"}}},
	})
	require.NoError(t, err)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		_, _ = io.Copy(io.Discard, r.Body) // which says 100 Continue to everybody
		switch {
		case r.URL.Path == "/openapi.json":
			_, _ = w.Write(api)
		case r.URL.Path != "/c":
			w.WriteHeader(http.StatusNotFound)
		case r.Header.Get("X-Api-Key") == "":
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"errorCode":"NO \"KEY\"\nusers: []"}`)
		default:
			w.Header().Set("X-RateLimit-Limit", "7")
			w.Header().Set("X-RateLimit-Remaining", r.Header.Get("X-Api-Key"))
			w.Header().Set("X-RateLimit-Reset", "1796032842")
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestInitOfAnother(t *testing.T) {
	var asked atomic.Int64
	url := otherDeployment(t, &asked)
	path := filepath.Join(t.TempDir(), "t.yaml")
	code, out, errs := runInit(t, "--url", url, "--key-env", "ADA_KEY", "--plan", "free", "--out", path)
	require.Equal(t, exitHolds, code, errs)
	require.Equal(t, path+": written after 10 requests; 3 places to fill in\n", out)
	require.LessOrEqual(t, asked.Load(), int64(10))
	text := textOf(t, path)
	require.NotContains(t, text, initKey)
	require.Contains(t, text, "# 100 Continue came to somebody without a key: true\n")

	_, err := target.ReadFile(path)
	require.ErrorContains(t, err, "t.yaml:")
	require.ErrorContains(t, err, "operations.valid.body: FILL-IN is to be filled in; accepted: text")
	require.NoError(t, os.WriteFile(path, []byte(strings.NewReplacer(noText, "'{}'", "minute: "+fillIn, "minute: 60", "concurrency: "+fillIn, "concurrency: 3").Replace(text)), 0o600))
	f, err := target.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, target.Credential{Header: "X-Api-Key", Template: "{key}"}, f.Credential)
	require.Equal(t, "/c", f.Operations.Valid.Path)
	require.Equal(t, int64(400), f.Operations.Invalid.Expect)
	require.Equal(t, map[string]string{"RateLimit-Limit": "X-RateLimit-Limit", "RateLimit-Remaining": "X-RateLimit-Remaining", "RateLimit-Reset": "X-RateLimit-Reset"}, f.Headers)
	require.Equal(t, "unix-time", f.ResetIs)
	require.Equal(t, map[string]target.Reply{"UNAUTHENTICATED": {Status: 403}}, f.Answers)
	require.Equal(t, []string{"/openapi.json"}, f.OutsideQuotas)
	require.False(t, f.Can.StalledUpload)
	require.Equal(t, int64(7), f.Allowances["free"].Burst)
}

// What flags say is believed, what nobody saw is marked; a server that has never
// heard of 100 Continue still gets its body.
func TestInitByFlags(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		if r.URL.Path == "/api/price" {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(s.Close)
	path := filepath.Join(t.TempDir(), "t.yaml")
	code, _, errs := runInit(t, "--url", s.URL, "--path", "/api/price", "--method", "PUT", "--header", "X-Own", "--out", path)
	require.Equal(t, exitHolds, code, errs)
	text := textOf(t, path)
	require.Contains(t, text, `path: "/api/price"`+"\n")
	require.Contains(t, text, `method: "PUT"`)
	require.Contains(t, text, `credential: { header: "X-Own", template: "{key}" }`+"\n")
	require.Contains(t, text, "429: rate limited, as an address without a good key; try again in 7 s")
	require.NotContains(t, text, assumed)
	require.NotContains(t, text, "$schema")

	code, out, errs := runInit(t, "--url", s.URL, "--overwrite", "--out", path)
	require.Equal(t, exitHolds, code, errs)
	require.Contains(t, textOf(t, path), `path: "/v1/invoice/calculate"`+assumed)
	require.Equal(t, 2, strings.Count(textOf(t, path), assumed))
	require.Contains(t, out, "9 places to fill in")
}

// A head that cannot be read is quoted by the error; the key in it is not.
func TestInitDoesNotQuoteAKey(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := r.Header.Get("Authorization")
		if said == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: "+said+"\r\n\r\n")
			_ = c.Close()
		}
	}))
	t.Cleanup(s.Close)
	path := filepath.Join(t.TempDir(), "t.yaml")
	_, out, errs := runInit(t, "--url", s.URL, "--key-env", "ADA_KEY", "--out", path)
	left, _ := os.ReadFile(path)
	require.NotContains(t, out+errs+string(left), initKey)
	require.Contains(t, out+errs+string(left), "Content-Length", "what was wrong is said")
}

func TestInitRefuses(t *testing.T) {
	var asked atomic.Int64
	url := otherDeployment(t, &asked)
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("there.yaml", []byte("mine"), 0o600))
	for name, c := range map[string]struct {
		args string
		code int
		want string
	}{
		"no URL":            {"", exitUsage, `--url: "" is no base URL; accepted: http or https, host and port, such as https://staging.example`},
		"a URL with a path": {"--url " + url + "/x", exitUsage, "is no base URL"},
		"a URL with a name": {"--url http://a:b@c", exitUsage, "is no base URL"},
		"a file in the way": {"--url " + url + " --out there.yaml", exitUsage, "--out: there.yaml is there already; accepted: another name, or --overwrite"},
		"no such folder":    {"--url " + url + " --out no/where.yaml", exitUsage, "--out: no/where.yaml: no such file or directory"},
		"no such variable":  {"--url " + url + " --key-env BOB_KEY", exitUsage, "--key-env: the variable BOB_KEY holds no key; accepted: the name of one that does"},
		"no certificates":   {"--url " + url + " --ca-file there.yaml", exitUsage, "--ca-file: there.yaml: no certificate in it; accepted: certificates in PEM"},
		"nobody there":      {"--url http://127.0.0.1:1", exitCannotTell, "http://127.0.0.1:1 does not answer: "},
		"an argument":       {url, exitUsage, "the deployment's address goes behind --url"},
		"no body":           {"--url " + url + " --body gone.json", exitUsage, "--body: open gone.json: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			code, _, errs := runInit(t, strings.Fields(c.args)...)
			require.Equal(t, c.code, code, errs)
			require.Contains(t, errs, c.want)
			require.Equal(t, 1, strings.Count(errs, "\n"), errs)
		})
	}
	require.Equal(t, "mine", textOf(t, "there.yaml"))
	require.NoError(t, os.WriteFile("ok.json", []byte(`{"a":1}`), 0o600))
	require.NoError(t, os.Mkdir("sub", 0o700))
	code, _, errs := runInit(t, "--url", url, "--out", "sub/there.yaml", "--body", "ok.json")
	require.Equal(t, exitHolds, code, errs)
	require.Contains(t, textOf(t, "sub/there.yaml"), `body-file: "../ok.json"`)
	code, _, errs = runInit(t, "--url", url, "--out", "there.yaml", "--overwrite")
	require.Equal(t, exitHolds, code, errs)
	require.Contains(t, textOf(t, "there.yaml"), "base-urls")
}
