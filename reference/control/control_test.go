package control_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer speaks the protocol by its OpenAPI document: each call names an operation
// of it, and each answer has to have the schema that the document gives it.
type peer struct {
	*testing.T
	*server.Server
	schemas *jsonschema.Compiler
	ops     map[string]operation
	called  map[string]bool
}

type operation struct {
	method, path string
	schemas      map[string]string // by status, where there is a body
}

const document = "mem:///openapi.json"

func start(t *testing.T, mode wire.ClockMode) *peer {
	t.Helper()
	return startWith(t, server.Config{Clock: mode})
}

func startWith(t *testing.T, cfg server.Config) *peer {
	t.Helper()
	cfg.Listen, cfg.Control = "127.0.0.1:0", "127.0.0.1:0"
	s, err := server.Open(context.Background(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })

	p := &peer{T: t, Server: s, schemas: jsonschema.NewCompiler(), ops: map[string]operation{}, called: map[string]bool{}}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(wire.OpenAPI))
	require.NoError(t, err)
	require.NoError(t, p.schemas.AddResource(document, doc))
	for path, item := range doc.(map[string]any)["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			if method == "parameters" {
				continue
			}
			o := operation{method: strings.ToUpper(method), path: path, schemas: map[string]string{}}
			fields := op.(map[string]any)
			for status, response := range fields["responses"].(map[string]any) {
				if ref := schemaOf(response); ref != "" {
					o.schemas[status] = ref
				}
			}
			p.ops[fields["operationId"].(string)] = o
		}
	}
	return p
}

// schemaOf is the reference to the schema of a response's body.
func schemaOf(response any) string {
	r := response.(map[string]any)
	if r["$ref"] == "#/components/responses/Error" {
		return "#/components/schemas/Error"
	}
	content, ok := r["content"].(map[string]any)
	if !ok {
		return ""
	}
	return content["application/json"].(map[string]any)["schema"].(map[string]any)["$ref"].(string)
}

// call calls an operation with the values of its path parameters, and returns
// the status and the body.
func (p *peer) call(id string, params map[string]string, body string) (int, []byte) {
	p.Helper()
	op, ok := p.ops[id]
	require.True(p, ok, "the document has no operation %s", id)
	p.called[id] = true
	path := op.path
	for name, value := range params {
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
	}
	status, data := p.send(op.method, path, "Bearer "+p.ControlToken(), body)
	schema := op.schemas[strconv.Itoa(status)]
	if status >= 300 {
		schema = op.schemas["default"]
	}
	if schema == "" {
		require.Equal(p, http.StatusNoContent, status, "%s: %s", id, data)
		require.Empty(p, data)
		return status, data
	}
	compiled, err := p.schemas.Compile(document + schema)
	require.NoError(p, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(p, err)
	require.NoError(p, compiled.Validate(value), "%s answered %s", id, data)
	return status, data
}

func (p *peer) send(method, path, authorization, body string) (int, []byte) {
	p.Helper()
	req, err := http.NewRequest(method, p.ControlURL()+path, strings.NewReader(body))
	require.NoError(p, err)
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := client.Do(req)
	require.NoError(p, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(p, err)
	return resp.StatusCode, data
}

// ok calls an operation that has to succeed, and decodes what it answers.
func ok[T any](p *peer, id string, params map[string]string, body string) T {
	p.Helper()
	status, data := p.call(id, params, body)
	require.Less(p, status, 300, "%s: %s", id, data)
	var out T
	if len(data) > 0 {
		require.NoError(p, json.Unmarshal(data, &out))
	}
	return out
}

// fails calls an operation that has to fail, and returns what is said.
func (p *peer) fails(status int, code, id string, params map[string]string, body string) string {
	p.Helper()
	got, data := p.call(id, params, body)
	var e wire.Error
	require.NoError(p, json.Unmarshal(data, &e))
	require.Equal(p, []any{status, code}, []any{got, e.Code}, e.Message)
	return e.Message
}

type none struct{}

// invoice sends one operation of a user's.
func (p *peer) invoice(key string) *http.Response {
	p.Helper()
	body := `{"currency":"EUR","lines":[{"description":"x","quantity":1,"unitPrice":1,"taxRate":1}]}`
	req, err := http.NewRequest(http.MethodPost, p.URL()+"/v1/invoice/calculate", strings.NewReader(body))
	require.NoError(p, err)
	req.Header.Set("Authorization", "Bearer "+key)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := client.Do(req)
	require.NoError(p, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(p, err)
	require.NoError(p, resp.Body.Close())
	return resp
}
