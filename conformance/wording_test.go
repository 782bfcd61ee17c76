package conformance_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/wiring"
	"github.com/invoicespec/brimline/reports/record"
)

// speaksOtherwise makes the reference a deployment that keeps the contract in
// words of its own. Its RateLimit-Reset is late by so many seconds.
func speaksOtherwise(late int64) func(p *wiring.Parts) {
	return func(p *wiring.Parts) {
		compose := p.Compose
		p.Compose = func(x *httpapi.Exchange, r httpapi.Reply) httpapi.Answer {
			a := compose(x, r)
			h := http.Header{}
			for name, values := range a.Header {
				if own := otherHeaders()[name]; own != "" {
					name = own
				}
				h[name] = values
			}
			if x.Decision != nil {
				micros := time.Now().UnixMicro() + x.Decision.ToFull
				h.Set("X-RateLimit-Reset", strconv.FormatInt((micros+999_999)/1_000_000+late, 10))
			}
			a.Header = h
			if own, open := otherAnswers()[r.Code]; open {
				a.Status, r.Code = int(own.Status), own.Code
			}
			if r.Code != "" {
				a.Body, _ = json.Marshal(map[string]any{"id": x.ID, "error": map[string]string{"code": r.Code, "text": r.Message}})
			}
			return a
		}
	}
}

// otherHeaders is by the spelling in which net/http keeps a name.
func otherHeaders() map[string]string {
	all := map[string]string{}
	for contracts, own := range map[string]string{
		contract.HeaderLimit: "X-Ratelimit-Limit", contract.HeaderRemaining: "X-Ratelimit-Remaining", contract.HeaderReset: "X-Ratelimit-Reset",
		contract.HeaderRequestID: "X-Correlation-Id",
	} {
		all[http.CanonicalHeaderKey(contracts)] = own
	}
	return all
}

func otherAnswers() map[string]target.Reply {
	return map[string]target.Reply{
		contract.CodeUnauthenticated:  {Status: 403, Code: "FORBIDDEN"},
		contract.CodeNotFound:         {Status: 400, Code: "NO_SUCH_THING"},
		contract.CodeValidationFailed: {Status: 400, Code: "BAD_INPUT"},
	}
}

func otherwise(r reference) reference {
	r.file.Headers = map[string]string{
		contract.HeaderLimit: "X-RateLimit-Limit", contract.HeaderRemaining: "X-RateLimit-Remaining", contract.HeaderReset: "X-RateLimit-Reset",
		contract.HeaderRequestID: "X-Correlation-Id",
	}
	r.file.ResetIs = string(contract.ResetUnixTime)
	r.file.ErrorBody = map[string]string{contract.MemberRequestID: "id", contract.MemberErrorCode: "error.code", contract.MemberMessage: "error.text"}
	r.file.Answers = otherAnswers()
	r.file.Can.Process = nil // it would start one that speaks as the contract does
	return r
}

// A deployment that says everything otherwise keeps the contract all the same,
// and one that is not declared to do so does not.
func TestADeploymentInItsOwnWords(t *testing.T) {
	t.Parallel()
	r := otherwise(start(t, "", speaksOtherwise(0)))
	clauses := []string{"HDR-1", "HDR-2", "HDR-3", "HDR-4", "HDR-5", "HDR-6", "HDR-8", "ERR-1", "ERR-2", "ERR-3", "RATE-1", "RATE-5", "AUTH-1", "SCOPE-3", "CONC-1", "CONC-2"}
	c, err := conformance.Run(t.Context(), r.open(t), conformance.Options{Clauses: clauses})
	require.NoError(t, err)
	requireKept(t, c)
	require.Equal(t, len(clauses), c.Counts.Pass+c.Counts.Inconclusive, "%+v", c.Counts) // a busy machine is slow to answer
	require.Greater(t, c.Counts.Pass, len(clauses)/2)
}

func TestAMistakeInOtherWords(t *testing.T) {
	for name, tc := range map[string]struct {
		clause, field string
		late          int64
		alter         func(f *target.File)
	}{
		"a reset that is late":         {"HDR-4", "X-RateLimit-Reset", 5, func(*target.File) {}},
		"a header that was not named":  {"HDR-1", "RateLimit-Limit", 0, func(f *target.File) { delete(f.Headers, contract.HeaderLimit) }},
		"an answer that was not named": {"AUTH-1", "status", 0, func(f *target.File) { delete(f.Answers, contract.CodeUnauthenticated) }},
		"another answer than was named": {"AUTH-1", "status", 0, func(f *target.File) {
			f.Answers[contract.CodeUnauthenticated] = target.Reply{Status: 403, Code: "ELSE"}
		}},
		"the contract's answer, not as named": {"SCOPE-3", "status", 0, func(f *target.File) {
			f.Answers[contract.CodeMethodNotAllowed] = target.Reply{Status: 400, Code: "NOT_THAT_WAY"}
		}},
		"a member that was not named":       {"ERR-1", "message", 0, func(f *target.File) { delete(f.ErrorBody, contract.MemberMessage) }},
		"a form of reset that was not said": {"HDR-4", "X-RateLimit-Reset", 0, func(f *target.File) { f.ResetIs = "" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := otherwise(start(t, "", speaksOtherwise(tc.late)))
			tc.alter(&r.file)
			c, err := conformance.Run(t.Context(), r.open(t), conformance.Options{Clauses: []string{tc.clause}})
			require.NoError(t, err)
			var fields []string
			for _, cl := range c.Clauses {
				for _, s := range cl.Scenarios {
					for _, f := range s.Findings {
						if f.Clause == tc.clause {
							fields = append(fields, f.Field)
						}
					}
				}
				if cl.ID == tc.clause {
					require.Contains(t, []record.Verdict{record.Fail, record.Differs}, cl.Verdict, "%+v", cl)
				}
			}
			require.True(t, slices.ContainsFunc(fields, func(f string) bool { return f == tc.field || f == "headers" }), "%q", fields)
		})
	}
}
