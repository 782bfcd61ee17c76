package contract_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
)

// Every word on the wire is pinned to a literal: renaming a constant is free,
// changing what it says is not.
func TestWordsAreWhatTheContractSays(t *testing.T) {
	for literal, word := range map[string]string{
		"RateLimit-Limit":                      contract.HeaderLimit,
		"RateLimit-Remaining":                  contract.HeaderRemaining,
		"RateLimit-Reset":                      contract.HeaderReset,
		"Retry-After":                          contract.HeaderRetryAfter,
		"X-Request-Id":                         contract.HeaderRequestID,
		"RATE_LIMIT_EXCEEDED":                  contract.CodeRateLimited,
		"CONCURRENCY_LIMIT_EXCEEDED":           contract.CodeConcurrencyLimited,
		"RATE_LIMIT_CONFIGURATION_UNAVAILABLE": contract.CodeConfigUnavailable,
		"UNAUTHENTICATED":                      contract.CodeUnauthenticated,
		"CAPACITY_EXHAUSTED":                   contract.CodeCapacityExhausted,
		"NOT_FOUND":                            contract.CodeNotFound,
		"METHOD_NOT_ALLOWED":                   contract.CodeMethodNotAllowed,
		"VALIDATION_FAILED":                    contract.CodeValidationFailed,
		"ENGINE_FAILURE":                       contract.CodeEngineFailure,
		"CAPACITY_UNAVAILABLE":                 contract.CodeCapacityUnavailable,
		"ENGINE_TIMEOUT":                       contract.CodeEngineTimeout,
		"/v1/invoice":                          contract.ScopePrefix,
		"requestId":                            contract.MemberRequestID,
		"errorCode":                            contract.MemberErrorCode,
		"message":                              contract.MemberMessage,
		"admitted":                             contract.LogAdmitted,
		"rejected":                             contract.LogRejected,
		"unauthenticated":                      contract.LogUnauthenticated,
		"unresolved":                           contract.LogUnresolved,
		"MUST":                                 string(contract.Must),
		"DECIDED":                              string(contract.Decided),
	} {
		require.Equal(t, literal, word)
	}
}
