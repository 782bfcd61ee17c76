package record_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
)

// schema is the published schema of conformance.json.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	data, err := os.ReadFile("../../docs/conformance.schema.json")
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	require.NoError(t, c.AddResource("conformance.schema.json", doc))
	s, err := c.Compile("conformance.schema.json")
	require.NoError(t, err)
	return s
}

// complete has every field set, so that one which the schema does not know shows.
func complete() record.Conformance {
	f := record.Finding{Clause: "HDR-5", Step: "s", Field: "f", Expected: "6", Ground: "g", Got: "5", Consequence: "c", Exchange: "curl", Answer: "429"}
	s := record.Scenario{Name: "n", At: "features/headers.feature:41", Verdict: record.Fail, Reason: "r", InPassing: true, DurationMS: 1, Findings: []record.Finding{f}}
	c := record.Conformance{
		Schema: record.ConformanceSchema, Result: record.ResultFailure,
		Target:   record.Target{Description: "d", Server: "s", Clock: "frozen", Plans: []string{"free"}, Offers: []string{"http"}},
		Brimline: "devel", Started: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), DurationMS: 1, Strict: true, Charged: 1,
		Aborted: "interrupted", Selected: []string{"HDR-5"},
		Clauses: []record.Clause{{ID: "HDR-5", Level: "MUST", Group: "headers", Sentence: "s", Verdict: record.Fail, Reason: "r", Scenarios: []record.Scenario{s}}},
		Power:   record.Power{Known: 9, Detectable: 3, Measured: record.RealClock, Further: []record.Further{{Needs: []string{"policy"}, Faults: 2}}, Unselected: 1, Unanswered: 1, Unseen: 2},
	}
	c.Counts = record.Of(c.Clauses)
	return c
}

func validate(t *testing.T, v any) error {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	return schema(t).Validate(doc)
}

func TestConformanceKeepsItsSchema(t *testing.T) {
	require.NoError(t, validate(t, complete()))

	bare := complete()
	bare.Aborted, bare.Selected = "", nil
	bare.Clauses[0].Scenarios = []record.Scenario{}
	require.NoError(t, validate(t, bare))
}

func TestSchemaRefusesWhatIsNotInIt(t *testing.T) {
	for name, spoil := range map[string]func(*record.Conformance){
		"another schema":   func(c *record.Conformance) { c.Schema = "brimline.conformance/2" },
		"no result":        func(c *record.Conformance) { c.Result = "" },
		"unknown verdict":  func(c *record.Conformance) { c.Clauses[0].Verdict = "skipped" },
		"no scenario list": func(c *record.Conformance) { c.Clauses[0].Scenarios = nil },
		"no clause":        func(c *record.Conformance) { c.Clauses = nil },
	} {
		t.Run(name, func(t *testing.T) {
			c := complete()
			spoil(&c)
			require.Error(t, validate(t, c))
		})
	}
}

func TestConformanceReadsBack(t *testing.T) {
	data, err := json.Marshal(complete())
	require.NoError(t, err)
	var got record.Conformance
	require.NoError(t, json.Unmarshal(data, &got))
	require.Equal(t, complete(), got)
}
