package control_test

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/wiring"
)

type params = map[string]string

// TestEveryOperation walks through the protocol and then requires that nothing
// in its document was left out.
func TestEveryOperation(t *testing.T) {
	p := start(t, wire.ClockFrozen)
	c := ok[wire.Capabilities](p, "capabilities", nil, "")
	require.Equal(t, 1, c.Protocol)
	require.Equal(t, wire.ClockFrozen, c.Clock)
	require.Len(t, c.Features, 11)

	u := ok[wire.User](p, "createUser", nil, `{"plan":"free","keys":2}`)
	require.Equal(t, "free", u.Plan)
	require.Len(t, u.Keys, 2)
	of := params{"user": u.ID}
	remaining := func(key string) string { return p.invoice(key).Header.Get("RateLimit-Remaining") }
	limit := func() string { return p.invoice(u.Keys[0]).Header.Get("RateLimit-Limit") }

	k := ok[wire.Key](p, "addKey", of, "")
	require.Equal(t, "9", remaining(k.Key))
	ok[none](p, "revokeKey", of, `{"key":"`+k.Key+`"}`)
	require.Equal(t, http.StatusUnauthorized, p.invoice(k.Key).StatusCode)

	// Half of Free's burst used is half of Pro's there, on a clock that stands.
	for range 4 {
		p.invoice(u.Keys[0])
	}
	ok[none](p, "setPlan", of, `{"plan":"pro"}`)
	require.Equal(t, "49", remaining(u.Keys[1]))
	now := ok[wire.Clock](p, "readClock", nil, "")
	moved := ok[wire.Clock](p, "advanceClock", nil, `{"microseconds":200000}`)
	require.Equal(t, 200*time.Millisecond, parse(t, moved).Sub(parse(t, now)))
	require.Equal(t, "49", remaining(u.Keys[1]), "a token came back and was spent")
	back := ok[wire.Clock](p, "advanceClock", nil, `{"microseconds":-3600000000}`)
	require.Equal(t, -time.Hour, parse(t, back).Sub(parse(t, moved)))
	require.Equal(t, "48", remaining(u.Keys[1]), "a step back neither gives nor takes")

	burst := params{"user": u.ID, "dimension": "burst"}
	ok[none](p, "setOverride", burst, `{"value":7}`)
	require.Equal(t, "7", limit())
	expires := parse(t, back).Add(time.Minute).Format(time.RFC3339Nano)
	ok[none](p, "setOverride", burst, `{"value":8,"expires":"`+expires+`"}`)
	require.Equal(t, "8", limit())
	ok[wire.Clock](p, "advanceClock", nil, `{"microseconds":60000000}`)
	require.Equal(t, "100", limit(), "expired by itself")
	ok[none](p, "setOverride", burst, `{"value":9}`)
	require.Equal(t, "9", limit())
	ok[none](p, "endOverride", burst, "")
	require.Equal(t, "100", limit())

	h := ok[wire.History](p, "history", of, "")
	require.Len(t, h.Entries, 3)
	require.Equal(t, []string{"burst", "7", "asked for by a suite", "control protocol"},
		[]string{h.Entries[0].Dimension, h.Entries[0].Value, h.Entries[0].Reason, h.Entries[0].Author})
	require.NotEmpty(t, h.Entries[0].Ended, "it was replaced")
	require.Empty(t, h.Entries[1].Ended, "it expired")
	require.NotEmpty(t, h.Entries[1].Expires)
	ok[none](p, "setOverride", burst, `{"value":9,"reason":"a contract","author":"kim"}`)
	h = ok[wire.History](p, "history", of, "")
	require.Equal(t, []string{"a contract", "kim"}, []string{h.Entries[3].Reason, h.Entries[3].Author})

	// Past every check: nobody knows what the user may do until it is mended.
	ok[none](p, "storeOverride", burst, `{"text":"unlimited"}`)
	require.Equal(t, http.StatusServiceUnavailable, p.invoice(u.Keys[0]).StatusCode)
	ok[none](p, "endOverride", burst, "")
	require.Equal(t, "100", limit())
	ok[none](p, "storeEntitlement", burst, `{"text":""}`)
	require.Equal(t, http.StatusServiceUnavailable, p.invoice(u.Keys[0]).StatusCode)
	ok[none](p, "removeEntitlement", burst, "")
	require.Equal(t, http.StatusServiceUnavailable, p.invoice(u.Keys[0]).StatusCode)
	ok[none](p, "mendEntitlements", of, "")
	require.Equal(t, "100", limit())

	ok[none](p, "schedulePlan", of, `{"plan":"plus"}`)
	period := ok[wire.Period](p, "readPeriod", of, "")
	require.Equal(t, []string{"pro", "plus"}, []string{period.Plan, period.Scheduled})
	require.Equal(t, "100", limit())
	period = ok[wire.Period](p, "endPeriod", of, "")
	require.Equal(t, []string{"plus", ""}, []string{period.Plan, period.Scheduled})
	require.Equal(t, "40", limit())
	require.Equal(t, wire.Usage{Left: 4999, Used: 1}, ok[wire.Usage](p, "readOperations", of, ""))
	p.fails(404, wire.CodeUnsupported, "restart", nil, "")

	ok[none](p, "setOperations", of, `{"remaining":0}`)
	require.Equal(t, http.StatusPaymentRequired, p.invoice(u.Keys[0]).StatusCode)
	ok[none](p, "setOperations", of, `{"remaining":9}`)
	ok[none](p, "setEngine", of, `{"behaviour":"fail"}`)
	failed := p.invoice(u.Keys[0])
	require.Equal(t, http.StatusInternalServerError, failed.StatusCode)
	ok[none](p, "setEngine", of, `{"behaviour":"ok"}`)

	for _, place := range []string{"authentication", "engine", "response"} {
		at := params{"user": u.ID, "place": place}
		require.Equal(t, wire.Gate{}, ok[wire.Gate](p, "readGate", at, ""))
		require.Equal(t, wire.Gate{Closed: true}, ok[wire.Gate](p, "closeGate", at, ""))
		done := make(chan *http.Response)
		go func() { done <- p.invoice(u.Keys[0]) }()
		require.Eventually(t, func() bool { return ok[wire.Gate](p, "readGate", at, "").Waiting == 1 }, 10*time.Second, time.Millisecond)
		require.Equal(t, wire.Gate{Closed: true, Waiting: 1}, ok[wire.Gate](p, "closeGate", at, ""), "closing it again changes nothing")
		require.False(t, ok[wire.Gate](p, "openGate", at, "").Closed)
		require.Equal(t, http.StatusOK, (<-done).StatusCode)
		require.Equal(t, wire.Gate{}, ok[wire.Gate](p, "openGate", at, ""))
	}

	a := ok[wire.Audit](p, "auditRequest", params{"request": failed.Header.Get("X-Request-Id")}, "")
	require.Len(t, a.Entries, 1)
	require.Equal(t, "ENGINE_FAILURE", a.Entries[0].ErrorCode)
	require.Contains(t, a.Entries[0].Raw, `"error_code":"ENGINE_FAILURE"`)
	require.Equal(t, []int64{1, 0, 1}, []int64{a.EngineCalls, a.Charges, a.KeyLookups})
	all := ok[wire.Audit](p, "auditUser", of, "")
	require.EqualValues(t, len(all.Entries), all.KeyLookups)
	require.Equal(t, all.EngineCalls-1, all.Charges)
	nothing := ok[wire.Audit](p, "auditRequest", params{"request": "req_unknown"}, "")
	require.Empty(t, nothing.Entries)

	for id := range p.ops {
		require.True(t, p.called[id], "%s was not called", id)
	}
}

// Of what an earlier process has answered the log knows more than the control
// does.
func TestAuditOfAnEarlierProcess(t *testing.T) {
	k, err := account.NewKey("free")
	require.NoError(t, err)
	cfg := server.Config{APILog: filepath.Join(t.TempDir(), "api.log"), Known: []server.User{{ID: "user-1", Plan: "free", Keys: []account.Key{k}}}}
	first := startWith(t, cfg)
	id := params{"request": first.invoice(k.Reveal()).Header.Get("X-Request-Id")}
	before := ok[wire.Audit](first, "auditRequest", id, "")
	require.Len(t, before.Entries, 1)
	require.EqualValues(t, 1, before.Charges)
	require.NoError(t, first.Close(t.Context()))

	second := startWith(t, cfg)
	after := ok[wire.Audit](second, "auditRequest", id, "")
	require.Equal(t, before.Entries, after.Entries)
	require.Zero(t, after.Charges, "the second process has charged nothing")
	require.Empty(t, ok[wire.Audit](second, "auditRequest", params{"request": "req_unknown"}, "").Entries)
}

func parse(t *testing.T, c wire.Clock) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, c.Now)
	require.NoError(t, err)
	return at
}

// TestRefusals: what makes no sense is refused, says why, and changes nothing.
func TestRefusals(t *testing.T) {
	p := start(t, wire.ClockFrozen)
	u := ok[wire.User](p, "createUser", nil, `{"plan":"free","keys":1}`)
	of := params{"user": u.ID}
	burst := params{"user": u.ID, "dimension": "burst"}
	const whole = " is no whole number from 1 to 1000000"
	for name, c := range map[string]struct {
		status int
		code   string
		id     string
		params params
		body   string
		want   string
	}{
		"override null":        {422, "invalid", "setOverride", burst, `{"value":null}`, whole},
		"override 0":           {422, "invalid", "setOverride", burst, `{"value":0}`, whole},
		"override negative":    {422, "invalid", "setOverride", burst, `{"value":-1}`, whole},
		"override fractional":  {422, "invalid", "setOverride", burst, `{"value":1.5}`, whole},
		"override in words":    {422, "invalid", "setOverride", burst, `{"value":"unlimited"}`, whole},
		"override in quotes":   {422, "invalid", "setOverride", burst, `{"value":"7"}`, whole},
		"override true":        {422, "invalid", "setOverride", burst, `{"value":true}`, whole},
		"override list":        {422, "invalid", "setOverride", burst, `{"value":[7]}`, "value: want a single value"},
		"override novel":       {422, "invalid", "setOverride", burst, `{"value":"` + strings.Repeat("x", 64) + `"}`, "value: longer than 64 bytes"},
		"override over":        {422, "invalid", "setOverride", burst, `{"value":7,"expires":"2001-01-01T00:00:00Z"}`, "expired already"},
		"override too large":   {422, "invalid", "setOverride", burst, `{"value":1000001}`, whole},
		"override sentinel":    {422, "invalid", "setOverride", burst, `{"value":9223372036854775807}`, whole},
		"override huge":        {422, "invalid", "setOverride", burst, `{"value":1e400}`, whole},
		"override missing":     {422, "invalid", "setOverride", burst, `{}`, "value: missing"},
		"override date":        {422, "invalid", "setOverride", burst, `{"value":1,"expires":"tomorrow"}`, `expires "tomorrow": want a date as in RFC 3339`},
		"concurrency range":    {422, "invalid", "setOverride", params{"user": u.ID, "dimension": "concurrency"}, `{"value":100001}`, `concurrency "100001" is no whole number from 1 to 100000`},
		"unknown dimension":    {422, "invalid", "setOverride", params{"user": u.ID, "dimension": "speed"}, `{"value":1}`, `dimension "speed": want one of requests-per-minute, burst, concurrency`},
		"ending a dimension":   {422, "invalid", "endOverride", params{"user": u.ID, "dimension": "speed"}, "", `dimension "speed"`},
		"unknown plan":         {422, "invalid", "setPlan", of, `{"plan":"gold"}`, `unknown plan "gold"`},
		"a new user's plan":    {422, "invalid", "createUser", nil, `{"plan":"gold","keys":1}`, `unknown plan "gold"`},
		"no keys":              {422, "invalid", "createUser", nil, `{"plan":"free","keys":0}`, "keys: want a whole number from 1 to 16"},
		"many keys":            {422, "invalid", "createUser", nil, `{"plan":"free","keys":17}`, "keys: want a whole number from 1 to 16"},
		"unknown member":       {422, "invalid", "createUser", nil, `{"plan":"free","keys":1,"admin":true}`, `unknown member "admin"; known: keys, plan`},
		"doubled member":       {422, "invalid", "setPlan", of, `{"plan":"free","plan":"pro"}`, "plan: given twice"},
		"two bodies":           {422, "invalid", "setPlan", of, `{"plan":"free"}{}`, "something follows the JSON value"},
		"no JSON":              {422, "invalid", "setPlan", of, `plan=pro`, "not JSON"},
		"a large body":         {422, "invalid", "setPlan", of, strings.Repeat(" ", 64<<10) + `{}`, "the body is larger than 65536 bytes"},
		"scheduled plan":       {422, "invalid", "schedulePlan", of, `{"plan":"gold"}`, `unknown plan "gold"`},
		"a stored novel":       {422, "invalid", "storeEntitlement", burst, `{"text":"` + strings.Repeat("x", 201) + `"}`, "text: longer than 200 bytes"},
		"a stored dimension":   {422, "invalid", "storeOverride", params{"user": u.ID, "dimension": "speed"}, `{"text":"1"}`, `dimension "speed"`},
		"a stored date":        {422, "invalid", "storeOverride", burst, `{"text":"1","expires":"soon"}`, `expires "soon"`},
		"a removed dimension":  {422, "invalid", "removeEntitlement", params{"user": u.ID, "dimension": "speed"}, "", `dimension "speed"`},
		"operations":           {422, "invalid", "setOperations", of, `{"remaining":-1}`, "remaining: want a whole number from 0 to"},
		"unknown behaviour":    {422, "invalid", "setEngine", of, `{"behaviour":"explode"}`, `behaviour "explode": want one of ok, fail, panic, timeout, stubborn`},
		"unknown place":        {422, "invalid", "closeGate", params{"user": u.ID, "place": "moon"}, "", `place "moon": want one of authentication, engine, response`},
		"another's key":        {404, "not_found", "revokeKey", of, `{"key":"isk_free_0123456789abcdef"}`, "unknown API key"},
		"not a key":            {422, "invalid", "revokeKey", of, `{"key":"password"}`, "malformed API key"},
		"unknown user":         {404, "not_found", "setPlan", params{"user": "nobody"}, `{"plan":"pro"}`, `unknown user "nobody"`},
		"unknown user's gate":  {404, "not_found", "readGate", params{"user": "nobody", "place": "engine"}, "", `unknown user "nobody"`},
		"unknown user's audit": {404, "not_found", "auditUser", params{"user": "nobody"}, "", `unknown user "nobody"`},
		"too far":              {422, "invalid", "advanceClock", nil, `{"microseconds":7000000000000000}`, "want 1970 to 2199"},
		"too far back":         {422, "invalid", "advanceClock", nil, `{"microseconds":-7000000000000000}`, "want 1970 to 2199"},
		"beyond all":           {422, "invalid", "advanceClock", nil, `{"microseconds":9223372036854775807}`, "microseconds: want a whole number"},
	} {
		t.Run(name, func(t *testing.T) {
			q := *p
			q.T = t
			require.Contains(t, q.fails(c.status, c.code, c.id, c.params, c.body), c.want)
		})
	}
	require.Equal(t, "10", p.invoice(u.Keys[0]).Header.Get("RateLimit-Limit"))
}

// TestTimelineIsBounded: steps back do not give room for ever more steps forward.
func TestTimelineIsBounded(t *testing.T) {
	p := start(t, wire.ClockShifted)
	const century = `3155760000000000`
	for range 2 {
		ok[wire.Clock](p, "advanceClock", nil, `{"microseconds":`+century+`}`)
		ok[wire.Clock](p, "advanceClock", nil, `{"microseconds":-`+century+`}`)
	}
	require.Contains(t, p.fails(422, "invalid", "advanceClock", nil, `{"microseconds":`+century+`}`), "all moves forward")
	u := ok[wire.User](p, "createUser", nil, `{"plan":"free","keys":1}`)
	require.Equal(t, http.StatusOK, p.invoice(u.Keys[0]).StatusCode)
}

// TestRestart: what can be dropped is dropped where the parts say how.
func TestRestart(t *testing.T) {
	restarted := 0
	p := startWith(t, server.Config{Clock: wire.ClockFrozen, Alter: func(p *wiring.Parts) {
		p.Restart = func(context.Context) error { restarted++; return nil }
	}})
	require.Contains(t, ok[wire.Capabilities](p, "capabilities", nil, "").Features, wire.FeatureRestart)
	ok[none](p, "restart", nil, "")
	require.Equal(t, 1, restarted)
}

func TestRealClock(t *testing.T) {
	p := start(t, wire.ClockReal)
	require.NotContains(t, ok[wire.Capabilities](p, "capabilities", nil, "").Features, wire.FeatureClock)
	require.Equal(t, wire.ClockReal, ok[wire.Clock](p, "readClock", nil, "").Mode)
	p.fails(404, wire.CodeUnsupported, "advanceClock", nil, `{"microseconds":1}`)
}

// TestToken: without it, nothing is told apart.
func TestToken(t *testing.T) {
	p := start(t, wire.ClockReal)
	u := ok[wire.User](p, "createUser", nil, `{"plan":"free","keys":1}`)
	for name, authorization := range map[string]string{
		"missing":      "",
		"empty":        "Bearer ",
		"wrong":        "Bearer " + strings.Repeat("A", len(p.ControlToken())),
		"a prefix":     "Bearer " + p.ControlToken()[1:],
		"longer":       "Bearer " + p.ControlToken() + "x",
		"no scheme":    p.ControlToken(),
		"a user's key": "Bearer " + u.Keys[0],
	} {
		for _, path := range []string{wire.Prefix, wire.Prefix + "/users/" + u.ID + "/plan", wire.Prefix + "/nonsense", "/"} {
			status, data := p.send(http.MethodGet, path, authorization, "")
			require.Equal(t, http.StatusUnauthorized, status, name)
			require.NotContains(t, string(data), p.ControlToken())
		}
	}
}

// TestUnsupported: what this server does not know, it says (and never redirects).
func TestUnsupported(t *testing.T) {
	p := start(t, wire.ClockReal)
	for _, path := range []string{"/", "/control", "/control/v2", wire.Prefix + "/", wire.Prefix + "/teleport", wire.Prefix + "//users", wire.Prefix + "/users/x/y"} {
		status, data := p.send(http.MethodGet, path, "Bearer "+p.ControlToken(), "")
		require.Equal(t, http.StatusNotFound, status, path)
		var e wire.Error
		require.NoError(t, json.Unmarshal(data, &e))
		require.Equal(t, wire.CodeUnsupported, e.Code)
	}
	status, data := p.send(http.MethodPatch, wire.Prefix+"/users", "Bearer "+p.ControlToken(), "")
	require.Equal(t, http.StatusMethodNotAllowed, status)
	require.Contains(t, string(data), "method_not_allowed")
}
