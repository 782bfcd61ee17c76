package reassess_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reports/reassess"
	"github.com/invoicespec/brimline/reports/record"
)

func TestUsualGates(t *testing.T) {
	g, err := reassess.ParseGates("gates.yaml", reassess.UsualGates())
	require.NoError(t, err)
	usual := reassess.Rules()
	usual.From = "gates.yaml"
	require.Equal(t, usual, g.Rules)
	require.Equal(t, record.ReportRules{
		From: "gates.yaml", UsersOK: 0.99, MinUsers: 300, MinDays: 7, TopShare: 0.5, MinMoved: 3, AgreeReports: 3, AgreeDays: 7,
		PeakShare: 0.7, P99US: 250_000, NoticeDays: 30, Burst: record.BurstAsToday, Draws: 1000,
		Required: []record.EvidenceKind{record.EvidenceUtilization, record.EvidenceFrequency, record.EvidenceSaturation, record.EvidenceLatency},
	}, g.Rules)
}

func TestGatesOverTheUsualOnes(t *testing.T) {
	g, err := reassess.ParseGates("g.yaml", []byte(`users: { ok: 0.95 }
capacity: { p99: 1s }
evidence: []
deployment: { storage: local, planned-replicas: 2, growth-per-month: 5 %, restarts-allowed: false, processors: 4 }
exempt: [{ plan: pro, why: abuse, evidence: "incident 7" }]
`))
	require.NoError(t, err)
	require.InDelta(t, 0.95, g.Rules.UsersOK, 1e-12)
	require.EqualValues(t, 1_000_000, g.Rules.P99US)
	require.Equal(t, 300, g.Rules.MinUsers, "left out: as usual")
	require.InDelta(t, 0.7, g.Rules.PeakShare, 1e-12)
	require.Empty(t, g.Rules.Required, "nothing is required")
	require.EqualValues(t, 2, *g.Deployment.PlannedReplicas)
	require.False(t, *g.Deployment.RestartsAllowed)
	require.InDelta(t, 0.05, float64(*g.Deployment.GrowthPerMonth), 1e-12)
	require.Equal(t, "abuse", g.Exempt[0].Why)
}

func TestGatesRefuse(t *testing.T) {
	for text, wrong := range map[string]string{
		"userz: {}":                                     `g.yaml:1: userz`,
		"users: { ok: 101 % }":                          "users.ok: got 101 %; accepted: a share from 50 % to 99.99 %",
		"users: { ok: much }":                           `got "much"; accepted: a share such as 70 %`,
		"users: { at-least: 0 }":                        "users.at-least: got 0; accepted: a whole number from 1 to 10000000",
		"traffic: { days: 1.5 }":                        "traffic.days",
		"capacity: { p99: 0s }":                         "capacity.p99: got 0s; accepted: a time from 1ms to 10m",
		"draws: 10":                                     "draws: got 10; accepted: a whole number from 200 to 2000",
		"burst: twice":                                  `burst: got "twice"; accepted: as-today, rate, half, third, free`,
		"evidence: [hearsay]":                           `evidence[0]: got "hearsay"; accepted: limiter utilization, `,
		"evidence: [latency, latency]":                  `evidence[1]: "latency" is there twice`,
		"deployment: { storage: tape }":                 `deployment.storage: got "tape"; accepted: local or distributed`,
		"deployment: {planned-replicas: 0}":             "deployment.planned-replicas: got 0",
		"deployment: {processors: 10001}":               "deployment.processors: got 10001",
		"exempt: [{plan: a, why: mood, evidence: b}]":   `exempt[0].why: got "mood"; accepted: abuse or incident`,
		"exempt: [{plan: a, why: abuse, evidence: ''}]": "exempt[0].evidence: it is empty",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := reassess.ParseGates("g.yaml", []byte(text))
			require.ErrorContains(t, err, wrong)
			require.ErrorContains(t, err, "g.yaml:1")
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// What editors are told is what is read: the usual file fits the schema, its
// defaults are the usual values, and each key of the one is one of the other.
func TestGatesSchema(t *testing.T) {
	const file = "../../docs/gates.schema.json"
	schema, err := jsonschema.NewCompiler().Compile(file)
	require.NoError(t, err)
	check := func(text string) error {
		asJSON, err := yaml.YAMLToJSON([]byte(text))
		require.NoError(t, err)
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(asJSON)))
		require.NoError(t, err)
		return schema.Validate(doc)
	}
	require.NoError(t, check(string(reassess.UsualGates())))
	require.Error(t, check("userz: {}"))

	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var tree map[string]any
	require.NoError(t, json.Unmarshal(data, &tree))
	for key, part := range tree["properties"].(map[string]any) {
		part := part.(map[string]any)
		if inner, ok := part["properties"].(map[string]any); ok {
			for name, leaf := range inner {
				word := leaf.(map[string]any)["default"]
				if word == nil {
					continue
				}
				_, err := reassess.ParseGates("g.yaml", []byte(key+": { "+name+": "+text(word)+" }"))
				require.NoError(t, err, "%s.%s", key, name)
				require.Contains(t, string(reassess.UsualGates()), "  "+name+": "+text(word)+" ", "%s.%s", key, name)
			}
		} else if word := part["default"]; word != nil {
			require.Contains(t, string(reassess.UsualGates()), "\n"+key+": "+text(word)+" ")
		}
	}
}

func text(v any) string {
	data, _ := json.Marshal(v)
	return strings.Trim(string(data), `"`)
}

func FuzzGates(f *testing.F) {
	f.Add(reassess.UsualGates())
	f.Add([]byte("users: { ok: 99 % }"))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := reassess.ParseGates("g.yaml", data)
		if err != nil {
			return
		}
		require.True(t, g.Rules.UsersOK >= 0.5 && g.Rules.UsersOK < 1)
		require.Positive(t, g.Rules.MinUsers)
	})
}
