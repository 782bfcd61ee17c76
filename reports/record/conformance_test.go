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
	s := record.Scenario{Name: "n", At: "features/headers.feature:41", Verdict: record.Fail, Reason: "r", InPassing: true, OutOfReach: true, DurationMS: 1, Findings: []record.Finding{f}}
	c := record.Conformance{
		Schema:   record.ConformanceSchema,
		Target:   record.Target{Description: "d", Server: "s", Clock: "frozen", Plans: []string{"free"}, Offers: []string{"http"}},
		Brimline: "devel", Started: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), DurationMS: 1, Strict: true, Charged: 1,
		Aborted: "interrupted", Selected: []string{"HDR-5"},
		Reproduce:    record.Reproduce{Command: "brimline check"},
		KnownFailing: []record.KnownFailing{{Clause: "HDR-6", Reason: "r"}},
		Changes: &record.Changes{
			Against: record.Earlier{Result: record.ResultPartial, Started: time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC), Brimline: "0.9", Target: "t"},
			List:    []record.Change{{Clause: "HDR-5", Kind: record.NewlyFailing, Was: record.Pass, Is: record.Fail, Reason: "r"}},
		},
		Clauses: []record.Clause{{ID: "HDR-5", Level: "MUST", Group: "headers", Sentence: "s", Decision: "d", Verdict: record.Fail, Reason: "r", Scenarios: []record.Scenario{s}}},
		Power:   record.Power{Known: 9, Detectable: 3, Measured: record.RealClock, Further: []record.Further{{Needs: []string{"policy"}, Faults: 2}}, Unselected: 1, Unanswered: 1, Unseen: 2},
	}
	return c.Summed()
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
	bare.Aborted, bare.Selected, bare.KnownFailing, bare.Changes, bare.Reproduce = "", nil, nil, nil, record.Reproduce{}
	bare.Clauses[0].Scenarios = []record.Scenario{}
	require.NoError(t, validate(t, bare))
}

func TestSchemaRefusesWhatIsNotInIt(t *testing.T) {
	for name, spoil := range map[string]func(*record.Conformance){
		"another schema":     func(c *record.Conformance) { c.Schema = "brimline.conformance/2" },
		"no result":          func(c *record.Conformance) { c.Result = "" },
		"unknown verdict":    func(c *record.Conformance) { c.Clauses[0].Verdict = "skipped" },
		"unknown change":     func(c *record.Conformance) { c.Changes.List[0].Kind = "other" },
		"no list of changes": func(c *record.Conformance) { c.Changes.List = nil },
		"a footer below 0":   func(c *record.Conformance) { c.Totals.Findings = -1 },
		"no scenario list":   func(c *record.Conformance) { c.Clauses[0].Scenarios = nil },
		"no clause":          func(c *record.Conformance) { c.Clauses = nil },
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

// is a clause with a verdict and one scenario that made it.
func is(id string, v record.Verdict) record.Clause {
	return record.Clause{ID: id, Level: "MUST", Verdict: v, Scenarios: []record.Scenario{{Name: "n", Verdict: v}}}
}

func TestResultOfARun(t *testing.T) {
	run := func(selected []string, clauses ...record.Clause) record.Result {
		return record.Conformance{Selected: selected, Clauses: append([]record.Clause{is("SCOPE-1", record.Pass)}, clauses...)}.Summed().Result
	}
	require.Equal(t, record.ResultSuccess, run(nil))
	require.Equal(t, record.ResultSuccess, run(nil, is("ERR-4", record.Differs)))
	require.Equal(t, record.ResultFailure, run(nil, is("RATE-1", record.Fail), is("RATE-2", record.NotRun)))
	require.Equal(t, record.ResultFailure, run(nil, is("RATE-1", record.Stale)))
	for _, v := range []record.Verdict{record.NotRun, record.Inconclusive, record.SetupFailed, record.KnownFails, record.Untrue} {
		require.Equal(t, record.ResultPartial, run(nil, is("RATE-1", v)), v)
	}
	require.Equal(t, record.ResultPartial, run(nil, record.Clause{ID: "RATE-1", Verdict: record.Pass, Reason: "partly: …"}))

	selected := []string{"RATE-1"}
	require.Equal(t, record.ResultSuccess, run(selected, is("RATE-1", record.Pass), is("RATE-2", record.NotRun)), "nobody asked for RATE-2")
	require.Equal(t, record.ResultPartial, run(selected, is("RATE-1", record.Inconclusive)))
	require.Equal(t, record.ResultFailure, run(selected, is("RATE-2", record.Fail)), "broken in passing is broken")
}

func TestEveryVerdictIsCounted(t *testing.T) {
	var clauses []record.Clause
	for _, v := range record.Verdicts() {
		clauses = append(clauses, record.Clause{Verdict: v})
	}
	counts := record.Of(clauses)
	for _, v := range record.Verdicts() {
		require.Equal(t, 1, counts.Get(v), v)
	}
	require.Zero(t, counts.Get("skipped"))
}
