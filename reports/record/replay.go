package record

import "time"

// ReplaySchema names the layout of [Replay] as JSON. It changes when a key is
// renamed, removed or given another meaning, not when one is added.
const ReplaySchema = "brimline.replay/1"

// Replay is what recorded traffic would have met under other allowances, and
// for a log of our own also whether every recorded decision holds.
//
// One allowance puts the keys of its [Cell] at the top level; several fill
// Cells instead. A replay that was refused has neither.
type Replay struct {
	Schema string     `json:"schema"`
	Log    LogQuality `json:"log"`

	Pool     Pool     `json:"pool"`
	Scope    string   `json:"scope,omitempty"` // path prefix that attempts were narrowed to
	Assumed  []string `json:"assumed"`         // what the log does not say and was taken for granted
	Missing  []string `json:"missing"`         // what the log lacks, and what is left unsaid for it
	Warnings []string `json:"warnings"`
	Refused  string   `json:"refused,omitempty"` // why nothing was replayed

	Entries        int64          `json:"entries"`
	Attempts       int64          `json:"attempts"`        // entries that would have asked the limiter
	NotAttempts    []Count        `json:"not_attempts"`    // the other entries, by reason
	AlreadyRefused int64          `json:"already_refused"` // attempts that the log shows as refused by a limiter
	Users          int            `json:"users"`           // pools with at least one attempt
	*Cell                         // the one allowance that was asked for
	Cells          []Cell         `json:"cells,omitempty"`        // several: every rate with every burst, in the order asked for
	BurstNeeded    []Needs        `json:"burst_needed,omitempty"` // one per rate
	Agreement      *Agreed        `json:"agreement,omitempty"`    // our own API log only
	ClosedLoop     []ReportClosed `json:"closed_loop,omitempty"`  // the same allowances, with clients that obey Retry-After
	Plans          []ReplayPlan   `json:"plans,omitempty"`        // where it is known who is on which: instead of Cells
	LeftOut        int64          `json:"left_out,omitempty"`     // attempts of clients whose plan is not known
}

// ReplayPlan is what recorded traffic of one plan's users would have met.
type ReplayPlan struct {
	Plan           string           `json:"plan"`
	Allowance      *ReportAllowance `json:"allowance,omitempty"` // today's; absent: unknown
	Users          int              `json:"users"`               // with at least one attempt
	Attempts       int64            `json:"attempts"`
	AlreadyRefused int64            `json:"already_refused"`
	LeftOut        int              `json:"left_out"` // users with an allowance of their own for a part of the log or all of it
	Cells          []Cell           `json:"cells"`
	BurstNeeded    []Needs          `json:"burst_needed"` // one per rate
	ClosedLoop     []ReportClosed   `json:"closed_loop,omitempty"`
}

// Pool says whose attempts share one bucket.
type Pool string

// The pools.
const (
	PoolUser   Pool = "user"           // the log names users
	PoolClient Pool = "client-address" // it does not: an address stands in for a user
)

// Cell is what one allowance does to the traffic. Rate, Burst and Concurrency
// are absent where each decision is replayed with the allowance recorded for it.
type Cell struct {
	Rate        int64 `json:"rate,omitempty"`
	Burst       int64 `json:"burst,omitempty"`
	Concurrency int64 `json:"concurrency,omitempty"` // absent: concurrency was not replayed
	Rejections
	WithoutRefused *Rejections `json:"without_refused,omitempty"` // the same, had the attempts that were refused at the time not been made
}

// Rejections are counts over attempts and over users. Intervals are Wilson's,
// at 95 %, and only over users: requests of one user are no independent draws.
type Rejections struct {
	RejectedRate        int64   `json:"rejected_rate"`
	RejectedConcurrency int64   `json:"rejected_concurrency"`
	Rejected            int64   `json:"rejected"`
	RejectedShare       float64 `json:"rejected_share"` // of attempts

	UsersAffected      int        `json:"users_affected"` // with at least one rejection
	UsersAffectedShare float64    `json:"users_affected_share"`
	UsersAffected95    [2]float64 `json:"users_affected_95"`
	UsersOK            int        `json:"users_ok"` // with fewer than 0.1 % of their attempts rejected
	UsersOKShare       float64    `json:"users_ok_share"`
	UsersOK95          [2]float64 `json:"users_ok_95"`

	TopRejected int64   `json:"top_rejected"`       // of the user with most rejections
	TopShare    float64 `json:"top_share"`          // of all rejections
	TopRank     int     `json:"top_rank,omitempty"` // that user's place by attempts, from 1; absent: no rejections
}

// Needs says how much burst users need at a rate to meet no rate rejection:
// quantiles over users, each the value of one user (nearest rank).
type Needs struct {
	Rate int64   `json:"rate"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// Agreed says whether decisions taken again on the recorded grounds come out as
// recorded, in outcome and in the exact level left behind.
type Agreed struct {
	Compared  int64         `json:"compared"`
	Agreed    int64         `json:"agreed"`
	Disagreed int64         `json:"disagreed"`
	Untold    int64         `json:"untold"` // came out differently, but entries that may be the user's are missing before it
	Missing   int64         `json:"missing"`
	Runs      int           `json:"runs"` // server processes; buckets start full in each
	First     *Disagreement `json:"first_disagreement,omitempty"`
}

// Disagreement is one decision that did not come out as recorded.
type Disagreement struct {
	RequestID string   `json:"request_id"`
	Order     uint64   `json:"order"`
	Grounds   string   `json:"grounds"` // allowance and requests in flight, in words
	Recorded  Decision `json:"recorded"`
	Decided   Decision `json:"decided"`
}

// Decision is an outcome and the level left behind, in units.
type Decision struct {
	Outcome string `json:"outcome"`
	Level   int64  `json:"level"`
}

// LogQuality says what was read and how far it can carry a conclusion.
type LogQuality struct {
	Format    LogFormat `json:"format"`
	Files     []LogFile `json:"files"`
	Lines     int64     `json:"lines"` // entries plus every dropped line
	Entries   int64     `json:"entries"`
	Dropped   []Count   `json:"dropped"`
	Malformed int64     `json:"malformed_requests"` // entries kept though their request line is none
	Extra     int64     `json:"extra_fields"`       // entries kept with more fields than the format has
	Lists     int64     `json:"address_lists"`      // entries that begin with a list of addresses
	Named     int64     `json:"named_users"`        // entries of an access log that name a user

	Clients          int       `json:"clients"` // distinct addresses, or users where the log names them
	EntriesPerClient float64   `json:"entries_per_client"`
	EffectiveClients float64   `json:"effective_clients"` // Kish: so many equal clients would be as uneven
	BusiestEntries   int64     `json:"busiest_entries"`
	First            time.Time `json:"first"`
	Last             time.Time `json:"last"`
	ResolutionMicros int64     `json:"resolution_us"`
	BackwardSteps    int64     `json:"backward_steps"`  // entries stamped before the line above them
	TieShare         float64   `json:"tie_share"`       // entries that share their second with another
	MostPerSecond    int64     `json:"most_per_second"` // entries
	LargestGap       float64   `json:"largest_gap_s"`   // seconds without an entry
	ConstantMinute   float64   `json:"constant_minute"` // largest share of entries in one and the same minute of the hour
	Statuses         []Count   `json:"statuses"`
	Methods          []Count   `json:"methods"`

	Stamp          LogStamp     `json:"stamp"`           // what an entry's time means
	Durations      float64      `json:"durations"`       // share of entries that say how long they took
	ConstantSecond float64      `json:"constant_second"` // largest share of entries in one and the same second of the minute
	Zones          []Count      `json:"zones"`           // entries by the zone of their stamp, where stamps name one
	Examples       []LogExample `json:"examples"`        // the first line dropped for each reason
}

// LogStamp says what the time of an entry means.
type LogStamp string

// The meanings. Where requests are known by their end and their duration, their
// arrival is the one less the other.
const (
	StampReceived LogStamp = "received"
	StampFinished LogStamp = "finished"
	StampArrival  LogStamp = "finished_less_duration"
	StampUnknown  LogStamp = "unknown"
)

// LogExample is a line that was dropped: where it is and what it looks like, every
// letter an a and every digit a 0.
type LogExample struct {
	Reason string `json:"reason"`
	File   string `json:"file"`
	Line   int64  `json:"line"`
	Looks  string `json:"looks"`
}

// LogFormat is a format the loader recognises by content.
type LogFormat string

// The formats.
const (
	FormatCommon     LogFormat = "common"
	FormatCombined   LogFormat = "combined"
	FormatAPI        LogFormat = "brimline-api-log"
	FormatNginxJSON  LogFormat = "nginx-json"
	FormatCaddy      LogFormat = "caddy-json"
	FormatTraefik    LogFormat = "traefik-json"
	FormatALB        LogFormat = "aws-alb"
	FormatCloudFront LogFormat = "cloudfront"
	FormatEnvoy      LogFormat = "envoy"
	FormatMapped     LogFormat = "mapped"
)

// LogFile is one file of a log.
type LogFile struct {
	Name       string `json:"name"`
	Compressed bool   `json:"compressed"`
	Lines      int64  `json:"lines"`
	Entries    int64  `json:"entries"`
}

// Count is how often one thing was seen.
type Count struct {
	Name string `json:"name"`
	N    int64  `json:"n"`
}
