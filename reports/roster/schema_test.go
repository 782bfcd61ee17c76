package roster_test

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/roster"
)

const schemaFile = "../../docs/plan-map.schema.json"

func TestTheSchemaAgrees(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile(schemaFile)
	require.NoError(t, err)
	example, err := os.ReadFile(exampleMap)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		text string
		good bool
	}{
		"the example":         {string(example), true},
		"no plans":            {"users: []", false},
		"an unknown key":      {twoPlans + "planz: 1", false},
		"a user without plan": {twoPlans + "users: [{ user: a }]", false},
		"a rate of nothing":   {"plans: { a: { requests-per-minute: 0, burst: 1 } }", false},
		"an override of none": {twoPlans + "users: [{ user: a, plan: free }]\noverrides: [{ user: a }]", false},
		"a numeric user":      {twoPlans + "users: [{ user: 17, plan: free }]", true},
	} {
		t.Run(name, func(t *testing.T) {
			asJSON, err := yaml.YAMLToJSON([]byte(c.text))
			require.NoError(t, err)
			doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(asJSON)))
			require.NoError(t, err)
			_, refused := roster.Parse("m", []byte(c.text))
			require.Equal(t, c.good, refused == nil, "%v", refused)
			invalid := schema.Validate(doc)
			require.Equal(t, c.good, invalid == nil, "%v", invalid)
		})
	}
}

// Schema and file name the same keys.
func TestTheSchemaNamesEveryKey(t *testing.T) {
	data, err := os.ReadFile(schemaFile)
	require.NoError(t, err)
	var root struct {
		Properties map[string]any
		Defs       map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(data, &root))
	for part, c := range map[string]struct {
		in  map[string]any
		typ reflect.Type
	}{
		"the file":    {root.Properties, reflect.TypeFor[roster.File]()},
		"a plan":      {root.Defs["plan"].Properties, reflect.TypeFor[roster.FilePlan]()},
		"a user":      {root.Defs["user"].Properties, reflect.TypeFor[roster.FileUser]()},
		"an override": {root.Defs["override"].Properties, reflect.TypeFor[roster.FileOverride]()},
		"a change":    {root.Defs["change"].Properties, reflect.TypeFor[roster.FileChange]()},
	} {
		var keys []string
		for i := range c.typ.NumField() {
			key, _, _ := strings.Cut(c.typ.Field(i).Tag.Get("yaml"), ",")
			keys = append(keys, key)
		}
		require.ElementsMatch(t, slices.Collect(maps.Keys(c.in)), keys, part)
	}
}
