// Package contract is the limiting contract in words: the header names, error
// codes and body shape on the wire, every numbered clause with its level and
// sentence, and the line format of the API log.
//
// It parses and names; it renders nothing. The reference writes its answers
// with code of its own and the oracle judges them with another, so that one
// mistake cannot pass on both sides. Most callers want [Clauses] or
// [ParseAnswer].
package contract

// Header names, as the contract spells them.
const (
	HeaderLimit      = "RateLimit-Limit"
	HeaderRemaining  = "RateLimit-Remaining"
	HeaderReset      = "RateLimit-Reset"
	HeaderRetryAfter = "Retry-After"
	HeaderRequestID  = "X-Request-Id"
)

// Error codes. The first three are the contract's own; the rest were left open
// and are what the reference answers (a target file may name others).
const (
	CodeRateLimited         = "RATE_LIMIT_EXCEEDED"
	CodeConcurrencyLimited  = "CONCURRENCY_LIMIT_EXCEEDED"
	CodeConfigUnavailable   = "RATE_LIMIT_CONFIGURATION_UNAVAILABLE"
	CodeUnauthenticated     = "UNAUTHENTICATED"
	CodeCapacityExhausted   = "CAPACITY_EXHAUSTED"
	CodeNotFound            = "NOT_FOUND"
	CodeMethodNotAllowed    = "METHOD_NOT_ALLOWED"
	CodeValidationFailed    = "VALIDATION_FAILED"
	CodeEngineFailure       = "ENGINE_FAILURE"
	CodeCapacityUnavailable = "CAPACITY_UNAVAILABLE"
	CodeEngineTimeout       = "ENGINE_TIMEOUT"
)

// ScopePrefix is the path whose whole subtree the contract limits (SCOPE-1).
const ScopePrefix = "/v1/invoice"

// The members of an error body (ERR-1).
const (
	MemberRequestID = "requestId"
	MemberErrorCode = "errorCode"
	MemberMessage   = "message"
)
