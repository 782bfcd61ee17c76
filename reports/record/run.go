package record

import "time"

// RunSchema names the layout of [Run] as JSON. It changes when a key is renamed,
// removed or given another meaning, not when one is added.
const RunSchema = "brimline.run/1"

// Run is what one load run measured. Times are counted from the start of the
// run, on the load side's clock. No key is in it, and users have names of ours.
type Run struct {
	Schema      string      `json:"schema"`
	Brimline    string      `json:"brimline"` // version of the tool
	Started     time.Time   `json:"started"`
	Interrupted bool        `json:"interrupted"` // stopped from outside; everything up to then is here
	PlannedMS   int64       `json:"planned_ms"`  // the scenario's duration
	ActualMS    int64       `json:"actual_ms"`   // until the last answer, or until it was cut off
	Scenario    RunScenario `json:"scenario"`
	Target      RunTarget   `json:"target"`
	Plans       []RunPlan   `json:"plans"` // in the scenario's order
	Users       []RunUser   `json:"users"` // in the scenario's order
	Generator   Generator   `json:"generator"`
	Limits      []string    `json:"limits"` // what limits the claims above, a sentence each
	Untold      []RunDoubt  `json:"untold"` // why plans, or all of it, tell nothing of the target; empty: they do

	Ended      string         `json:"ended,omitempty"`      // why the tool itself ended the run early; absent: it did not
	Thresholds []RunThreshold `json:"thresholds,omitempty"` // in the scenario's order
	Exports    []RunExport    `json:"exports,omitempty"`    // files beside this one with a line for each request
	Shard      *RunShard      `json:"shard,omitempty"`      // absent: the run is no part of another
	Merged     *RunMerged     `json:"merged,omitempty"`     // absent: one machine made the run
}

// RunScenario is the scenario as it was read.
type RunScenario struct {
	DurationMS  int64           `json:"duration_ms"`
	Seed        int64           `json:"seed"`
	MaxRate     int64           `json:"max_rate,omitempty"` // requests in any second, at most
	Populations []RunPopulation `json:"populations"`
}

// RunPopulation is a number of users who behave alike.
type RunPopulation struct {
	Plan      string  `json:"plan"`
	Users     int64   `json:"users"`
	Arrival   string  `json:"arrival"`        // in words, such as "poisson" or "bursts of 40 every 10s"
	Rate      string  `json:"rate,omitempty"` // as written: "1.2x" of the allowance, or requests per minute
	PerMinute float64 `json:"per_minute"`     // of one user, on average
	On429     string  `json:"on_429"`         // in words, such as "ignore" or "backoff from 100ms to 30s, give up after 5"

	Keys      int64  `json:"keys,omitempty"`      // of each user, used in turn
	Addresses int64  `json:"addresses,omitempty"` // client addresses that the users share; none: this machine's own
	Mix       string `json:"mix,omitempty"`       // weights of operations, such as "valid 9, invalid 1"; none: valid ones alone
	Spread    string `json:"spread,omitempty"`    // of the rate over the users, such as "zipf 1.1"; none: all are equal
}

// RunTarget is the deployment that was loaded.
type RunTarget struct {
	Description string                  `json:"description"` // one line
	Hosts       []string                `json:"hosts"`
	Server      string                  `json:"server,omitempty"`
	Clock       string                  `json:"clock"`
	Operation   string                  `json:"operation"`  // method and path of every request
	Allowances  map[string]RunAllowance `json:"allowances"` // by plan: what 429s were judged by
}

// RunAllowance is what a plan allows.
type RunAllowance struct {
	RequestsPerMinute int64 `json:"requests_per_minute"`
	Burst             int64 `json:"burst"`
	Concurrency       int64 `json:"concurrency"`
}

// RunThreshold is what came of one threshold.
type RunThreshold struct {
	Threshold string           `json:"threshold"` // as it was written
	Verdict   ThresholdVerdict `json:"verdict"`
	Seen      string           `json:"seen"`    // the figure, or why there is none
	Value     float64          `json:"value"`   // the same as a number: a count, a share of 1, microseconds, or per second
	Samples   int64            `json:"samples"` // what it rests on
}

// ThresholdVerdict says whether a threshold holds.
type ThresholdVerdict string

// The verdicts.
const (
	ThresholdHolds  ThresholdVerdict = "holds"
	ThresholdBroken ThresholdVerdict = "broken"
	ThresholdNoData ThresholdVerdict = "no_data" // it rests on nothing, which is no pass
)

// Outcome is how a request that was sent ended.
type Outcome string

// The outcomes.
const (
	OutcomeAdmitted            Outcome = "admitted"             // the status that says so
	OutcomeRejectedRate        Outcome = "rejected_rate"        // 429 for lack of a token
	OutcomeRejectedConcurrency Outcome = "rejected_concurrency" // 429 for lack of a place
	OutcomeRejectedAnonymous   Outcome = "rejected_anonymous"   // 429 before authentication: no RateLimit headers
	OutcomeUnauthenticated     Outcome = "unauthenticated"      // 401
	OutcomeConfigUnavailable   Outcome = "config_unavailable"   // 503: the user's policy does not resolve
	OutcomeOtherStatus         Outcome = "other_status"
	OutcomeTransportError      Outcome = "transport_error" // no whole answer came
)

// Outcomes lists all of them.
func Outcomes() []Outcome {
	return []Outcome{
		OutcomeAdmitted, OutcomeRejectedRate, OutcomeRejectedConcurrency, OutcomeRejectedAnonymous,
		OutcomeUnauthenticated, OutcomeConfigUnavailable, OutcomeOtherStatus, OutcomeTransportError,
	}
}

// RunPlan is what the users of one plan met.
type RunPlan struct {
	Plan          string `json:"plan"`
	Users         int64  `json:"users"`
	UsersAffected int64  `json:"users_affected"` // with at least one 429
	Slots
	Answers
	// What the 429s of the two kinds were: see Judged. Their sums are
	// rejected_rate and rejected_concurrency.
	RateJudged        Judged       `json:"rejected_rate_judged"`
	ConcurrencyJudged Judged       `json:"rejected_concurrency_judged"`
	Missing           int64        `json:"missing"`                 // got past the rate limit though there was surely no token
	HeaderFaults      []Count      `json:"header_faults,omitempty"` // answers whose RateLimit headers or Retry-After were wrong, by what; one may be in several
	Latency           []RunLatency `json:"latency"`                 // the outcomes that occurred
	PerSecond         RunSeconds   `json:"per_second"`
}

// Slots is what became of the requests that the scenario plans:
// planned = offered + unsent, and offered = sent + dropped + held_off.
type Slots struct {
	Planned     int64 `json:"planned"`
	Offered     int64 `json:"offered"`      // came due while the run was on
	Sent        int64 `json:"sent"`         // given to the network, whatever came of it
	Dropped     int64 `json:"dropped"`      // too late to be sent without bunching
	DroppedBusy int64 `json:"dropped_busy"` // of these, because every worker waited for an answer: the target's doing
	HeldOff     int64 `json:"held_off"`     // not sent because of a 429 that the user met before
	Unsent      int64 `json:"unsent"`       // the run ended first
}

// Answers is how the requests that were sent ended; the sum of all is sent.
type Answers struct {
	Admitted            int64   `json:"admitted"`
	RejectedRate        int64   `json:"rejected_rate"`
	RejectedConcurrency int64   `json:"rejected_concurrency"`
	RejectedAnonymous   int64   `json:"rejected_anonymous"`
	Unauthenticated     int64   `json:"unauthenticated"`
	ConfigUnavailable   int64   `json:"config_unavailable"`
	OtherStatuses       []Count `json:"other_statuses"`   // by number
	TransportErrors     []Count `json:"transport_errors"` // by kind

	ErrorCodes []Count `json:"error_codes,omitempty"` // of other_statuses: the contract's words, "another" or "none"
}

// Judged says of 429s whether the exact limiter, over the times at which the
// user's requests left and were answered, would have rejected as well.
type Judged struct {
	Due       int64 `json:"due"`       // as many: every token went to others of the user's requests, or every place was taken
	Undue     int64 `json:"undue"`     // surely not: there was a token, or a place
	Undecided int64 `json:"undecided"` // requests overlapped, or too little is known
}

// RunLatency is how long answers of one outcome took, in microseconds.
type RunLatency struct {
	Outcome  Outcome   `json:"outcome"`
	FromDue  Quantiles `json:"from_due"`  // what a user waits: from when the request was due
	FromSend Quantiles `json:"from_send"` // what the server took: from the first byte sent

	FirstByte Quantiles `json:"first_byte,omitzero"` // from the first byte sent to the first of the answer, where one came
}

// RunSeconds has one entry for each second of the run in every list: requests by
// when they were due, when their first byte left, or when their answer came. The
// times are of what was admitted, from when it was due, by when its answer came;
// 0: nothing was.
type RunSeconds struct {
	Due                 []int64 `json:"due"`
	Sent                []int64 `json:"sent"`
	Admitted            []int64 `json:"admitted"`
	RejectedRate        []int64 `json:"rejected_rate"`
	RejectedConcurrency []int64 `json:"rejected_concurrency"`
	Dropped             []int64 `json:"dropped"` // by when they were due

	Other   []int64 `json:"other,omitempty"`    // all other answers, and requests that got none
	HeldOff []int64 `json:"held_off,omitempty"` // by when they were due
	P50US   []int64 `json:"p50_us,omitempty"`
	P99US   []int64 `json:"p99_us,omitempty"`
	MaxUS   []int64 `json:"max_us,omitempty"`
}

// RunUser is what one user met.
type RunUser struct {
	User                string `json:"user"` // a name of ours, such as free-003
	Plan                string `json:"plan"`
	Population          int    `json:"population"` // its place in the scenario, from 0
	Sent                int64  `json:"sent"`
	Admitted            int64  `json:"admitted"`
	RejectedRate        int64  `json:"rejected_rate"`
	RejectedConcurrency int64  `json:"rejected_concurrency"`
	RejectedOtherwise   int64  `json:"rejected_otherwise"` // 429s that could not be judged: no known cause, or no RateLimit headers
	Undue               int64  `json:"undue"`              // of both kinds
	Missing             int64  `json:"missing"`
	LongestWaitMS       int64  `json:"longest_wait_ms"` // from a 429, the first after an admission, to the next admission or the end
}

// The transports.
const (
	TransportLean  = "lean, HTTP/1.1"
	TransportHTTP1 = "net/http, HTTP/1.1"
	TransportHTTP2 = "net/http, HTTP/2"
)

// Generator says how well the load side kept its own plan, and what its machine
// had to do meanwhile. What a system does not tell is 0.
type Generator struct {
	Transport      string    `json:"transport,omitempty"`      // what sent the requests; see [TransportLean]
	Workers        int64     `json:"workers"`                  // the most requests in flight at once
	WorkersWanted  int64     `json:"workers_wanted,omitempty"` // as many as the scenario needs where answers take 1 s
	WorkersReached int64     `json:"workers_reached"`          // requests that found all of them waiting for answers
	Lag            Quantiles `json:"lag"`                      // from when a request was due to its first byte
	Late           Quantiles `json:"late,omitzero"`            // from when it was due to when a worker took it on, where one was free: the load side's own part of the lag
	Results        int64     `json:"results"`                  // requests that were sent
	Attempts       int64     `json:"attempts"`                 // requests put on a connection; more than results: some went out twice
	Connections    int64     `json:"connections"`              // opened
	CPUSeconds     float64   `json:"cpu_s"`                    // of the whole process
	GCPauseMS      float64   `json:"gc_pause_ms"`              // in all
	CPUs           int       `json:"cpus"`
	StartLateUS    int64     `json:"start_late_us,omitempty"` // after the start that was agreed on; times count from that all the same

	WatchedMS        int64   `json:"watched_ms,omitempty"`   // for how long the machine was watched
	ProcessorSeconds float64 `json:"processors_s,omitempty"` // what the CPUs can compute in that time
	MachineSeconds   float64 `json:"machine_s,omitempty"`    // the same of all processors of the machine
	OthersSeconds    float64 `json:"others_s,omitempty"`     // of that, by other processes; a target on the machine is one
	StolenSeconds    float64 `json:"stolen_s,omitempty"`     // of that, kept from the machine by what it runs on
	GCPauseMaxMS     float64 `json:"gc_pause_max_ms,omitempty"`
	Sockets          int64   `json:"sockets,omitempty"`     // open at once, at a look each second
	Descriptors      int64   `json:"descriptors,omitempty"` // the same, of all kinds
	DescriptorLimit  int64   `json:"descriptor_limit,omitempty"`
}
