package target_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
)

const schemaFile = "../../docs/target.schema.json"

// TestTheSchemaIsThatOfTheStruct compares what editors are told with what is
// read: keys, which of them are required, and types.
func TestTheSchemaIsThatOfTheStruct(t *testing.T) {
	data, err := os.ReadFile(schemaFile)
	require.NoError(t, err)
	var schema map[string]any
	require.NoError(t, json.Unmarshal(data, &schema))
	c := comparison{T: t, defs: schema["$defs"].(map[string]any)}
	c.compare("", reflect.TypeFor[target.File](), schema)
}

type comparison struct {
	*testing.T
	defs map[string]any
}

// resolved is a schema without references, as far as its keys go.
func (c comparison) resolved(s map[string]any) map[string]any {
	if all, ok := s["allOf"].([]any); ok {
		return c.resolved(all[0].(map[string]any))
	}
	if ref, ok := s["$ref"].(string); ok {
		return c.defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	return s
}

func (c comparison) compare(key string, typ reflect.Type, schema map[string]any) {
	schema = c.resolved(schema)
	kinds := map[reflect.Kind]string{reflect.Struct: "object", reflect.Map: "object", reflect.Slice: "array", reflect.String: "string", reflect.Bool: "boolean", reflect.Int64: "integer"}
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ == reflect.TypeFor[time.Duration]() { // written as text
		require.Equal(c, "string", schema["type"], key)
		return
	}
	require.Equal(c, kinds[typ.Kind()], schema["type"], key)
	switch typ.Kind() {
	case reflect.Map:
		c.compare(key+".*", typ.Elem(), schema["additionalProperties"].(map[string]any))
	case reflect.Slice:
		c.compare(key+"[]", typ.Elem(), schema["items"].(map[string]any))
	case reflect.Struct:
		c.compareKeys(key, typ, schema)
	}
}

func (c comparison) compareKeys(key string, typ reflect.Type, schema map[string]any) {
	properties := schema["properties"].(map[string]any)
	require.Equal(c, false, schema["additionalProperties"], key)
	var known, required []string
	for _, field := range reflect.VisibleFields(typ) {
		name, options, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if name == "" {
			continue
		}
		known = append(known, name)
		if options != "omitempty" {
			required = append(required, name)
		}
		require.Contains(c, properties, name, key)
		c.compare(key+"."+name, field.Type, properties[name].(map[string]any))
	}
	require.Len(c, properties, len(known), key)
	var said []string
	if list, ok := schema["required"].([]any); ok {
		for _, r := range list {
			said = append(said, r.(string))
		}
	}
	slices.Sort(required)
	slices.Sort(said)
	require.Equal(c, required, said, key)
}

// TestTheSchemaJudgesAsReadFileDoes holds the two to the same files.
func TestTheSchemaJudgesAsReadFileDoes(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile(schemaFile)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		from, to string
		good     bool
	}{
		"the sample":          {"can:", "can:", true},
		"the least":           {goodFile[strings.Index(goodFile, "can:"):], "", true},
		"unknown key":         {"limits:", "limitz:", false},
		"missing number":      {", concurrency: 2", "", false},
		"a fraction":          {"burst: 10", "burst: 1.5", false},
		"null":                {"burst: 10", "burst: null", false},
		"too much":            {"concurrency: 2", "concurrency: 100001", false},
		"no URL":              {"[http://127.0.0.1:8080]", "[]", false},
		"a URL with a path":   {"[http://127.0.0.1:8080]", "[http://a/b]", false},
		"whom to trust":       {"[http://127.0.0.1:8080]", "[https://127.0.0.1:8080]\ntls: { ca-file: ca.pem }", true},
		"trusting nobody":     {"[http://127.0.0.1:8080]", "[https://127.0.0.1:8080]\ntls: {}", false},
		"no key":              {"Bearer {key}", "Bearer", false},
		"two keys":            {"Bearer {key}", "{key} {key}", false},
		"a method in lower":   {"{ method: POST, path: /v1/invoice/calculate, body-file", "{ method: post, path: /v1/invoice/calculate, body-file", false},
		"two bodies":          {"body-file: ok.json", "body-file: ok.json, body: x", false},
		"another class":       {"expect: 422", "expect: 200", false},
		"another status":      {"expect: 422", "expect: 400", true},
		"no path":             {"[/health, /ready]", "[ready]", false},
		"no operations":       {"max-operations: 1000", "max-operations: 0", false},
		"no token file":       {", token-file: control.token", "", false},
		"a header":            {`body: "{}"`, `body: "{}", headers: { X-A: b }`, true},
		"a route":             {"limits:", "internal-routes: [{ method: PUT, path: \"/x/{user}\", body: x }]\nlimits:", true},
		"a route in lower":    {"limits:", "internal-routes: [{ method: put, path: /x }]\nlimits:", false},
		"a route's status":    {"limits:", "internal-routes: [{ method: PUT, path: /x, expect: 401 }]\nlimits:", false},
		"a page":              {"limits:", "  page: { path: /b, sign-in: /s, field: key, negotiated: own }\nlimits:", true},
		"a page without word": {"limits:", "  page: { path: /b, sign-in: /s, field: key }\nlimits:", false},
		"a page of metrics":   {"limits:", "  metrics: { url: \"http://a/metrics\" }\nlimits:", true},
		"metrics at no page":  {"limits:", "  metrics: { url: \"http://a\" }\nlimits:", false},
		"a process":           {"limits:", "  process: { command: [./run, \"{port}\"], environment: { A_B: c }, setting-names: { invoicespec.rate-limit.replicas: N }, ready-within: 5s, kept-log: true, control: { url: \"http://127.0.0.1:1\", token-file: \"{folder}/t\" } }\nlimits:", true},
		"a process's control": {"limits:", "  process: { command: [./run, \"{port}\"], control: { url: \"http://127.0.0.1:{control-port}\", token-file: \"{folder}/token\" } }\nlimits:", true},
		"a token that stays":  {"limits:", "  process: { command: [./run, \"{port}\"], control: { url: \"http://127.0.0.1:{control-port}\", token-file: token } }\nlimits:", false},
		"no command":          {"limits:", "  process: { command: [] }\nlimits:", false},
		"no such setting":     {"limits:", "  process: { command: [./run, \"{port}\"], setting-names: { invoicespec.rate-limit.replicaz: N } }\nlimits:", false},
		"no variable":         {"limits:", "  process: { command: [./run, \"{port}\"], environment: { \"A B\": c } }\nlimits:", false},
		"no command line":     {"limits:", "  process: { command: ./run }\nlimits:", false},
		"header names":        {"limits:", "headers: { RateLimit-Reset: X-RateLimit-Reset }\nreset-is: unix-time\nerror-body: { errorCode: error.code }\nlimits:", true},
		"another header":      {"limits:", "headers: { RateLimit-Rest: X-RateLimit-Reset }\nlimits:", false},
		"no header's name":    {"limits:", "headers: { RateLimit-Reset: X RateLimit }\nlimits:", false},
		"another form":        {"limits:", "reset-is: minutes\nlimits:", false},
		"another member":      {"limits:", "error-body: { code: x }\nlimits:", false},
		"no member's name":    {"limits:", "error-body: { errorCode: error. }\nlimits:", false},
		"other answers":       {"limits:", "answers: { UNAUTHENTICATED: { status: 403, code: FORBIDDEN } }\nlimits:", true},
		"answers not open":    {"limits:", "answers: { RATE_LIMIT_EXCEEDED: { status: 403 } }\nlimits:", false},
		"an answer of 429":    {"limits:", "answers: { UNAUTHENTICATED: { status: 429 } }\nlimits:", false},
		"an empty answer":     {"limits:", "answers: { UNAUTHENTICATED: {} }\nlimits:", false},
		"their code":          {"limits:", "answers: { UNAUTHENTICATED: { code: RATE_LIMIT_EXCEEDED } }\nlimits:", false},
		"who we are":          {"[http://127.0.0.1:8080]", "[https://127.0.0.1:8080]\ntls: { client-certificate: c, client-key: k }", true},
		"half of who we are":  {"[http://127.0.0.1:8080]", "[https://127.0.0.1:8080]\ntls: { client-certificate: c }", false},
		"trust in anybody":    {"[http://127.0.0.1:8080]", "[https://127.0.0.1:8080]\ntls: { insecure: anyone-may-answer-and-read-the-keys }", true},
		"another word for it": {"[http://127.0.0.1:8080]", "[https://127.0.0.1:8080]\ntls: { insecure: please }", false},
		"trust and none":      {"[http://127.0.0.1:8080]", "[https://127.0.0.1:8080]\ntls: { insecure: anyone-may-answer-and-read-the-keys, ca-file: c }", false},
		"users":               {"keys-file: brimline.keys", "users: [{ id: u, plan: free, keys: [{ env: K }, { file: k }] }]", true},
		"a key itself":        {"keys-file: brimline.keys", "users: [{ id: u, plan: free, keys: [isk_free_1] }]", false},
		"a user without keys": {"keys-file: brimline.keys", "users: [{ id: u, plan: free, keys: [] }]", false},
		"a key of two places": {"keys-file: brimline.keys", "users: [{ id: u, plan: free, keys: [{ env: K, file: k }] }]", false},
		"a slow one":          {"outside-quotas:", "  slow: { method: POST, path: /pdf, takes: 3s }\noutside-quotas:", true},
		"how slow":            {"outside-quotas:", "  slow: { method: POST, path: /pdf, expect: 200 }\noutside-quotas:", false},
		"slow by a number":    {"outside-quotas:", "  slow: { method: POST, path: /pdf, takes: 3 }\noutside-quotas:", false},
		"slow and failing":    {"outside-quotas:", "  slow: { method: POST, path: /pdf, takes: 3s, expect: 500 }\noutside-quotas:", false},
		"another prefix":      {"limits:", "limited: /v1\nlimits:", true},
		"the whole host":      {"limits:", "limited: /\nlimits:", true},
		"no prefix":           {"limits:", "limited: v1\nlimits:", false},
		"a prefix with /":     {"limits:", "limited: /v1/\nlimits:", false},
		"a number for a body": {`body: "{}"`, `body: 5`, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, goodFile, c.from)
			text := strings.Replace(goodFile, c.from, c.to, 1)
			data, err := yaml.YAMLToJSON([]byte(text))
			require.NoError(t, err)
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
			require.NoError(t, err)
			bySchema := schema.Validate(value)

			dir := folder(t, map[string]string{"t.yaml": text, "ok.json": `{"a":1}`})
			_, read := target.ReadFile(filepath.Join(dir, "t.yaml"))
			require.Equal(t, c.good, bySchema == nil, "%v", bySchema)
			require.Equal(t, c.good, read == nil, "%v", read)
		})
	}
}
