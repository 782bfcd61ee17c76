package server_test

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/wiring"
)

// TestOpenAPI holds the published document to what is served: the same paths and
// methods, and bodies of the shapes it gives.
func TestOpenAPI(t *testing.T) {
	served := map[string]string{} // path to method
	f := start(t, server.Config{Alter: func(p *wiring.Parts) {
		for _, r := range p.Routes {
			served[r.Path] = r.Method
		}
		for path := range p.Outside {
			if !strings.HasPrefix(path, "/internal/") && !strings.HasPrefix(path, "/dashboard/") { // for operators, and for people
				served[path] = http.MethodGet
			}
		}
	}})
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(f.send(http.MethodGet, "/openapi.json", "", "").body))
	require.NoError(t, err)
	documented := map[string]string{}
	for path, item := range doc.(map[string]any)["paths"].(map[string]any) {
		methods := slices.Collect(maps.Keys(item.(map[string]any)))
		require.Len(t, methods, 1, path)
		documented[path] = strings.ToUpper(methods[0])
	}
	require.Equal(t, served, documented)

	schemas := jsonschema.NewCompiler()
	require.NoError(t, schemas.AddResource("mem:///openapi.json", doc))
	fits := func(name, body string) {
		t.Helper()
		schema, err := schemas.Compile("mem:///openapi.json#/components/schemas/" + name)
		require.NoError(t, err)
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(body)))
		require.NoError(t, err)
		require.NoError(t, schema.Validate(value), body)
	}
	u := f.newUser("free")
	fits("Invoice", goodInvoice)
	fits("Result", f.calculate(u.Keys[0]).body)
	fits("Error", f.send(http.MethodPost, "/v1/invoice/calculate", u.Keys[0], "{}").body)
	fits("Error", f.calculate("").body)
}
