package contract_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
)

func TestParseNumbers(t *testing.T) {
	for name, tc := range map[string]struct {
		lines []string
		state contract.State
		value int64
	}{
		"absent":             {nil, contract.Absent, 0},
		"zero":               {[]string{"0"}, contract.Good, 0},
		"plain":              {[]string{"60"}, contract.Good, 60},
		"largest":            {[]string{"9223372036854775807"}, contract.Good, 9223372036854775807},
		"too large":          {[]string{"9223372036854775808"}, contract.Malformed, 0},
		"empty":              {[]string{""}, contract.Malformed, 0},
		"negative":           {[]string{"-1"}, contract.Malformed, 0},
		"plus sign":          {[]string{"+1"}, contract.Malformed, 0},
		"fraction":           {[]string{"6.0"}, contract.Malformed, 0},
		"list":               {[]string{"4, 10;w=60"}, contract.Malformed, 0},
		"date":               {[]string{"Mon, 30 Nov 2026 00:00:00 GMT"}, contract.Malformed, 0},
		"hexadecimal":        {[]string{"0x10"}, contract.Malformed, 0},
		"underscore":         {[]string{"1_000"}, contract.Malformed, 0},
		"other digits":       {[]string{"٣"}, contract.Malformed, 0},
		"inner space":        {[]string{"1 0"}, contract.Malformed, 0},
		"two lines":          {[]string{"6", "6"}, contract.Doubled, 0},
		"two lines, one bad": {[]string{"6", "x"}, contract.Doubled, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := http.Header{contract.HeaderRetryAfter: tc.lines}
			got := contract.ParseAnswer(429, h, nil).RetryAfter
			require.Equal(t, tc.state, got.State)
			require.Equal(t, tc.value, got.Value)
			require.Equal(t, tc.lines, got.Raw)
		})
	}
}

func TestParseAnswerReadsEachField(t *testing.T) {
	h := http.Header{}
	h.Set("RateLimit-Limit", "10")
	h.Set("RateLimit-Remaining", "3")
	h.Set("RateLimit-Reset", "42")
	h.Set("Retry-After", "6")
	h.Set("X-Request-Id", "r-1")
	h.Set("Content-Type", "Application/JSON; charset=utf-8")
	h.Set("Cache-Control", "private, No-Store")
	a := contract.ParseAnswer(429, h, []byte(`{"requestId":"r-1","errorCode":"RATE_LIMIT_EXCEEDED","message":"wait","more":{"a":[1]}}`))
	require.Equal(t, 429, a.Status)
	require.Equal(t, []int64{10, 3, 42, 6}, []int64{a.Limit.Value, a.Remaining.Value, a.Reset.Value, a.RetryAfter.Value})
	require.Equal(t, contract.Text{State: contract.Good, Value: "r-1"}, a.RequestID)
	require.Equal(t, "application/json", a.MediaType)
	require.True(t, a.NoStore)
	require.NoError(t, a.Body.Err)
	require.Equal(t, contract.Text{State: contract.Good, Value: "r-1"}, a.Body.RequestID)
	require.Equal(t, contract.Text{State: contract.Good, Value: "RATE_LIMIT_EXCEEDED"}, a.Body.ErrorCode)
	require.Equal(t, contract.Text{State: contract.Good, Value: "wait"}, a.Body.Message)
}

func TestParseErrorBody(t *testing.T) {
	const good = `"requestId":"r","message":"m"`
	for name, tc := range map[string]struct {
		body string
		err  string
		code contract.State
	}{
		"good":               {`{` + good + `,"errorCode":"E"}`, "", contract.Good},
		"space around":       {" \r\n{" + good + `,"errorCode":"E"} ` + "\n", "", contract.Good},
		"member absent":      {`{` + good + `}`, "", contract.Absent},
		"another case":       {`{` + good + `,"ErrorCode":"E"}`, "", contract.Absent},
		"empty string":       {`{` + good + `,"errorCode":""}`, "", contract.Malformed},
		"number":             {`{` + good + `,"errorCode":429}`, "", contract.Malformed},
		"null":               {`{` + good + `,"errorCode":null}`, "", contract.Malformed},
		"twice":              {`{` + good + `,"errorCode":"E","errorCode":"E"}`, "", contract.Doubled},
		"null, then good":    {`{` + good + `,"errorCode":null,"errorCode":"E"}`, "", contract.Doubled},
		"only nested":        {`{` + good + `,"error":{"errorCode":"E"}}`, "", contract.Absent},
		"empty":              {``, "no JSON object", contract.Absent},
		"text":               {`Too Many Requests`, "no JSON object", contract.Absent},
		"array":              {`[{"errorCode":"E"}]`, "no JSON object", contract.Absent},
		"string":             {`"errorCode"`, "no JSON object", contract.Absent},
		"cut":                {`{"errorCode":"E"`, "no end", contract.Absent},
		"cut in a value":     {`{"errorCode":"E`, "no well-formed", contract.Absent},
		"comma before end":   {`{"errorCode":"E",}`, "no well-formed", contract.Absent},
		"two objects":        {`{"errorCode":"E"}{}`, "goes on", contract.Absent},
		"object, then text":  {`{"errorCode":"E"} ok`, "goes on", contract.Absent},
		"byte order mark":    {"\ufeff" + `{"errorCode":"E"}`, "no JSON object", contract.Absent},
		"name without quote": {`{errorCode:"E"}`, "no well-formed", contract.Absent},
	} {
		t.Run(name, func(t *testing.T) {
			b := contract.ParseAnswer(400, nil, []byte(tc.body)).Body
			if tc.err == "" {
				require.NoError(t, b.Err)
			} else {
				require.ErrorContains(t, b.Err, tc.err)
			}
			require.Equal(t, tc.code, b.ErrorCode.State)
		})
	}
}

func TestBodiesOfSuccessesAreNotRead(t *testing.T) {
	a := contract.ParseAnswer(200, nil, []byte("not JSON"))
	require.Equal(t, contract.ErrorBody{}, a.Body)
}

func TestCacheControlNamesTheDirectiveItself(t *testing.T) {
	for line, want := range map[string]bool{"no-store": true, "max-age=0, NO-STORE": true, "no-cache": false, "no-storeX": false, "": false} {
		a := contract.ParseAnswer(429, http.Header{"Cache-Control": {line}}, nil)
		require.Equal(t, want, a.NoStore, "%q", line)
	}
}

func FuzzParseAnswer(f *testing.F) {
	f.Add(429, "6", "r", `{"requestId":"r","errorCode":"E","message":"m"}`)
	f.Add(503, "-1", "", `{"requestId":1,"requestId":2}`)
	f.Add(200, "9223372036854775808", "r", ``)
	f.Add(400, "1", "r", `{"a":{"b":[{"c":1e999}]}}`)
	f.Fuzz(func(t *testing.T, status int, number, id, body string) {
		h := http.Header{}
		h.Set(contract.HeaderReset, number)
		h.Set(contract.HeaderRequestID, id)
		a := contract.ParseAnswer(status, h, []byte(body))
		if a.Reset.State == contract.Good {
			require.GreaterOrEqual(t, a.Reset.Value, int64(0))
			require.Empty(t, strings.Trim(number, "0123456789"))
		} else {
			require.Zero(t, a.Reset.Value)
		}
		for _, m := range []contract.Text{a.RequestID, a.Body.RequestID, a.Body.ErrorCode, a.Body.Message} {
			require.Equal(t, m.State == contract.Good, m.Value != "")
		}
		if a.Body.Err != nil {
			require.Equal(t, contract.ErrorBody{Err: a.Body.Err}, a.Body)
		}
	})
}
