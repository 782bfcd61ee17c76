package contract_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
)

func TestAnotherWording(t *testing.T) {
	w := contract.Wording{Names: map[string]string{
		contract.HeaderLimit: "X-RateLimit-Limit", contract.HeaderRemaining: "x-ratelimit-remaining",
		contract.HeaderRequestID: "X-Correlation-Id",
		contract.MemberErrorCode: "error.code", contract.MemberMessage: "error.details.text", contract.MemberRequestID: "id",
	}}
	h := http.Header{}
	for name, value := range map[string]string{
		"X-RateLimit-Limit": "10", "X-RateLimit-Remaining": "3", "RateLimit-Reset": "42", "RateLimit-Limit": "99", "X-Correlation-Id": "r", "X-Request-Id": "other",
	} {
		h.Set(name, value)
	}
	a := w.Parse(429, h, []byte(`{"id":"r","error":{"code":"RATE_LIMIT_EXCEEDED","details":{"text":"wait"}},"errorCode":"X"}`))
	require.Equal(t, []int64{10, 3, 42}, []int64{a.Limit.Value, a.Remaining.Value, a.Reset.Value})
	require.Zero(t, a.Reset.Slack)
	for text, got := range map[string]contract.Text{"r": a.RequestID, "RATE_LIMIT_EXCEEDED": a.Body.ErrorCode, "wait": a.Body.Message} {
		require.Equal(t, contract.Text{State: contract.Good, Value: text}, got)
	}
	require.Equal(t, a.RequestID, a.Body.RequestID)

	require.Equal(t, "X-RateLimit-Limit", w.Name(contract.HeaderLimit))
	require.Equal(t, contract.HeaderReset, w.Name(contract.HeaderReset))

	for body, want := range map[string]contract.State{
		`{"error":{"code":"A","code":"B"}}`:             contract.Doubled,
		`{"error":{"code":"A"},"error":{"code":"B"}}`:   contract.Doubled,
		`{"error":{"code":5}}`:                          contract.Malformed,
		`{"error":{"code":null}}`:                       contract.Malformed,
		`{"error":"code"}`:                              contract.Absent,
		`{"error":[{"code":"A"}]}`:                      contract.Absent,
		`{"errorCode":"A","error.code":"B","code":"C"}`: contract.Good, // a dot in a name is taken as it is
	} {
		require.Equal(t, want, w.Parse(400, nil, []byte(body)).Body.ErrorCode.State, body)
	}
}

// An instant is held against the Date beside it: whichever moment of that second
// it was, the seconds are known to one either way.
func TestResetAsAnInstant(t *testing.T) {
	const date = "Mon, 30 Nov 2026 10:00:00 GMT" // 1796032800
	for name, c := range map[string]struct {
		form        contract.ResetForm
		reset, date string
		want        contract.State
		left        int64
	}{
		"unix time":               {contract.ResetUnixTime, "1796032842", date, contract.Good, 42},
		"unix time, over":         {contract.ResetUnixTime, "1796032790", date, contract.Good, 0},
		"unix time, no date":      {contract.ResetUnixTime, "1796032842", "", contract.Malformed, 0},
		"unix time, a bad date":   {contract.ResetUnixTime, "1796032842", "today", contract.Malformed, 0},
		"unix time, a fraction":   {contract.ResetUnixTime, "1796032842.5", date, contract.Malformed, 0},
		"unix time, too large":    {contract.ResetUnixTime, "99999999999999999999", date, contract.Malformed, 0},
		"a date":                  {contract.ResetDate, "Mon, 30 Nov 2026 10:00:42 GMT", date, contract.Good, 42},
		"a date in UTC":           {contract.ResetDate, "Mon, 30 Nov 2026 10:00:42 UTC", date, contract.Good, 42},
		"a date that is a number": {contract.ResetDate, "42", date, contract.Malformed, 0},
		"a date before any":       {contract.ResetDate, "Mon, 30 Nov 1926 10:00:42 GMT", date, contract.Malformed, 0},
		"none":                    {contract.ResetDate, "", date, contract.Absent, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{"Date": {c.date}}
			if c.reset != "" {
				h.Set(contract.HeaderReset, c.reset)
			}
			n := contract.Wording{Reset: c.form}.Parse(200, h, nil).Reset
			require.Equal(t, c.want, n.State)
			require.Equal(t, c.left, n.Value)
			require.Equal(t, c.want == contract.Good, n.Slack == 1)
			require.NotEmpty(t, n.String())
		})
	}
}

// What was decided while a request was held is held against a Date that came with
// the answer: seconds later.
func TestResetAsAnInstantOfAHeldRequest(t *testing.T) {
	const date = "Mon, 30 Nov 2026 10:00:00 GMT" // 1796032800
	for name, c := range map[string]struct {
		form   contract.ResetForm
		reset  string
		by     time.Duration
		lo, hi int64 // that it may have said
		text   string
	}{
		"at once":             {contract.ResetUnixTime, "1796032809", 300 * time.Millisecond, 8, 10, "1796032809, 9 s from now"},
		"4 s before":          {contract.ResetUnixTime, "1796032802", 4100 * time.Millisecond, 1, 7, "1796032802, 2 s from now"},
		"over by the answer":  {contract.ResetUnixTime, "1796032798", 3 * time.Second, -2, 4, "1796032798, 2 s ago"},
		"seconds":             {contract.ResetSeconds, "9", 4 * time.Second, 9, 9, "9"},
		"seconds, undeclared": {contract.ResetUnixTime, "9", 0, -1, 1, "9 (it looks like seconds: see reset-is)"},
		"instant, undeclared": {contract.ResetSeconds, "1796032809", 0, 1796032809, 1796032809, "1796032809 (it looks like Unix time: see reset-is)"},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{"Date": {date}}
			h.Set(contract.HeaderReset, c.reset)
			n := contract.Wording{Reset: c.form}.Parse(200, h, nil).Reset.Earlier(c.by)
			require.Equal(t, contract.Good, n.State)
			require.Equal(t, c.lo, n.Value-n.Slack)
			require.Equal(t, c.hi, n.Value+n.Slack)
			require.Equal(t, c.text, n.String())
		})
	}
}

func TestOpenAnswersInOtherWords(t *testing.T) {
	w := contract.Wording{Replies: map[string]contract.Reply{
		contract.CodeUnauthenticated:     {Status: 403, Code: "FORBIDDEN"},
		contract.CodeCapacityExhausted:   {Status: 409, Code: "QUOTA"},
		contract.CodeEngineFailure:       {Status: 502, Code: "BROKEN"},
		contract.CodeEngineTimeout:       {Status: 502, Code: "LATE"},
		contract.CodeCapacityUnavailable: {Status: 503, Code: "BUSY"},
	}}
	for name, c := range map[string]struct {
		status   int
		code     string
		want     int
		wantCode string
	}{
		"as said":                  {403, "FORBIDDEN", 401, contract.CodeUnauthenticated},
		"the status alone":         {403, "OTHER", 401, "OTHER"},
		"a status of two, by code": {502, "LATE", 504, contract.CodeEngineTimeout},
		"a status of two":          {502, "OTHER", 502, "OTHER"},
		"as the contract has it":   {401, contract.CodeUnauthenticated, 401, contract.CodeUnauthenticated},
		"not open":                 {429, contract.CodeRateLimited, 429, contract.CodeRateLimited},
		"the contract's own 503":   {503, contract.CodeConfigUnavailable, 503, contract.CodeConfigUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			a := w.Parse(c.status, nil, []byte(`{"errorCode":"`+c.code+`"}`))
			require.Equal(t, contract.Reply{Status: c.status, Code: c.code}, a.Said)
			require.Equal(t, contract.Reply{Status: c.want, Code: c.wantCode}, contract.Reply{Status: a.Status, Code: a.Body.ErrorCode.Value})
			require.Equal(t, c.status, a.SaidStatus())
		})
	}
	require.Equal(t, "403 FORBIDDEN", w.Reply(401).String())
	require.Equal(t, contract.Reply{Status: 404, Code: contract.CodeNotFound}, w.Reply(404))
	require.Equal(t, contract.Reply{Status: 418}, w.Reply(418))
}
