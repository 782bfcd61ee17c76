package traffic_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/docs"
	"github.com/invoicespec/brimline/loadgen/traffic"
)

const schemaFile = "../../docs/scenario.schema.json"

// TestTheSchemaIsThatOfTheStruct compares what editors are told with what is
// read: keys, and which of them are required.
func TestTheSchemaIsThatOfTheStruct(t *testing.T) {
	var schema map[string]any
	require.NoError(t, json.Unmarshal(docs.ScenarioSchema, &schema))
	defs := schema["$defs"].(map[string]any)
	var compare func(key string, typ reflect.Type, schema map[string]any)
	compare = func(key string, typ reflect.Type, schema map[string]any) {
		if ref, ok := schema["$ref"].(string); ok {
			schema = defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		}
		switch typ.Kind() {
		case reflect.Pointer:
			compare(key, typ.Elem(), schema)
			return
		case reflect.Slice:
			require.Equal(t, "array", schema["type"], key)
			compare(key+"[]", typ.Elem(), schema["items"].(map[string]any))
			return
		case reflect.Struct:
		default:
			return
		}
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
			property, ok := schema["properties"].(map[string]any)[name].(map[string]any)
			require.True(t, ok, key+"."+name)
			require.NotEmpty(t, property["description"], key+"."+name)
			compare(key+"."+name, field.Type, property)
		}
		if len(known) == 0 {
			return // a text with a form of its own
		}
		require.Equal(t, false, schema["additionalProperties"], key)
		require.Len(t, schema["properties"], len(known), key)
		var said []string
		if list, ok := schema["required"].([]any); ok {
			for _, r := range list {
				said = append(said, r.(string))
			}
		}
		slices.Sort(required)
		slices.Sort(said)
		require.Equal(t, required, said, key)
	}
	compare("", reflect.TypeFor[traffic.Scenario](), schema)
}

// TestTheSchemaJudgesAsReadDoes holds the two to the same populations. An empty
// error means that it is good; what the schema cannot see is marked.
func TestTheSchemaJudgesAsReadDoes(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile(schemaFile)
	require.NoError(t, err)
	const rest = ", on-429: ignore"
	for name, c := range map[string]struct {
		text, want string
		unseen     bool
	}{
		"a word":                   {"arrival: poisson, rate: 1.2x" + rest, "", false},
		"everything":               {"keys: 2, addresses: 10, arrival: { on: 1s, off: 2s, process: poisson }, rate: 5, spread: { zipf: 1.1 }, mix: { valid: 1, slow: 0 }, on-429: { backoff: { first: 100ms, max: 30s }, give-up-after: 5 }", "", false},
		"a ramp":                   {"arrival: { ramp: { from: 0, to: 2x } }" + rest, "", false},
		"steps":                    {"arrival: { steps: [{ for: 1m, rate: 0.5x }] }" + rest, "", false},
		"a sine":                   {"arrival: { sine: { mean: 5, amplitude: 5, period: 24h } }" + rest, "", false},
		"a replay":                 {"arrival: { replay: a.log, speed: 0.5 }" + rest, "", false},
		"jitter":                   {"arrival: constant, rate: 1, on-429: obey-with-jitter", "", false},
		"giving up":                {"arrival: constant, rate: 1, on-429: { then: obey-retry-after, give-up-after: 1 }", "", false},
		"no keys":                  {"keys: 0, arrival: constant, rate: 1" + rest, "populations[0].keys: 0 is out of range; accepted: 1 to 16 keys of each user", false},
		"many keys":                {"keys: 17, arrival: constant, rate: 1" + rest, "keys: 17 is out of range", false},
		"more addresses than":      {"addresses: 101, arrival: constant, rate: 1" + rest, "addresses: 101 is out of range; accepted: 1 to 100 client addresses, not more than users", true},
		"no shape":                 {"arrival: { process: poisson }, rate: 1" + rest, "arrival: says nothing of when; accepted: constant, poisson, or a mapping of bursts, on", false},
		"two shapes":               {"arrival: { ramp: { from: 1, to: 2 }, sine: { mean: 1, amplitude: 1, period: 1m } }" + rest, "arrival.sine: beside ramp; accepted: one of bursts, on, ramp, steps, sine, replay", false},
		"a key of another":         {"arrival: { ramp: { from: 1, to: 2 }, every: 1s }" + rest, "arrival.every: does not go with ramp; accepted: beside ramp: process", false},
		"bursts at random":         {"arrival: { bursts: 2, every: 1s, process: poisson }" + rest, "arrival.process: does not go with bursts", false},
		"speed of a ramp":          {"arrival: { ramp: { from: 1, to: 2 }, speed: 2 }" + rest, "arrival.speed: does not go with ramp", false},
		"on for ever":              {"arrival: { on: 1s }, rate: 5" + rest, "arrival.off: missing; accepted: a duration such as 10s", false},
		"on without a rate":        {"arrival: { on: 1s, off: 1s }" + rest, "rate: missing; accepted: requests per minute such as 90", true},
		"too short a pause":        {"arrival: { on: 1s, off: 1ms }, rate: 1" + rest, "arrival.off: 1ms is out of range; accepted: 10ms to 24h", true},
		"a ramp with a rate":       {"arrival: { ramp: { from: 1, to: 2 } }, rate: 1" + rest, "rate: this arrival carries its own rate", true},
		"a ramp of nothing":        {"arrival: { ramp: { from: 0, to: 0x } }" + rest, "arrival.ramp: from 0 to 0 is no load", true},
		"half a ramp":              {"arrival: { ramp: { from: 1 } }" + rest, "arrival.ramp.to: missing", false},
		"no steps":                 {"arrival: { steps: [] }" + rest, "arrival.steps: 0 steps; accepted: 1 to 1000", false},
		"steps that end early":     {"arrival: { steps: [{ for: 59s, rate: 1 }] }" + rest, "arrival.steps: they take 59s, the run 1m0s; accepted: steps that take as long as the run", true},
		"steps of nothing":         {"arrival: { steps: [{ for: 1m, rate: 0 }] }" + rest, "arrival.steps: all are 0", true},
		"a short step":             {"arrival: { steps: [{ for: 1ms, rate: 1 }] }" + rest, "arrival.steps[0].for: 1ms is out of range", true},
		"a quick sine":             {"arrival: { sine: { mean: 5, amplitude: 1, period: 10ms } }" + rest, "arrival.sine.period: 10ms is out of range; accepted: 1s to 24h", true},
		"a sine about nothing":     {"arrival: { sine: { mean: 0, amplitude: 0, period: 1m } }" + rest, "arrival.sine.mean: a rate of 0 is no load", false},
		"a negative step":          {"arrival: { steps: [{ for: 1m, rate: -1 }] }" + rest, `arrival.steps[0].rate: "-1" is no rate`, false},
		"no log":                   {"arrival: { replay: \"\" }" + rest, "arrival.replay: empty; accepted: the path of an access log", false},
		"a replay that stands":     {"arrival: { replay: a, speed: 0 }" + rest, "arrival.speed: 0 is out of range; accepted: 0.001 to 1000", false},
		"a strange process":        {"arrival: { on: 1s, off: 1s, process: bursts }, rate: 1" + rest, `arrival.process: "bursts" is no process; accepted: constant, poisson`, false},
		"a strange spread":         {"spread: normal, arrival: constant, rate: 1" + rest, `spread: "normal" is no spread; accepted: equal, {lognormal: 0.8}, {zipf: 1.1}`, false},
		"two spreads":              {"spread: { zipf: 1, lognormal: 1 }, arrival: constant, rate: 1" + rest, "spread: says not how", false},
		"no spread":                {"spread: {}, arrival: constant, rate: 1" + rest, "spread: says not how", false},
		"too wide a spread":        {"spread: { zipf: 6 }, arrival: constant, rate: 1" + rest, "spread.zipf: 6 is out of range; accepted: 0.001 to 5", false},
		"bursts spread":            {"spread: { zipf: 1 }, arrival: { bursts: 2, every: 1s }" + rest, "spread: this arrival is the same or given for every user", true},
		"a mix of nothing":         {"mix: { valid: 0 }, arrival: constant, rate: 1" + rest, "mix: nothing is asked for; accepted: a weight above 0", true},
		"a negative weight":        {"mix: { valid: 2, slow: -1 }, arrival: constant, rate: 1" + rest, "mix.slow: -1 is out of range; accepted: 0 to 1000000", false},
		"a strange operation":      {"mix: { vaild: 2 }, arrival: constant, rate: 1" + rest, "mix.vaild: unknown key; accepted: valid, invalid, slow, unauthenticated", false},
		"an empty reaction":        {"arrival: constant, rate: 1, on-429: {}", "on-429: says neither how to back off nor when to give up", false},
		"only then":                {"arrival: constant, rate: 1, on-429: { then: ignore }", "on-429: says neither how to back off nor when to give up", false},
		"two reactions":            {"arrival: constant, rate: 1, on-429: { then: ignore, backoff: { first: 1s, max: 1s } }", "on-429.then: beside backoff", false},
		"giving up at once":        {"arrival: constant, rate: 1, on-429: { give-up-after: 0 }", "on-429.give-up-after: 0 is out of range; accepted: 1 to 1000000 429s in a row", false},
		"a backoff without end":    {"arrival: constant, rate: 1, on-429: { backoff: { first: 1s } }", "on-429.backoff.max: missing", false},
		"a backoff that falls":     {"arrival: constant, rate: 1, on-429: { backoff: { first: 1s, max: 10ms } }", "on-429.backoff.max: 10ms is out of range; accepted: 1s to 24h", true},
		"a backoff that is no one": {"arrival: constant, rate: 1, on-429: { backoff: { first: 0s, max: 10ms } }", "on-429.backoff.first: 0s is out of range; accepted: 1ms to 24h", true},
	} {
		t.Run(name, func(t *testing.T) {
			text := one(c.text)
			_, err := traffic.Parse("load.yaml", []byte(text))
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
				require.ErrorContains(t, err, "load.yaml:4: populations[0].")
				require.NotContains(t, err.Error(), "\n")
			}
			var v any
			require.NoError(t, yaml.Unmarshal([]byte(text), &v))
			inJSON, err := json.Marshal(v)
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(inJSON, &v))
			if err := schema.Validate(v); c.want == "" || c.unseen {
				require.NoError(t, err)
			} else {
				require.Error(t, err)
			}
		})
	}
}

func TestMaxRateIsRead(t *testing.T) {
	s := parse(t, "max-rate: 50\n"+one("arrival: constant, rate: 1, on-429: ignore"))
	require.EqualValues(t, 50, s.MaxRate)
	require.Equal(t, time.Minute, s.Duration)
	for _, n := range []string{"0", "-1", "1000001"} {
		_, err := traffic.Parse("load.yaml", []byte("max-rate: "+n+"\n"+one("arrival: constant, rate: 1, on-429: ignore")))
		require.EqualError(t, err, "load.yaml:1: max-rate: "+n+" is out of range; accepted: 1 to 1000000 requests per second")
	}
}

// TestRatesThatATargetMakesTooHigh are seen when its allowances are.
func TestRatesThatATargetMakesTooHigh(t *testing.T) {
	for text, want := range map[string]string{
		"arrival: { sine: { mean: 5, amplitude: 1x, period: 1m } }":     "populations[0].arrival: with an allowance of 10 requests per minute: the rate would fall below 0",
		"spread: { zipf: 3 }, arrival: poisson, rate: 999999":           "populations[0].spread: the busiest user: ",
		"spread: { zipf: 3 }, arrival: { ramp: { from: 0, to: 999999}}": "populations[0].spread: the busiest user: ",
	} {
		_, err := parse(t, strings.Replace(one(text+", on-429: ignore"), "1m\n", "1s\n", 1)).Cast(allowances)
		require.ErrorContains(t, err, want)
	}
}
