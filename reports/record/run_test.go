package record_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
)

const runSchemaFile = "../../docs/run.schema.json"

// exampleRun has something in every field, and adds up.
func exampleRun() record.Run {
	quantiles := func(n int64) record.Quantiles {
		return record.Quantiles{Count: n, SumUS: 4 * n, MinUS: 1, P50US: 2, P90US: 3, P95US: 4, P99US: 5, P999US: 6, MaxUS: 7, Histogram: "HISTFAAA"}
	}
	return record.Run{
		Schema: record.RunSchema, Brimline: "1.0", Started: time.Date(2026, 11, 30, 1, 2, 3, 4, time.UTC), Interrupted: true,
		PlannedMS: 30_000, ActualMS: 12_345,
		Scenario: record.RunScenario{DurationMS: 30_000, Seed: 7, MaxRate: 100, Populations: []record.RunPopulation{
			{Plan: "free", Users: 2, Arrival: "poisson", Rate: "1.2x", PerMinute: 12, On429: "obey-retry-after", Keys: 2, Addresses: 3, Mix: "valid 9, invalid 1", Spread: "zipf 1.1"},
		}},
		Target: record.RunTarget{
			Description: "one line", Hosts: []string{"127.0.0.1:1"}, Server: "s", Clock: "real", Operation: "POST /v1/invoice/calculate",
			Allowances: map[string]record.RunAllowance{"free": {RequestsPerMinute: 10, Burst: 10, Concurrency: 2}},
		},
		Plans: []record.RunPlan{{
			Plan: "free", Users: 2, UsersAffected: 1,
			Slots: record.Slots{Planned: 20, Offered: 18, Sent: 15, Dropped: 2, DroppedBusy: 1, HeldOff: 1, Unsent: 2},
			Answers: record.Answers{
				Admitted: 5, RejectedRate: 3, RejectedConcurrency: 2, RejectedAnonymous: 1, Unauthenticated: 1, ConfigUnavailable: 1,
				OtherStatuses: []record.Count{{Name: "402", N: 1}}, TransportErrors: []record.Count{{Name: "timeout", N: 1}},
				ErrorCodes: []record.Count{{Name: "CAPACITY_EXHAUSTED", N: 1}},
			},
			RateJudged:        record.Judged{Due: 1, Undue: 1, Undecided: 1},
			ConcurrencyJudged: record.Judged{Due: 1, Undecided: 1},
			Missing:           1,
			HeaderFaults:      []record.Count{{Name: "no Retry-After", N: 2}},
			Latency:           []record.RunLatency{{Outcome: record.OutcomeAdmitted, FromDue: quantiles(15), FromSend: quantiles(15), FirstByte: quantiles(14)}},
			PerSecond: record.RunSeconds{
				Due: []int64{18}, Sent: []int64{15}, Admitted: []int64{5}, RejectedRate: []int64{3}, RejectedConcurrency: []int64{2}, Dropped: []int64{2},
				Other: []int64{5}, HeldOff: []int64{1}, P50US: []int64{2}, P99US: []int64{5}, MaxUS: []int64{7},
			},
		}},
		Users: []record.RunUser{
			{User: "free-001", Plan: "free", Sent: 15, Admitted: 5, RejectedRate: 3, RejectedConcurrency: 2, RejectedOtherwise: 1, Undue: 1, Missing: 1, LongestWaitMS: 17},
			{User: "free-002", Plan: "free"},
		},
		Generator: record.Generator{
			Transport: record.TransportLean, Workers: 16, WorkersReached: 1, Lag: quantiles(15), Results: 15, Attempts: 16, Connections: 2, CPUSeconds: 0.5, GCPauseMS: 0.1, CPUs: 2,
			WorkersWanted: 17, Late: quantiles(14), WatchedMS: 12_345, ProcessorSeconds: 24, MachineSeconds: 24, OthersSeconds: 2, StolenSeconds: 1, GCPauseMaxMS: 0.1, Sockets: 3, Descriptors: 9, DescriptorLimit: 1024},
		Limits:  []string{"a sentence"},
		Untold:  []record.RunDoubt{{Plan: "free", Why: "a reason"}},
		Ended:   "a reason",
		Exports: []record.RunExport{{File: record.RowsFile, Rows: 14, Lost: 1, Error: "no space left on device"}},
		Thresholds: []record.RunThreshold{
			{Threshold: "free.rejected.rate < 5%", Verdict: record.ThresholdBroken, Seen: "40 % (6 of 15)", Value: 0.4, Samples: 15},
		},
	}
}

// wholeRun is an example with what only parts of a run have, and what only a
// merged one has.
func wholeRun() record.Run {
	r := exampleRun()
	clock := record.RunClock{Known: true, Synchronised: true, MostOffUS: 3}
	r.Shard = &record.RunShard{Index: 1, Of: 2, Start: r.Started, Traffic: "t", Attempt: r.Started, Clock: clock}
	r.Merged = &record.RunMerged{
		Of: 2, Start: r.Started, Traffic: "t", Missing: []int64{1},
		Replaced: []record.RunReplaced{{Index: 1, Attempt: r.Started, Sent: 2}},
		Parts: []record.RunPart{{
			Index: 1, Attempt: r.Started, Clock: clock, Users: 2, ActualMS: 3, Interrupted: true,
			Generator: r.Generator, Limits: r.Limits, Untold: r.Untold,
		}},
	}
	r.Generator.StartLateUS = 4
	r.Merged.Parts[0].Generator.StartLateUS = 4
	return r
}

func TestRunKeepsItsPublishedSchema(t *testing.T) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := c.Compile(runSchemaFile)
	require.NoError(t, err)
	require.NoError(t, schema.Validate(asJSON(t, wholeRun())))

	for name, spoil := range map[string]func(map[string]any){
		"another schema":   func(m map[string]any) { m["schema"] = "brimline.run/2" },
		"a missing key":    func(m map[string]any) { delete(m, "limits") },
		"a negative count": func(m map[string]any) { m["plans"].([]any)[0].(map[string]any)["sent"] = -1 },
		"a strange clock":  func(m map[string]any) { m["target"].(map[string]any)["clock"] = "broken" },
	} {
		t.Run(name, func(t *testing.T) {
			m := asJSON(t, exampleRun())
			spoil(m)
			require.Error(t, schema.Validate(m))
		})
	}
}

// Whatever a run has is in the schema, and the reverse.
func TestRunSchemaNamesEveryKey(t *testing.T) {
	requireSchemaNamesEveryKey(t, runSchemaFile, asJSON(t, wholeRun()))
}

// requireSchemaNamesEveryKey holds a schema against an example that has
// something in every field.
func requireSchemaNamesEveryKey(t *testing.T, file string, example map[string]any) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var root map[string]any
	require.NoError(t, json.Unmarshal(text, &root))
	definitions := root["$defs"].(map[string]any)

	var compare func(path string, schema map[string]any, v any)
	compare = func(path string, schema map[string]any, v any) {
		if ref, ok := schema["$ref"].(string); ok {
			schema = definitions[filepath.Base(ref)].(map[string]any)
		}
		switch v := v.(type) {
		case map[string]any:
			properties, ok := schema["properties"].(map[string]any)
			if !ok { // a mapping of names
				for _, member := range v {
					compare(path+".*", schema["additionalProperties"].(map[string]any), member)
				}
				return
			}
			require.ElementsMatch(t, members(properties), members(v), path)
			for name, member := range v {
				compare(path+"."+name, properties[name].(map[string]any), member)
			}
		case []any:
			require.NotEmpty(t, v, "%s: the example has nothing there", path)
			compare(path+"[]", schema["items"].(map[string]any), v[0])
		}
	}
	compare("example", root, example)
}

func TestExampleRunLeavesNothingOut(t *testing.T) {
	var look func(path string, v reflect.Value)
	look = func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type() != reflect.TypeFor[time.Time]() {
					look(path+"."+v.Type().Field(i).Name, v.Field(i))
				}
			}
		case reflect.Slice, reflect.Map:
			require.NotZero(t, v.Len(), path)
			if v.Kind() == reflect.Slice {
				look(path+"[0]", v.Index(0))
			}
		}
	}
	look("run", reflect.ValueOf(wholeRun()))
}

func asJSON(t *testing.T, v any) map[string]any {
	t.Helper()
	return keys(t, v)
}

func members(m map[string]any) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	return names
}

func TestRunFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	require.NoError(t, record.ClaimRunFolder(dir))
	require.NoError(t, record.ClaimRunFolder(dir), "a folder without a run is free")
	want := exampleRun()
	require.NoError(t, record.WriteRun(dir, want))
	got, err := record.ReadRun(dir)
	require.NoError(t, err)
	require.Equal(t, want, got)

	require.ErrorIs(t, record.ClaimRunFolder(dir), record.ErrRunThere)
	require.ErrorIs(t, record.WriteRun(dir, want), record.ErrRunThere)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing half-written is left")
}

func TestRunThatDoesNotAddUp(t *testing.T) {
	for want, spoil := range map[string]func(*record.Run){
		"schema is":                      func(r *record.Run) { r.Schema = "brimline.run/0" },
		"planned and what became of it":  func(r *record.Run) { r.Plans[0].Unsent++ },
		"offered and what became of it":  func(r *record.Run) { r.Plans[0].HeldOff++ },
		"sent and answers":               func(r *record.Run) { r.Plans[0].OtherStatuses = []record.Count{} },
		"sent and latencies":             func(r *record.Run) { r.Plans[0].Latency = []record.RunLatency{} },
		"rejected_rate and its judgment": func(r *record.Run) { r.Plans[0].RateJudged.Due = 0 },
		"rejected_concurrency and its":   func(r *record.Run) { r.Plans[0].ConcurrencyJudged.Undecided = 0 },
		"users and users listed":         func(r *record.Run) { r.Users = r.Users[:1] },
		"admitted and admitted":          func(r *record.Run) { r.Users[1].Admitted = 1 },
		"undue and that of users":        func(r *record.Run) { r.Users[0].Undue = 0 },
		"missing and that of users":      func(r *record.Run) { r.Users[0].Missing = 0 },
		"users are on plans":             func(r *record.Run) { r.Users = append(r.Users, record.RunUser{Plan: "pro"}) },
		"per_second.other does not add":  func(r *record.Run) { r.Plans[0].PerSecond.Other[0] = 4 },
		"of different lengths":           func(r *record.Run) { r.Plans[0].PerSecond.MaxUS = []int64{1, 2} },
		"lists of different lengths":     func(r *record.Run) { r.Plans[0].PerSecond.Sent = []int64{} },
		"429s that could not be judged":  func(r *record.Run) { r.Users[0].RejectedOtherwise = 0 },
		"no plan is in it":               func(r *record.Run) { r.Plans, r.Users = []record.RunPlan{}, []record.RunUser{} },
		"threshold x is of verdict":      func(r *record.Run) { r.Thresholds[0] = record.RunThreshold{Threshold: "x", Verdict: "fine"} },
		"more first bytes":               func(r *record.Run) { r.Plans[0].Latency[0].FirstByte.Count = 16 },
		"rows of rows.jsonl.zst do not":  func(r *record.Run) { r.Exports[0].Lost = 0 },
		"other_statuses and their codes": func(r *record.Run) { r.Plans[0].ErrorCodes[0].N = 2 },
		"a count is negative":            func(r *record.Run) { r.Plans[0].PerSecond.Sent[0] = -1 },
	} {
		t.Run(want, func(t *testing.T) {
			r := exampleRun()
			spoil(&r)
			require.ErrorContains(t, r.Check(), want)
			require.ErrorContains(t, record.WriteRun(t.TempDir(), r), want)

			dir := t.TempDir()
			text, err := json.Marshal(r)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, record.RunFile), text, 0o600))
			_, err = record.ReadRun(dir)
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, record.RunFile)
		})
	}
	t.Run("cut", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, record.RunFile), []byte(`{"schema":"brimline.run/1"`), 0o600))
		_, err := record.ReadRun(dir)
		require.ErrorContains(t, err, "unexpected end of JSON")
	})
}
