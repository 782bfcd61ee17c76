// Package control is the control protocol's vocabulary: what a deployment may
// offer, on a listener of its own, so that more clauses become visible to a
// suite. HTTP and JSON below [Prefix], described for other implementers by
// openapi.json beside this file (see [OpenAPI]).
//
// Every request carries "Authorization: Bearer TOKEN". Whatever is set here
// concerns one user, so that scenarios of different users can run side by side;
// only the clock and a restart are everybody's: POST /control/v1/restart drops
// what is held in memory, as a new process would begin, and keeps what is stored.
package control

import _ "embed"

// Prefix is the path below which the protocol lives. GET on it answers
// [Capabilities].
const Prefix = "/control/v1"

// OpenAPI is the protocol's OpenAPI 3.1 document.
//
//go:embed openapi.json
var OpenAPI []byte

// Feature is one thing a control server can do.
type Feature string

// The features of version 1. A server lists those it has; a suite asks for no other.
const (
	FeatureUsers        Feature = "users"        // create users, add and revoke keys
	FeaturePlan         Feature = "plan"         // change a user's effective plan
	FeatureSchedule     Feature = "schedule"     // schedule a plan, read and end the billing period
	FeatureOverrides    Feature = "overrides"    // set and end overrides
	FeatureHistory      Feature = "history"      // read all overrides a user ever had
	FeatureEntitlements Feature = "entitlements" // store entitlements and overrides as any text, past every check
	FeatureOperations   Feature = "operations"   // set and read the operations a user has left
	FeatureClock        Feature = "clock"        // read and move the clock
	FeatureGates        Feature = "gates"        // hold requests at a place
	FeatureEngine       Feature = "engine"       // make the engine fail, panic or run into its timeout
	FeatureAudit        Feature = "audit"        // read log entries, engine calls and charges
	FeatureRestart      Feature = "restart"      // start anew on what is stored
)

// Capabilities answers GET /control/v1.
type Capabilities struct {
	Protocol int       `json:"protocol"` // 1
	Server   string    `json:"server"`   // name and version, for reports
	Features []Feature `json:"features"`
	Clock    ClockMode `json:"clock"`
}

// ClockMode says how the server's clock runs.
type ClockMode string

// The clock modes.
const (
	ClockReal    ClockMode = "real"    // cannot be moved
	ClockShifted ClockMode = "shifted" // real time plus an offset that only control moves
	ClockFrozen  ClockMode = "frozen"  // stands still but for control
)

// Clock answers GET /control/v1/clock and POST /control/v1/clock/advance.
type Clock struct {
	Mode ClockMode `json:"mode"`
	Now  string    `json:"now"` // RFC 3339 with nanoseconds
}

// Advance is the body of POST /control/v1/clock/advance.
type Advance struct {
	Microseconds int64 `json:"microseconds"` // negative: the clock steps back
}

// NewUser is the body of POST /control/v1/users.
type NewUser struct {
	Plan string `json:"plan"`
	Keys int    `json:"keys"` // 1 to 16
}

// User answers POST /control/v1/users. Its keys are shown this once.
type User struct {
	ID   string   `json:"id"`
	Plan string   `json:"plan"`
	Keys []string `json:"keys"`
}

// Key is the body of POST /control/v1/users/{id}/keys/revoke and answers POST
// /control/v1/users/{id}/keys.
type Key struct {
	Key string `json:"key"`
}

// Plan is the body of PUT /control/v1/users/{id}/plan: in force with the next
// request, as at a billing-period boundary.
type Plan struct {
	Plan string `json:"plan"`
}

// Period answers GET /control/v1/users/{id}/period and POST
// /control/v1/users/{id}/period/end, which moves the boundary to now. PUT
// /control/v1/users/{id}/schedule with a [Plan] lets that plan take over at the
// boundary.
type Period struct {
	Start     string `json:"start"`               // RFC 3339 with nanoseconds
	End       string `json:"end"`                 // the boundary: the first instant of the next period
	Plan      string `json:"plan"`                // in force now
	Scheduled string `json:"scheduled,omitempty"` // takes over at End; empty: none
}

// Override is the body of PUT /control/v1/users/{id}/overrides/{dimension}, where
// dimension is requests-per-minute, burst or concurrency. DELETE ends it. This is
// the operator boundary: a value that is no whole number in range, whatever JSON
// value it is, is refused with 422 and changes nothing. Reason and author are for
// the history alone.
type Override struct {
	Value   any    `json:"value"`             // a whole number, or something that is to be refused
	Expires string `json:"expires,omitempty"` // RFC 3339; empty: never
	Reason  string `json:"reason,omitempty"`
	Author  string `json:"author,omitempty"`
}

// History answers GET /control/v1/users/{id}/overrides: all there ever were, the
// oldest first.
type History struct {
	Entries []PastOverride `json:"entries"`
}

// PastOverride is an override of a user's, in force or over.
type PastOverride struct {
	Dimension string `json:"dimension"`
	Value     string `json:"value"`             // as stored
	Set       string `json:"set"`               // RFC 3339
	Expires   string `json:"expires,omitempty"` // RFC 3339; empty: never
	Ended     string `json:"ended,omitempty"`   // RFC 3339; replaced or ended before it expired
	Reason    string `json:"reason,omitempty"`
	Author    string `json:"author,omitempty"`
}

// Stored is the body of PUT /control/v1/users/{id}/entitlements/{dimension} and of
// PUT /control/v1/users/{id}/overrides/{dimension}/stored: what a broken store
// would hold for this one user, past every check. DELETE of the entitlement
// removes it; POST /control/v1/users/{id}/entitlements/mend puts all of the plan's
// back. A stored override replaces the one before and ends like any other.
type Stored struct {
	Text    string `json:"text"`
	Expires string `json:"expires,omitempty"` // of an override: RFC 3339; empty: never
}

// Operations is the body of PUT /control/v1/users/{id}/operations.
type Operations struct {
	Remaining int64 `json:"remaining"`
}

// Usage answers GET /control/v1/users/{id}/operations: the paid operations of the
// billing period.
type Usage struct {
	Left int64 `json:"left"` // not charged yet; one that is reserved for a request in flight may count as gone
	Used int64 `json:"used"` // charged
}

// Place is where a gate can hold a request.
type Place string

// The places.
const (
	PlaceAuthentication Place = "authentication" // while the key is being validated
	PlaceEngine         Place = "engine"         // permit taken, engine called, no work done yet
	PlaceResponse       Place = "response"       // first byte of the body sent, the rest not
)

// Gate answers GET, PUT (close) and DELETE (open, letting all go) of
// /control/v1/users/{id}/gates/{place}. Waiting is the positive witness that so
// many requests are held there now.
type Gate struct {
	Closed  bool `json:"closed"`
	Waiting int  `json:"waiting"`
}

// Behaviour is how the engine treats a user's calls.
type Behaviour string

// The behaviours.
const (
	EngineOK       Behaviour = "ok"
	EngineFail     Behaviour = "fail"     // returns an error
	EnginePanic    Behaviour = "panic"    // panics
	EngineTimeout  Behaviour = "timeout"  // works until its deadline and obeys it
	EngineStubborn Behaviour = "stubborn" // works on past its deadline, until the engine gate lets it go
)

// Engine is the body of PUT /control/v1/users/{id}/engine.
type Engine struct {
	Behaviour Behaviour `json:"behaviour"`
}

// Audit answers GET /control/v1/audit/requests/{request-id} for one request and
// GET /control/v1/users/{id}/audit for all of a user's.
type Audit struct {
	Entries     []Entry `json:"entries"`      // log entries, oldest first; at most the latest 10,000
	EngineCalls int64   `json:"engine_calls"` // how often the engine was entered
	Charges     int64   `json:"charges"`      // operations charged
	KeyLookups  int64   `json:"key_lookups"`  // how often the store was asked for a key
}

// Entry is what an audit shows of one log entry. Raw is the whole stored entry
// as text, so that a suite can look for what must not be in it.
type Entry struct {
	RequestID string `json:"request_id"`
	User      string `json:"user,omitempty"`
	Status    int    `json:"status"`
	Rejected  bool   `json:"rejected"`
	ErrorCode string `json:"error_code,omitempty"`
	Raw       string `json:"raw"`
}

// Error is the body of every answer that is no success. 404 with code
// "unsupported" says that the server lacks the feature.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// CodeUnsupported is the code of a feature the server lacks.
const CodeUnsupported = "unsupported"
