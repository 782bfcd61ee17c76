package measure

import (
	"net/http"
	"net/textproto"
	"strings"
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
	Headers Headers
}

// Reader reads the answers of a deployment in its wording. Most of them cost it no
// memory: headers are looked up as maps have them, and the error code is found in
// the body without decoding it ([errorCode]); where a body or a wording is
// unusual, the contract's own parser is asked.
type Reader struct {
	wording contract.Wording
	code    string // the member with the error code; empty: the parser has to be asked

	limit, remaining, reset, retryAfter string // names of headers, as maps have them
}

// NewReader is the reader of a deployment in a wording.
func NewReader(w contract.Wording) *Reader {
	name := func(contracts string) string { return textproto.CanonicalMIMEHeaderKey(w.Name(contracts)) }
	r := &Reader{
		wording: w, limit: name(contract.HeaderLimit), remaining: name(contract.HeaderRemaining),
		reset: name(contract.HeaderReset), retryAfter: name(contract.HeaderRetryAfter),
	}
	if code := w.Name(contract.MemberErrorCode); len(w.Replies) == 0 && !strings.Contains(code, ".") {
		r.code = code
	}
	return r
}

// Read reads an answer; expect is the status of an operation that succeeds. A
// 429 without a RateLimit-Limit header was given before authentication, so it
// says nothing about the user's bucket. Any other answer that carries one has
// spent a token; without it, a proxy on the way may have made the answer.
func (r *Reader) Read(status int, header http.Header, body []byte, expect int) Reading {
	if status == expect && status != http.StatusTooManyRequests {
		return Reading{Outcome: record.OutcomeAdmitted, Kind: Passed, Headers: r.headers(header)}
	}
	means, code := r.said(status, header, body)
	limited := len(header[r.limit]) > 0
	switch {
	case status == http.StatusTooManyRequests:
		return r.refusal(header, code, limited)
	case means == http.StatusUnauthorized:
		return Reading{Outcome: record.OutcomeUnauthenticated, Kind: Untouched}
	case status == http.StatusServiceUnavailable && code == contract.CodeConfigUnavailable:
		return Reading{Outcome: record.OutcomeConfigUnavailable, Kind: Untouched}
	case limited:
		return Reading{Outcome: record.OutcomeOtherStatus, Kind: Passed, Headers: r.headers(header)}
	}
	return Reading{Outcome: record.OutcomeOtherStatus, Kind: Unclear}
}

func (r *Reader) refusal(header http.Header, code string, limited bool) Reading {
	read := Reading{Outcome: record.OutcomeOtherStatus, Kind: Unclear}
	known := code == contract.CodeRateLimited || code == contract.CodeConcurrencyLimited
	switch {
	case known && !limited:
		read.Outcome, read.Kind = record.OutcomeRejectedAnonymous, Untouched
	case code == contract.CodeRateLimited:
		read.Outcome, read.Kind, read.Headers = record.OutcomeRejectedRate, RefusedRate, r.headers(header)
	case code == contract.CodeConcurrencyLimited:
		read.Outcome, read.Kind, read.Headers = record.OutcomeRejectedConcurrency, RefusedConcurrency, r.headers(header)
	}
	if wait := readNumber(header[r.retryAfter]); wait.state == contract.Good {
		read.Wait = time.Duration(min(wait.value, int64(maxWait/time.Second))) * time.Second
	}
	return read
}

// said is an answer's status and error code in the contract's words, where they
// are needed to tell what it is.
func (r *Reader) said(status int, header http.Header, body []byte) (means int, code string) {
	if r.code != "" {
		switch status {
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		default:
			return status, ""
		}
		if code, ok := errorCode(body, r.code); ok {
			return status, code
		}
	}
	a := r.wording.Parse(status, header, body)
	return a.Status, a.Body.ErrorCode.Value
}
