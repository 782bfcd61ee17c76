package measure

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reports/record"
)

// parsed is what the contract's parser finds.
func parsed(body []byte, member string) string {
	w := contract.Wording{Names: map[string]string{contract.MemberErrorCode: member}}
	return w.Parse(http.StatusTooManyRequests, nil, body).Body.ErrorCode.Value
}

func agree(t require.TestingT, body []byte, member string) {
	if code, ok := errorCode(body, member); ok {
		require.Equal(t, parsed(body, member), code, "%q in %q", member, body)
	}
}

const code = contract.CodeRateLimited

func TestErrorCode(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want string
		fast bool
	}{
		"as the contract has it":         {`{"requestId":"r","errorCode":"RATE_LIMIT_EXCEEDED","message":"m"}`, code, true},
		"spread out":                     {" {\n\t\"errorCode\" : \"RATE_LIMIT_EXCEEDED\" ,\r\n\"message\":\"m\" } \n", code, true},
		"other values beside it":         {`{"a":true,"b":false,"c":null,"d":12,"errorCode":"RATE_LIMIT_EXCEEDED"}`, code, true},
		"another code":                   {`{"errorCode":"QUEUED"}`, "QUEUED", true},
		"quoted in the message":          {`{"errorCode":"CONCURRENCY_LIMIT_EXCEEDED","message":"not RATE_LIMIT_EXCEEDED"}`, contract.CodeConcurrencyLimited, true},
		"quoted with its name":           {`{"message":"\"errorCode\":\"RATE_LIMIT_EXCEEDED\"","errorCode":"QUEUED"}`, "QUEUED", false},
		"a message in other letters":     {`{"message":"zu viel für heute","errorCode":"RATE_LIMIT_EXCEEDED"}`, code, true},
		"nested":                         {`{"error":{"errorCode":"RATE_LIMIT_EXCEEDED"}}`, "", false},
		"nested beside another":          {`{"errorCode":"QUEUED","cause":{"errorCode":"RATE_LIMIT_EXCEEDED"}}`, "QUEUED", false},
		"in a list":                      {`[{"errorCode":"RATE_LIMIT_EXCEEDED"}]`, "", false},
		"twice":                          {`{"errorCode":"RATE_LIMIT_EXCEEDED","errorCode":"RATE_LIMIT_EXCEEDED"}`, "", false},
		"twice, once in other spelling":  {`{"errorCode":"RATE_LIMIT_EXCEEDED","error\u0043ode":"QUEUED"}`, "", false},
		"its name with an escape":        {`{"error\u0043ode":"RATE_LIMIT_EXCEEDED"}`, code, false},
		"its text with an escape":        {`{"errorCode":"RATE_LIMIT\u005fEXCEEDED"}`, code, false},
		"its name in capitals":           {`{"ERRORCODE":"RATE_LIMIT_EXCEEDED"}`, "", true},
		"a number":                       {`{"errorCode":429}`, "", false},
		"null":                           {`{"errorCode":null}`, "", false},
		"empty":                          {`{"errorCode":""}`, "", false},
		"none":                           {`{"message":"m"}`, "", true},
		"an empty object":                {`{}`, "", true},
		"no body":                        {``, "", false},
		"a page":                         {`<html>RATE_LIMIT_EXCEEDED</html>`, "", false},
		"cut":                            {`{"errorCode":"RATE_LIMIT_EXCEEDED"`, "", false},
		"something after it":             {`{"errorCode":"RATE_LIMIT_EXCEEDED"}{}`, "", false},
		"a comma too many":               {`{"errorCode":"RATE_LIMIT_EXCEEDED",}`, "", false},
		"no comma":                       {`{"a":1 "errorCode":"RATE_LIMIT_EXCEEDED"}`, "", false},
		"no colon":                       {`{"errorCode" "RATE_LIMIT_EXCEEDED"}`, "", false},
		"a number with a zero before it": {`{"a":01,"errorCode":"RATE_LIMIT_EXCEEDED"}`, "", false},
		"a fraction":                     {`{"a":1.5,"errorCode":"RATE_LIMIT_EXCEEDED"}`, code, false},
		"a word that is none":            {`{"a":nulll,"errorCode":"RATE_LIMIT_EXCEEDED"}`, "", false},
		"a line break in a text":         {"{\"message\":\"a\nb\",\"errorCode\":\"RATE_LIMIT_EXCEEDED\"}", "", false},
		"a mark before it":               {"\ufeff{\"errorCode\":\"RATE_LIMIT_EXCEEDED\"}", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := errorCode([]byte(c.body), "errorCode")
			require.Equal(t, c.fast, ok)
			if ok {
				require.Equal(t, c.want, got)
			}
			require.Equal(t, c.want, parsed([]byte(c.body), "errorCode"))
		})
	}
}

// TestErrorCodeIsTheParsers: over bodies made of what bodies are made of, and what
// becomes of them when bytes are lost, doubled and changed.
func TestErrorCodeIsTheParsers(t *testing.T) {
	texts := []string{
		"errorCode", "requestId", "message", "error", "ERRORCODE", code, contract.CodeConcurrencyLimited, "", "ü", "a b", `\"`, `\u0043`, "\x00", "\xff", "}", "{", ",",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string { return `"` + rapid.SampledFrom(texts).Draw(t, "text") + `"` })
		space := rapid.SampledFrom([]string{"", "", "", " ", "\n", "\t", "\r", "\v", "\u00a0"})
		var value func(depth int) *rapid.Generator[string]
		var object func(depth int) *rapid.Generator[string]
		value = func(depth int) *rapid.Generator[string] {
			return rapid.Custom(func(t *rapid.T) string {
				switch rapid.IntRange(0, 6).Draw(t, "kind") {
				case 0:
					return rapid.SampledFrom([]string{"true", "false", "null", "0", "12", "-3", "1.5", "1e9", "01", "nul", "[]", "[1,2]"}).Draw(t, "value")
				case 1:
					if depth > 0 {
						return object(depth-1).Draw(t, "object")
					}
				}
				return text.Draw(t, "value")
			})
		}
		object = func(depth int) *rapid.Generator[string] {
			return rapid.Custom(func(t *rapid.T) string {
				var members []string
				for range rapid.IntRange(0, 5).Draw(t, "members") {
					members = append(members, space.Draw(t, "s")+text.Draw(t, "name")+space.Draw(t, "s")+":"+space.Draw(t, "s")+value(depth).Draw(t, "v")+space.Draw(t, "s"))
				}
				return "{" + strings.Join(members, ",") + "}"
			})
		}
		body := []byte(object(2).Draw(t, "body"))
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			if len(body) == 0 {
				break
			}
			at := rapid.IntRange(0, len(body)-1).Draw(t, "at")
			switch rapid.IntRange(0, 3).Draw(t, "change") {
			case 0:
				body = slices.Delete(body, at, at+1)
			case 1:
				body = slices.Insert(body, at, body[at])
			case 2:
				body[at] = rapid.Byte().Draw(t, "byte")
			case 3:
				body = body[:at]
			}
		}
		agree(t, body, rapid.SampledFrom([]string{"errorCode", "error", "ü"}).Draw(t, "member"))
	})
}

// FuzzErrorCode: whatever a body is, the two agree.
func FuzzErrorCode(f *testing.F) {
	f.Add([]byte(`{"requestId":"r","errorCode":"RATE_LIMIT_EXCEEDED","message":"m"}`))
	f.Add([]byte(`{"errorCode":"A","error\u0043ode":"B","c":{"errorCode":1.5}}`))
	f.Fuzz(func(t *testing.T, body []byte) { agree(t, body, "errorCode") })
}

// byParser reads an answer by the contract's parser alone.
func byParser(status int, header http.Header, body []byte, w contract.Wording, expect int) Reading {
	if status == expect && status != http.StatusTooManyRequests {
		return Reading{Outcome: record.OutcomeAdmitted, Kind: Passed}
	}
	a := w.Parse(status, header, body)
	r, code := Reading{Outcome: record.OutcomeOtherStatus, Kind: Unclear}, a.Body.ErrorCode.Value
	known := code == contract.CodeRateLimited || code == contract.CodeConcurrencyLimited
	switch {
	case status == http.StatusTooManyRequests && known && a.Limit.State == contract.Absent:
		r.Outcome, r.Kind = record.OutcomeRejectedAnonymous, Untouched
	case status == http.StatusTooManyRequests && code == contract.CodeRateLimited:
		r.Outcome, r.Kind = record.OutcomeRejectedRate, RefusedRate
	case status == http.StatusTooManyRequests && known:
		r.Outcome, r.Kind = record.OutcomeRejectedConcurrency, RefusedConcurrency
	case status == http.StatusTooManyRequests:
	case a.Status == http.StatusUnauthorized:
		r.Outcome, r.Kind = record.OutcomeUnauthenticated, Untouched
	case status == http.StatusServiceUnavailable && code == contract.CodeConfigUnavailable:
		r.Outcome, r.Kind = record.OutcomeConfigUnavailable, Untouched
	case a.Limit.State != contract.Absent:
		r.Kind = Passed
	}
	if status == http.StatusTooManyRequests && a.RetryAfter.State == contract.Good {
		r.Wait = time.Duration(min(a.RetryAfter.Value, int64(maxWait/time.Second))) * time.Second
	}
	return r
}

// TestReaderIsTheParser: in every wording an answer is what the contract's parser
// says it is.
func TestReaderIsTheParser(t *testing.T) {
	wordings := []contract.Wording{
		{},
		{Names: map[string]string{contract.HeaderLimit: "X-RateLimit-Limit", contract.HeaderRetryAfter: "x-wait", contract.MemberErrorCode: "error.code"}},
		{Names: map[string]string{contract.MemberErrorCode: "code"}, Replies: map[string]contract.Reply{contract.CodeUnauthenticated: {Status: 403, Code: "WHO"}}},
		{Reset: contract.ResetUnixTime},
	}
	codes := []string{code, contract.CodeConcurrencyLimited, contract.CodeConfigUnavailable, contract.CodeUnauthenticated, "WHO", "QUEUED"}
	values := []string{"0", "6", "007", "", "-1", "+1", "1.5", " 1", "soon", "99999999999999999999", "9223372036854775807"}
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(list []string) string { return list[random.IntN(len(list))] }
	for range 20_000 {
		w := wordings[random.IntN(len(wordings))]
		h := http.Header{}
		for _, name := range []string{contract.HeaderLimit, contract.HeaderRemaining, contract.HeaderReset, contract.HeaderRetryAfter} {
			for range random.IntN(5) / 2 {
				h.Add(w.Name(name), pick(values))
			}
		}
		c, err := json.Marshal(pick(codes))
		require.NoError(t, err)
		member, end := w.Name(contract.MemberErrorCode), ""
		if outer, inner, nested := strings.Cut(member, "."); nested {
			member, end = outer+`":{"`+inner, "}"
		}
		body := []byte(pick([]string{`{"` + member + `":` + string(c) + end + `,"message":"m"}`, `{"message":` + string(c) + `}`, string(c), ""}))
		status := []int{200, 201, 302, 401, 402, 403, 429, 429, 429, 500, 503}[random.IntN(11)]
		expect := []int{200, 429, 0}[random.IntN(3)]
		got := NewReader(w).Read(status, h, body, expect)
		for _, f := range []struct {
			got  number
			name string
		}{{got.Headers.limit, contract.HeaderLimit}, {got.Headers.remaining, contract.HeaderRemaining}, {got.Headers.retryAfter, contract.HeaderRetryAfter}} {
			if want := (contract.Wording{}).Parse(200, http.Header{"Ratelimit-Limit": h.Values(w.Name(f.name))}, nil).Limit; got.Headers.carried {
				require.Equal(t, number{want.State, want.Value}, f.got, "%s %q", f.name, want.Raw)
			}
		}
		got.Headers = Headers{}
		require.Equal(t, byParser(status, h, body, w, expect), got, "%d %q %s", status, h, body)
	}
}

// TestReadingCostsNoMemory: neither of an admission nor of a 429.
func TestReadingCostsNoMemory(t *testing.T) {
	h := http.Header{"Ratelimit-Limit": {"10"}, "Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {"60"}, "Retry-After": {"6"}}
	body := []byte(`{"requestId":"r","errorCode":"RATE_LIMIT_EXCEEDED","message":"Too many requests. Try again in 6 seconds."}`)
	r := NewReader(contract.Wording{})
	for status, want := range map[int]record.Outcome{200: record.OutcomeAdmitted, 429: record.OutcomeRejectedRate} {
		b := Bounds{known: true, burst: 10, reset: [2]int64{60, 60}, wait: [2]int64{6, 6}, refused: status == 429}
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if got := r.Read(status, h, body, 200); got.Outcome != want || got.Headers.Against(b) != 0 {
				t.Fatal(got)
			}
		}))
	}
}

func BenchmarkRead(b *testing.B) {
	h := http.Header{"Ratelimit-Limit": {"10"}, "Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {"60"}, "Retry-After": {"6"}}
	body := []byte(`{"requestId":"r","errorCode":"RATE_LIMIT_EXCEEDED","message":"Too many requests. Try again in 6 seconds."}`)
	r := NewReader(contract.Wording{})
	b.ReportAllocs()
	for b.Loop() {
		r.Read(429, h, body, 200)
	}
}
