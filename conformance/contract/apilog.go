package contract

import "time"

// Outcomes of an API log entry.
const (
	LogAdmitted        = "admitted"        // token and permit taken, whatever followed
	LogRejected        = "rejected"        // a 429 of either kind
	LogUnauthenticated = "unauthenticated" // no valid key, so no decision of a user's limiter
	LogUnresolved      = "unresolved"      // the policy could not be resolved (503)
)

// LogEntry is one line of the API log (JSON Lines, one object a line): a request
// in scope, however it ended. It never holds a key, a body or a client address
// in full (LOG-1 to LOG-3). Decision is nil where the limiter was not asked.
//
// The file is in the order in which requests ended. Sorting by Decision.Order
// gives the order in which the limiter decided.
type LogEntry struct {
	Schema    int          `json:"schema"` // 1
	RequestID string       `json:"request_id"`
	Received  time.Time    `json:"received"`    // UTC, on the server's clock
	Duration  int64        `json:"duration_us"` // microseconds from Received until the answer was composed
	Method    string       `json:"method"`
	Path      string       `json:"path"` // without query, cut to 256 bytes
	Status    int          `json:"status"`
	ErrorCode string       `json:"error_code,omitempty"`
	Outcome   string       `json:"outcome"` // one of the Log… words
	User      string       `json:"user,omitempty"`
	Plan      string       `json:"plan,omitempty"`
	Decision  *LogDecision `json:"decision,omitempty"`
	Charged   int64        `json:"charged"` // operations charged: 0 or 1

	Client      string `json:"client,omitempty"`         // where no user is known: the client's address, in so far as it may be kept
	Correlation string `json:"correlation_id,omitempty"` // what a trusted proxy calls the request (ERR-5)
}

// LogDecision is what the limiter decided and all it decided it on, so that a
// replay can decide it again.
type LogDecision struct {
	Order             uint64 `json:"order"`      // place among all decisions of one process, from 1
	Instant           int64  `json:"instant_us"` // microseconds on the limiter's own timeline
	Outcome           string `json:"outcome"`    // admitted, rate or concurrency
	RequestsPerMinute int64  `json:"requests_per_minute"`
	Burst             int64  `json:"burst"`
	Concurrency       int64  `json:"concurrency"`
	InFlight          int64  `json:"in_flight"` // of this user before this request; 0 for a rate rejection
	Level             int64  `json:"level"`     // units left in the bucket afterwards; 60,000,000 are one token
}
