package measure

import (
	"net/http"

	"github.com/invoicespec/brimline/conformance/contract"
)

// Codes that are no code.
const (
	noCode      = "none"
	anotherCode = "another"
)

// Code names the error code of an answer that is none of the contract's outcomes:
// one of the contract's words, since what a server makes up has no bound.
func (r *Reader) Code(status int, header http.Header, body []byte) string {
	code, ok := "", false
	if r.code != "" {
		code, ok = errorCode(body, r.code)
	}
	if !ok {
		code = r.wording.Parse(status, header, body).Body.ErrorCode.Value
	}
	switch code {
	case "":
		return noCode
	case contract.CodeRateLimited, contract.CodeConcurrencyLimited, contract.CodeConfigUnavailable, contract.CodeUnauthenticated,
		contract.CodeCapacityExhausted, contract.CodeNotFound, contract.CodeMethodNotAllowed, contract.CodeValidationFailed,
		contract.CodeEngineFailure, contract.CodeCapacityUnavailable, contract.CodeEngineTimeout:
		return code
	}
	return anotherCode
}
