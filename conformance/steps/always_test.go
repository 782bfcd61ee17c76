package steps

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
)

// answered is an exchange with an answer as a server would have sent it.
func answered(method, path string, status int, header map[string]string, body string) target.Exchange {
	h := http.Header{}
	for k, v := range header {
		h.Set(k, v)
	}
	return target.Exchange{Method: method, Path: path, Status: status, Header: h, Body: []byte(body), Answer: contract.ParseAnswer(status, h, []byte(body))}
}

func clauses(findings []oracle.Finding) []string {
	var all []string
	for _, f := range findings {
		all = append(all, f.Clause+" "+f.Field)
	}
	return all
}

func TestEveryAnswerIsChecked(t *testing.T) {
	const path = "/v1/invoice/calculate"
	id := func(more ...string) map[string]string {
		h := map[string]string{"X-Request-Id": "r1", "Content-Type": "application/json", "Cache-Control": "no-store"}
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	const body = `{"requestId":"r1","errorCode":"E","message":"m"}`
	for name, tc := range map[string]struct {
		e    target.Exchange
		want []string
	}{
		"a success":                {answered("POST", path, 200, id(), "anything"), nil},
		"an error":                 {answered("POST", path, 422, id("Cache-Control", ""), body), nil},
		"a rejection":              {answered("POST", path, 429, id(), body), nil},
		"no request id":            {answered("POST", path, 200, map[string]string{}, ""), []string{"ERR-2 X-Request-Id"}},
		"another id in the body":   {answered("POST", path, 404, id(), `{"requestId":"r2","errorCode":"E","message":"m"}`), []string{"ERR-2 requestId"}},
		"no body":                  {answered("POST", path, 404, id(), ""), []string{"ERR-1 body"}},
		"a HEAD has no body":       {answered("HEAD", path, 405, id(), ""), nil},
		"another media type":       {answered("POST", path, 404, id("Content-Type", "text/html"), body), []string{"ERR-1 Content-Type"}},
		"an empty message":         {answered("POST", path, 404, id(), `{"requestId":"r1","errorCode":"E","message":""}`), []string{"ERR-1 message"}},
		"a 429 that can be stored": {answered("POST", path, 429, id("Cache-Control", "private"), body), []string{"ERR-4 Cache-Control"}},
		"out of scope":             {answered("GET", "/health", 429, map[string]string{}, ""), nil},
		"next to the scope":        {answered("GET", "/v1/invoices", 404, map[string]string{}, ""), nil},
		"the prefix itself":        {answered("GET", "/v1/invoice", 200, map[string]string{}, ""), []string{"ERR-2 X-Request-Id"}},
		"the prefix with a query":  {answered("GET", "/v1/invoice?x", 200, map[string]string{}, ""), []string{"ERR-2 X-Request-Id"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Suite{ids: newIdentities(), scope: target.Scope{Prefix: contract.ScopePrefix}}
			require.Equal(t, tc.want, clauses(s.always(tc.e)))
		})
	}
}

func TestRequestIDsAreUsedOnce(t *testing.T) {
	s := &Suite{ids: newIdentities(), scope: target.Scope{Prefix: contract.ScopePrefix}}
	e := answered("POST", "/v1/invoice/x", 200, map[string]string{"X-Request-Id": "r1"}, "")
	require.Empty(t, s.always(e))
	require.Equal(t, []string{"ERR-2 X-Request-Id"}, clauses(s.always(e)))
	other := &Suite{ids: newIdentities(), scope: target.Scope{Prefix: contract.ScopePrefix}}
	require.Empty(t, other.always(e), "each run remembers its own")
}

func TestRejectionsAreToldApart(t *testing.T) {
	of := func(status int, code string, blamed ...string) exchange {
		e := exchange{Exchange: answered("POST", "/v1/invoice/x", status, nil, `{"errorCode":"`+code+`"}`)}
		for _, c := range blamed {
			e.Findings = append(e.Findings, oracle.Finding{Clause: c})
		}
		return e
	}
	left := func(e exchange, n int64) exchange {
		e.Answer.Remaining = contract.Number{State: contract.Good, Value: n}
		return e
	}
	for name, tc := range map[string]struct {
		e         exchange
		rate, cap bool
	}{
		"rate":                       {of(429, "RATE_LIMIT_EXCEEDED"), true, false},
		"cap":                        {of(429, "CONCURRENCY_LIMIT_EXCEEDED"), false, true},
		"rate with another status":   {of(503, "RATE_LIMIT_EXCEEDED"), true, false},
		"cap with another status":    {of(503, "CONCURRENCY_LIMIT_EXCEEDED"), false, true},
		"a 429 that says neither":    {of(429, "SLOW_DOWN"), true, true},
		"the cap under a false name": {of(429, "RATE_LIMIT_EXCEEDED", "CONC-1"), false, true},
		"one with tokens left":       {left(of(429, "SLOW_DOWN"), 3), false, true},
		"one at the last token":      {left(of(429, "SLOW_DOWN"), 0), true, true},
		"a success":                  {of(200, ""), false, false},
		"another error":              {of(503, "CAPACITY_UNAVAILABLE"), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.rate, rateRejected(tc.e))
			require.Equal(t, tc.cap, capRejected(tc.e))
			require.Equal(t, tc.rate && tc.cap, tellsWhich(tc.e) != nil)
		})
	}
}
