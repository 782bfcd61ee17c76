package measure

import (
	"net/http"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reports/record"
)

// maxWait bounds a Retry-After; longer ones count as this.
const maxWait = 24 * time.Hour

// Reading is what an answer says.
type Reading struct {
	Outcome record.Outcome
	Kind    Kind
	Wait    time.Duration // what a 429 asks for; 0: nothing that can be obeyed
}

// Classify reads an answer in a deployment's wording; expect is the status of an operation that succeeds. A
// 429 without a RateLimit-Limit header was given before authentication, so it
// says nothing about the user's bucket. Any other answer that carries one has
// spent a token; without it, a proxy on the way may have made the answer.
func Classify(status int, header http.Header, body []byte, w contract.Wording, expect int) Reading {
	if status == expect && status != http.StatusTooManyRequests {
		return Reading{Outcome: record.OutcomeAdmitted, Kind: Passed}
	}
	a := w.Parse(status, header, body)
	code := a.Body.ErrorCode.Value
	switch {
	case status == http.StatusTooManyRequests:
		return refusal(a, code)
	case a.Status == http.StatusUnauthorized:
		return Reading{Outcome: record.OutcomeUnauthenticated, Kind: Untouched}
	case status == http.StatusServiceUnavailable && code == contract.CodeConfigUnavailable:
		return Reading{Outcome: record.OutcomeConfigUnavailable, Kind: Untouched}
	case a.Limit.State != contract.Absent:
		return Reading{Outcome: record.OutcomeOtherStatus, Kind: Passed}
	}
	return Reading{Outcome: record.OutcomeOtherStatus, Kind: Unclear}
}

func refusal(a contract.Answer, code string) Reading {
	r := Reading{Outcome: record.OutcomeOtherStatus, Kind: Unclear}
	known := code == contract.CodeRateLimited || code == contract.CodeConcurrencyLimited
	switch {
	case known && a.Limit.State == contract.Absent:
		r.Outcome, r.Kind = record.OutcomeRejectedAnonymous, Untouched
	case code == contract.CodeRateLimited:
		r.Outcome, r.Kind = record.OutcomeRejectedRate, RefusedRate
	case code == contract.CodeConcurrencyLimited:
		r.Outcome, r.Kind = record.OutcomeRejectedConcurrency, RefusedConcurrency
	}
	if a.RetryAfter.State == contract.Good {
		r.Wait = time.Duration(min(a.RetryAfter.Value, int64(maxWait/time.Second))) * time.Second
	}
	return r
}
