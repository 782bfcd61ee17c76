package record_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/record"
)

const reportSchemaFile = "../../docs/report.schema.json"

// fill puts something into every field below v, whatever is added to them later.
func fill(v reflect.Value) {
	words := map[reflect.Type]string{
		reflect.TypeFor[record.Reassessment](): "raise", reflect.TypeFor[record.KeepReason](): "goal_met",
		reflect.TypeFor[record.GateState](): "missing", reflect.TypeFor[record.Basis](): "measured",
		reflect.TypeFor[record.BurstPolicy](): "half", reflect.TypeFor[record.EvidenceKind](): "latency", reflect.TypeFor[record.Dimension](): "burst",
		reflect.TypeFor[record.CapacityVerdict](): "holds", reflect.TypeFor[record.Migration](): "stay", reflect.TypeFor[record.Pool](): "user", reflect.TypeFor[record.InputKind](): "run", reflect.TypeFor[record.LogFormat](): "common",
	}
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.String:
		v.SetString("text")
		if word := words[v.Type()]; word != "" {
			v.SetString(word)
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Uint64:
		v.SetUint(7)
	default:
		v.SetInt(7)
	}
}

func exampleReport() record.Report {
	var r record.Report
	fill(reflect.ValueOf(&r).Elem())
	r.Schema, r.Logs[0].Schema = record.ReportSchema, record.ReplaySchema
	r.Logs[0].Cell, r.Logs[0].Cells, r.Logs[0].BurstNeeded, r.Logs[0].ClosedLoop, r.Logs[0].Plans = nil, nil, nil, nil, nil
	r.Plans[0].Scores[0].Latency.From, r.Logs[0].Log.Stamp = "due", record.StampReceived
	r.Inputs[0].SHA256 = strings.Repeat("0f", 32)
	return r
}

func TestReportKeepsItsPublishedSchema(t *testing.T) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := c.Compile(reportSchemaFile)
	require.NoError(t, err)
	require.NoError(t, schema.Validate(asJSON(t, exampleReport())))

	for name, spoil := range map[string]func(r map[string]any){
		"another schema":  func(r map[string]any) { r["schema"] = "brimline.report/3" },
		"a missing key":   func(r map[string]any) { delete(r, "rules") },
		"a guess":         func(r map[string]any) { verdict(r)["word"] = "perhaps" },
		"no sentences":    func(r map[string]any) { verdict(r)["because"] = nil },
		"more than whole": func(r map[string]any) { r["rules"].(map[string]any)["users_ok"] = 1.01 },
		"no digest":       func(r map[string]any) { r["inputs"].([]any)[0].(map[string]any)["sha256"] = "" },
	} {
		t.Run(name, func(t *testing.T) {
			r := asJSON(t, exampleReport())
			spoil(r)
			require.Error(t, schema.Validate(r))
		})
	}
}

func verdict(r map[string]any) map[string]any {
	return r["plans"].([]any)[0].(map[string]any)["verdict"].(map[string]any)
}

// Whatever a report has is in the schema, and the reverse.
func TestReportSchemaNamesEveryKey(t *testing.T) {
	requireSchemaNamesEveryKey(t, reportSchemaFile, asJSON(t, exampleReport()))
}

func TestReportReadsBack(t *testing.T) {
	text, err := json.Marshal(exampleReport())
	require.NoError(t, err)
	var got record.Report
	require.NoError(t, json.Unmarshal(text, &got))
	require.Equal(t, exampleReport(), got)
}

func TestWrongDecisions(t *testing.T) {
	two := int64(2)
	require.Zero(t, record.ReportScore{}.Wrong())
	require.EqualValues(t, 10, record.ReportScore{
		RateJudged: &record.Judged{Due: 100, Undue: 3, Undecided: 50}, ConcurrencyJudged: &record.Judged{Undue: 5}, WithoutToken: &two,
	}.Wrong())
}

func TestRulesAskForTheLowerBoundToo(t *testing.T) {
	rules := record.ReportRules{UsersOK: 0.99}
	require.True(t, rules.Meets(record.Rejections{UsersOKShare: 0.995, UsersOK95: [2]float64{0.99, 1}}))
	require.False(t, rules.Meets(record.Rejections{UsersOKShare: 0.995, UsersOK95: [2]float64{0.9899, 1}}))
	require.False(t, rules.Meets(record.Rejections{UsersOKShare: 0.98, UsersOK95: [2]float64{0.99, 1}}))
}
