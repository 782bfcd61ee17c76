package server_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/wiring"
)

// quick makes the engine's deadline one that no test wants to wait longer for.
// Work that should succeed may run into it on a busy machine.
func quick(p *wiring.Parts) { p.Bounds.Engine = 50 * time.Millisecond }

// TestEachAnswer produces every answer there is and checks status, code, headers,
// entry, charges and engine calls of each.
func TestEachAnswer(t *testing.T) {
	broken := func(r account.Record, now time.Time) (policy.Effective, error) {
		if r.Subscription.Plan == "plus" {
			return policy.Effective{}, &policy.ConfigurationError{Reason: policy.Missing, Plan: "plus", Dimension: policy.Burst}
		}
		return policy.Resolve(r.Plans, r.Subscription, r.Overrides, now)
	}
	patient := start(t, server.Config{Alter: func(p *wiring.Parts) { p.Resolve = broken }})
	hasty := start(t, server.Config{Alter: quick})

	call := func(f *fixture, u wire.User) answer { return f.calculate(u.Keys[0]) }
	for name, c := range map[string]struct {
		plan           string
		arrange        func(*fixture, wire.User)
		send           func(*fixture, wire.User) answer
		status         int
		code           string
		outcome        string
		calls, charged int64
		headers        bool
	}{
		"success":      {send: call, status: 200, outcome: contract.LogAdmitted, calls: 1, charged: 1, headers: true},
		"not found":    {send: func(f *fixture, u wire.User) answer { return f.send("GET", "/v1/invoice/x", u.Keys[0], "") }, status: 404, code: contract.CodeNotFound, outcome: contract.LogAdmitted, headers: true},
		"wrong method": {send: func(f *fixture, u wire.User) answer { return f.send("PUT", "/v1/invoice/calculate", u.Keys[0], "") }, status: 405, code: contract.CodeMethodNotAllowed, outcome: contract.LogAdmitted, headers: true},
		"invalid":      {send: func(f *fixture, u wire.User) answer { return f.send("POST", "/v1/invoice/calculate", u.Keys[0], "{}") }, status: 422, code: contract.CodeValidationFailed, outcome: contract.LogAdmitted, headers: true},
		"empty body":   {send: func(f *fixture, u wire.User) answer { return f.send("POST", "/v1/invoice/calculate", u.Keys[0], "") }, status: 422, code: contract.CodeValidationFailed, outcome: contract.LogAdmitted, headers: true},
		"oversize body": {send: func(f *fixture, u wire.User) answer {
			return f.send("POST", "/v1/invoice/calculate", u.Keys[0], strings.Repeat(" ", 1<<20+1))
		}, status: 422, code: contract.CodeValidationFailed, outcome: contract.LogAdmitted, headers: true},
		"exhausted": {arrange: func(f *fixture, u wire.User) {
			f.control("PUT", "/users/"+u.ID+"/operations", wire.Operations{Remaining: 0}, nil)
		},
			send: call, status: 402, code: contract.CodeCapacityExhausted, outcome: contract.LogAdmitted, headers: true},
		"engine fails":        {arrange: func(f *fixture, u wire.User) { f.engine(u, wire.EngineFail) }, send: call, status: 500, code: contract.CodeEngineFailure, outcome: contract.LogAdmitted, calls: 1, headers: true},
		"engine panics":       {arrange: func(f *fixture, u wire.User) { f.engine(u, wire.EnginePanic) }, send: call, status: 500, code: contract.CodeEngineFailure, outcome: contract.LogAdmitted, calls: 1, headers: true},
		"engine times out":    {arrange: func(f *fixture, u wire.User) { f.engine(u, wire.EngineTimeout) }, send: call, status: 504, code: contract.CodeEngineTimeout, outcome: contract.LogAdmitted, calls: 1, headers: true},
		"engine is stubborn":  {arrange: func(f *fixture, u wire.User) { f.engine(u, wire.EngineStubborn) }, send: call, status: 504, code: contract.CodeEngineTimeout, outcome: contract.LogAdmitted, calls: 1, headers: true},
		"no policy":           {plan: "plus", send: call, status: 503, code: contract.CodeConfigUnavailable, outcome: contract.LogUnresolved},
		"no key":              {send: func(f *fixture, _ wire.User) answer { return f.calculate("") }, status: 401, code: contract.CodeUnauthenticated, outcome: contract.LogUnauthenticated},
		"rate rejected":       {arrange: func(f *fixture, u wire.User) { f.empty(u) }, send: call, status: 429, code: contract.CodeRateLimited, outcome: contract.LogRejected, headers: true},
		"rate before routing": {arrange: func(f *fixture, u wire.User) { f.empty(u) }, send: func(f *fixture, u wire.User) answer { return f.send("GET", "/v1/invoice/x", u.Keys[0], "") }, status: 429, code: contract.CodeRateLimited, outcome: contract.LogRejected, headers: true},
		"rate before validity": {arrange: func(f *fixture, u wire.User) { f.empty(u) }, send: func(f *fixture, u wire.User) answer { return f.send("POST", "/v1/invoice/calculate", u.Keys[0], "{}") },
			status: 429, code: contract.CodeRateLimited, outcome: contract.LogRejected, headers: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := patient.in(t)
			if c.code == contract.CodeEngineTimeout {
				f = hasty.in(t)
			}
			plan := c.plan
			if plan == "" {
				plan = "free"
			}
			u := f.newUser(plan)
			if c.arrange != nil {
				c.arrange(f, u)
			}
			before := f.audit(u)
			a := c.send(f, u)
			require.Equal(t, c.status, a.StatusCode, a.body)
			require.Equal(t, "application/json", a.Header.Get("Content-Type"))
			if c.code != "" {
				require.Equal(t, c.code, a.code(t))
			}
			for _, h := range []string{"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"} {
				require.Equal(t, c.headers, len(a.Header.Values(h)) == 1, h)
			}
			require.Equal(t, c.status == 429, a.Header.Get("Retry-After") != "")
			require.Equal(t, c.status == 429, a.Header.Get("Cache-Control") == "no-store")
			require.Equal(t, c.status == 401, a.Header.Get("WWW-Authenticate") == "Bearer")

			e := f.logged(a.Header.Get("X-Request-Id"))
			require.Equal(t, c.status, e.Status)
			require.Equal(t, c.code, e.ErrorCode)
			require.Equal(t, c.outcome, e.Outcome)
			require.Equal(t, c.charged, e.Charged)
			require.Equal(t, c.headers, e.Decision != nil)
			after := f.audit(u)
			require.Equal(t, c.calls, after.EngineCalls-before.EngineCalls, "engine calls")
			require.Equal(t, c.charged, after.Charges-before.Charges, "charges")
			if c.outcome != contract.LogUnauthenticated {
				require.Equal(t, u.ID, e.User)
				require.Equal(t, plan, e.Plan)
				require.EqualValues(t, 1, after.KeyLookups-before.KeyLookups, "one lookup a request")
			}
			f.idle()
		})
	}
}

// empty spends the whole bucket of a user.
func (f *fixture) empty(u wire.User) wire.User {
	f.Helper()
	for range 11 {
		f.send("GET", "/v1/invoice/x", u.Keys[0], "")
	}
	return u
}

// TestUnauthenticatedAnswersAreAlike: which of the many ways of not being known
// it was cannot be told from the answer (AUTH-1).
func TestUnauthenticatedAnswersAreAlike(t *testing.T) {
	roomy, err := policy.NewAllowance(1, 1000, 1000)
	require.NoError(t, err)
	f := start(t, server.Config{Anonymous: anonymous.Config{Allowance: roomy}})
	u := f.newUser("free")
	good, revoked := u.Keys[0], u.Keys[1]
	f.control(http.MethodPost, "/users/"+u.ID+"/keys/revoke", wire.Key{Key: revoked}, nil)
	unknown := good[:len(good)-1] + map[bool]string{true: "b", false: "a"}[strings.HasSuffix(good, "a")]

	id := regexp.MustCompile(`req_[A-Z2-7]{26}`)
	var first string
	for name, lines := range map[string]string{
		"missing":             "X-Nothing: x\r\n",
		"empty":               "Authorization:\r\n",
		"no scheme":           "Authorization: " + good + "\r\n",
		"another scheme":      "Authorization: Basic " + good + "\r\n",
		"scheme run together": "Authorization: Bearer" + good + "\r\n",
		"two spaces":          "Authorization: Bearer  " + good + "\r\n",
		"a tab":               "Authorization: Bearer\t" + good + "\r\n",
		"malformed":           "Authorization: Bearer nonsense\r\n",
		"unknown":             "Authorization: Bearer " + unknown + "\r\n",
		"revoked":             "Authorization: Bearer " + revoked + "\r\n",
		"a prefix":            "Authorization: Bearer " + good[:len(good)-1] + "\r\n",
		"longer":              "Authorization: Bearer " + good + "x\r\n",
		"oversize":            "Authorization: Bearer " + good + strings.Repeat("x", 8000) + "\r\n",
		"twice the same":      "Authorization: Bearer " + good + "\r\nAuthorization: Bearer " + good + "\r\n",
		"a second, other":     "Authorization: Bearer " + good + "\r\nauthorization: Basic x\r\n",
		"a list":              "Authorization: Bearer " + good + ", Bearer " + good + "\r\n",
		"another header":      "X-Api-Key: " + good + "\r\n",
		"as a proxy":          "Proxy-Authorization: Bearer " + good + "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			a := f.raw("POST /v1/invoice/calculate HTTP/1.1\r\nHost: x\r\n" + lines + "Content-Length: 2\r\n\r\n{}")
			require.Equal(t, http.StatusUnauthorized, a.StatusCode)
			require.Equal(t, contract.CodeUnauthenticated, a.code(t))
			e := f.logged(a.Header.Get("X-Request-Id"))
			require.Empty(t, e.User)
			require.Nil(t, e.Decision)
			require.Equal(t, "127.0.0.0/24", e.Client)

			a.Header.Del("Date")
			shown := id.ReplaceAllString(fmt.Sprint(a.Header, a.body), "ID")
			if first == "" {
				first = shown
			}
			require.Equal(t, first, shown)
		})
	}
	require.Equal(t, "9", f.calculate(good).Header.Get("RateLimit-Remaining"), "no token was spent")
	a := f.raw("POST /v1/invoice/calculate HTTP/1.1\r\nHost: x\r\nauthorization: bearer " + good + "\r\nContent-Length: 2\r\n\r\n{}")
	require.Equal(t, http.StatusUnprocessableEntity, a.StatusCode, "names and schemes have no case")
}

// TestRequestIDs: the server mints them, whatever a client sends (ERR-2, ERR-5).
func TestRequestIDs(t *testing.T) {
	f := start(t, server.Config{})
	u := f.newUser("pro")
	seen := map[string]bool{}
	for range 50 {
		a := f.raw(head(u.Keys[0], 2, "X-Request-Id: mine", "X-Request-Id: mine too") + "{}")
		require.Len(t, a.Header.Values("X-Request-Id"), 1)
		id := a.Header.Get("X-Request-Id")
		require.Regexp(t, `^req_[A-Z2-7]{26}$`, id)
		require.False(t, seen[id])
		seen[id] = true
	}
	for _, e := range f.audit(u).Entries {
		require.NotContains(t, e.Raw, "mine")
	}
}

// TestLogHoldsNoKeyAndNoBody: not even what a client misplaces (LOG-3).
func TestLogHoldsNoKeyAndNoBody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "api.jsonl")
	f := start(t, server.Config{APILog: path})
	u := f.newUser("free")
	f.send("POST", "/v1/invoice/"+u.Keys[1]+"/x?key="+u.Keys[1], u.Keys[0], "a secret body")
	f.send("POST", "/v1/invoice/calculate", u.Keys[0], `{"secret":"body"}`)
	f.raw(fmt.Sprintf("%s /v1/invoice/x HTTP/1.1\r\nHost: x\r\nUser-Agent: secret\r\nAuthorization: Bearer %s\r\n\r\n", strings.Repeat("M", 500), u.Keys[0]))
	f.send("POST", "/v1/invoice/"+strings.Repeat("long", 500), u.Keys[0], "")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(data), "\n"))
	require.NotContains(t, string(data), u.Keys[0][9:])
	require.NotContains(t, string(data), u.Keys[1][9:])
	require.NotContains(t, string(data), "secret")
	require.Less(t, len(data), 4*900, "no entry is long")
}

// TestStoreOutOfReach: no lookup, no limits known, nobody admitted.
func TestStoreOutOfReach(t *testing.T) {
	f := start(t, server.Config{Users: 1, Alter: func(p *wiring.Parts) { p.Accounts = away{p.Accounts} }})
	a := f.calculate(f.Users()[0].Keys[0].Reveal())
	require.Equal(t, http.StatusServiceUnavailable, a.StatusCode)
	require.Equal(t, contract.CodeConfigUnavailable, a.code(t))
	require.NotContains(t, a.body, "connection refused")
	require.Equal(t, contract.LogUnresolved, f.logged(a.Header.Get("X-Request-Id")).Outcome)
}

// TestLedgerOutOfReach: what cannot be accounted for is not done.
func TestLedgerOutOfReach(t *testing.T) {
	f := start(t, server.Config{Users: 1, Alter: func(p *wiring.Parts) { p.Ledger = awayLedger{p.Ledger} }})
	a := f.calculate(f.Users()[0].Keys[0].Reveal())
	require.Equal(t, http.StatusServiceUnavailable, a.StatusCode)
	require.Equal(t, contract.CodeCapacityUnavailable, a.code(t))
	require.NotEmpty(t, a.Header.Get("RateLimit-Limit"))
	f.idle()
}

// TestLogFailureFailsNoRequest: LOG-5.
func TestLogFailureFailsNoRequest(t *testing.T) {
	f := start(t, server.Config{Users: 1, Alter: func(p *wiring.Parts) { p.Log = awayLog{} }})
	require.Equal(t, http.StatusOK, f.calculate(f.Users()[0].Keys[0].Reveal()).StatusCode)
}
