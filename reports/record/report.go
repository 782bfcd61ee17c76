package record

import "time"

// ReportSchema names the layout of [Report] as JSON. It changes when a key is
// renamed, removed or given another meaning, not when one is added.
const ReportSchema = "brimline.report/2"

// Report says of each plan whether its allowance should be kept, raised or
// lowered, and on what evidence. It holds no time of its own: the same inputs,
// read by the same version, make the same report. No user is named in it.
type Report struct {
	Schema   string        `json:"schema"`
	Brimline string        `json:"brimline"` // version of the tool
	Date     string        `json:"date"`     // that notice counts from, YYYY-MM-DD; unless it was given, the day of the latest evidence
	Rules    ReportRules   `json:"rules"`
	Plans    []ReportPlan  `json:"plans"`  // the biggest news first
	Inputs   []ReportInput `json:"inputs"` // in the order given
	Logs     []Replay      `json:"logs"`   // what was read, assumed and found missing, without cells
	Runs     []ReportRun   `json:"runs"`

	Coverage *ReportCoverage `json:"coverage,omitempty"` // S1: of whom the plan is known; absent: the inputs name no clients
	Gates    []ReportGate    `json:"gates"`              // of all plans together
	Earlier  []ReportEarlier `json:"earlier"`            // reports whose recommendations count, in the order given

	Seed      uint64           `json:"seed"`                // of every draw
	Capacity  *ReportCapacity  `json:"capacity,omitempty"`  // S6
	Fairness  *ReportFairness  `json:"fairness,omitempty"`  // S8
	Support   *ReportSupport   `json:"support,omitempty"`   // S11
	Against   *ReportAgainst   `json:"against,omitempty"`   // S12; absent: no earlier report was given
	Migration *ReportMigration `json:"migration,omitempty"` // S14
}

// ReportRules are the gates that a recommendation passes.
type ReportRules struct {
	From         string         `json:"from,omitempty"` // the file's name; absent: these are the usual ones
	UsersOK      float64        `json:"users_ok"`       // share of users who have to be OK; the lower bound as well
	MinDays      int            `json:"min_days"`       // different days (UTC) with traffic
	MinUsers     int            `json:"min_users"`      // of the plan
	TopShare     float64        `json:"top_share"`      // of the rejections; from here on it is one user's story
	MinMoved     int            `json:"min_moved"`      // users whom a change has to spare
	AgreeReports int            `json:"agree_reports"`  // reports that have to ask for a change, this one among them, or
	AgreeDays    int            `json:"agree_days"`     // days on which it would have spared somebody
	PeakShare    float64        `json:"peak_share"`     // of the engine's capacity that the busiest 10 s may take
	P99US        int64          `json:"p99_us"`         // the engine's latency there, at most
	NoticeDays   int            `json:"notice_days"`    // before a paid plan's allowance may be reduced
	Burst        BurstPolicy    `json:"burst"`          // how a target's burst follows its rate
	Required     []EvidenceKind `json:"required"`       // evidence without which nothing is raised or lowered
	Draws        int            `json:"draws"`          // of the bootstrap
}

// BurstPolicy says how the burst of a target follows its rate.
type BurstPolicy string

// The policies.
const (
	BurstAsToday BurstPolicy = "as-today" // the one of the next three that today's allowance is nearest to
	BurstRate    BurstPolicy = "rate"
	BurstHalf    BurstPolicy = "half"
	BurstThird   BurstPolicy = "third"
	BurstFree    BurstPolicy = "free" // the smallest that does, at the smallest rate that does
)

// BurstPolicies lists all of them.
func BurstPolicies() []BurstPolicy {
	return []BurstPolicy{BurstAsToday, BurstRate, BurstHalf, BurstThird, BurstFree}
}

// ReportCoverage says of whom the plan is known. Whoever is left out is in no
// figure of a plan.
type ReportCoverage struct {
	From          string  `json:"from"` // what names the plans
	Clients       int     `json:"clients"`
	ClientsKnown  int     `json:"clients_known"`
	Attempts      int64   `json:"attempts"`
	AttemptsKnown int64   `json:"attempts_known"`
	Users         int     `json:"users"`
	Overrides     int     `json:"overrides"`    // users with an allowance of their own at some time
	PlanChanges   int     `json:"plan_changes"` // within the traffic
	Restarts      int     `json:"restarts"`     // within the traffic; each fills every bucket
	LeftOut       []Count `json:"left_out"`     // clients, by reason
	Pseudonyms    string  `json:"pseudonyms"`   // how users are named: by rank, or by a key that keeps names from report to report
}

// ReportEarlier is an earlier report that was given.
type ReportEarlier struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Until  string `json:"until"` // the day of its latest evidence
}

// Meets reports whether enough users are OK, and surely so.
func (r ReportRules) Meets(x Rejections) bool {
	return x.UsersOKShare >= r.UsersOK && x.UsersOK95[0] >= r.UsersOK
}

// ReportPlan is one plan.
type ReportPlan struct {
	Plan          string           `json:"plan"`
	Allowance     *ReportAllowance `json:"allowance,omitempty"`      // today's; absent: unknown
	AllowanceFrom string           `json:"allowance_from,omitempty"` // who says so
	Verdict       ReportVerdict    `json:"verdict"`
	Gates         []ReportGate     `json:"gates"`
	Evidence      []ReportEvidence `json:"evidence"` // the six kinds that the contract asks for
	Scores        []ReportScore    `json:"scores"`   // one for each input that tells of the plan
	WhatIf        *ReportWhatIf    `json:"what_if,omitempty"`

	Paid        *bool              `json:"paid,omitempty"`      // absent: unknown, and treated as paid
	Next        string             `json:"next_plan,omitempty"` // the plan with the next larger allowance
	Decision    []ReportDimension  `json:"decision"`            // S0: rate, burst, concurrency
	Utilization *ReportUtilization `json:"utilization,omitempty"`
	Anatomy     *ReportAnatomy     `json:"anatomy,omitempty"`
	Binding     *ReportBinding     `json:"binding,omitempty"`
	Cost        *ReportCost        `json:"cost,omitempty"`
	Notice      *ReportNotice      `json:"notice,omitempty"`
	Effective   string             `json:"effective,omitempty"` // raise or lower: the earliest day, YYYY-MM-DD
}

// ReportAllowance is an allowance as far as it is known.
type ReportAllowance struct {
	RequestsPerMinute int64 `json:"requests_per_minute"`
	Burst             int64 `json:"burst"`
	Concurrency       int64 `json:"concurrency,omitempty"` // absent: unknown
}

// Reassessment is what is said of an allowance, in a word. A paid plan's is never
// lowered: a reduction is only something to look at.
type Reassessment string

// The reassessments.
const (
	Keep              Reassessment = "keep"
	Raise             Reassessment = "raise"
	Lower             Reassessment = "lower"
	NotEnoughEvidence Reassessment = "not_enough_evidence"
)

// KeepReason says why an allowance is kept.
type KeepReason string

// The reasons.
const (
	KeepGoalMet  KeepReason = "goal_met"      // enough users are OK
	KeepTooFew   KeepReason = "too_few_moved" // the goal is missed, but a raise would spare too few users
	KeepNextPlan KeepReason = "next_plan"     // the goal would take what the next plan allows
	KeepBeyond   KeepReason = "beyond_ladder" // no allowance that was tried reaches the goal
	KeepCapacity KeepReason = "capacity"      // the engine has no room for a raise
	KeepUnagreed KeepReason = "unagreed"      // too few reports and days ask for the change
	KeepOther    KeepReason = "other_limit"   // paid operations run out before the rate limit binds
)

// ReportVerdict is the answer for one plan.
type ReportVerdict struct {
	Word     Reassessment `json:"word"`
	Headline string       `json:"headline"` // without the plan's name
	Because  []string     `json:"because"`  // sentences, the weightiest first
	Missing  []string     `json:"missing"`  // what stands in the way of an answer

	Keep           KeepReason `json:"keep,omitempty"`            // keep: why
	Today          *Cell      `json:"today,omitempty"`           // the traffic under today's allowance
	Target         *Cell      `json:"target,omitempty"`          // raise: to this; keep, next_plan: what the goal would take
	WithoutRefused *Cell      `json:"without_refused,omitempty"` // a smaller target that would do, had the attempts refused at the time not been made
	Alternatives   []Cell     `json:"alternatives,omitempty"`    // raise: what the goal would take with a burst in another proportion to the rate
	LookAt         *Cell      `json:"look_at,omitempty"`         // a smaller allowance that would meet the goal too
	NextPlan       string     `json:"next_plan,omitempty"`       // keep, next_plan: which
	Moved          int        `json:"moved"`                     // users who meet a 429 today and none at the target
	Uncapped       *Cell      `json:"uncapped,omitempty"`        // what the goal alone would take, before every cap
	HeldBy         string     `json:"held_by,omitempty"`         // the gate, cap or missing evidence that kept the answer from it
}

// ReportGate is one condition of the rules.
type ReportGate struct {
	Name  string    `json:"name"`
	Need  string    `json:"need"`
	Found string    `json:"found"`
	State GateState `json:"state"`
}

// GateState is how a condition came out.
type GateState string

// The states.
const (
	GateHolds   GateState = "holds"
	GateFails   GateState = "fails"
	GateMissing GateState = "missing" // the inputs do not tell
	GateNoted   GateState = "noted"   // it does not hold, which has to be said and stands in nobody's way
)

// ReportEvidence is one of the kinds of evidence that the contract asks for
// before an allowance is changed.
type ReportEvidence struct {
	Kind    EvidenceKind `json:"kind"`
	Found   []string     `json:"found"`             // sentences
	Missing string       `json:"missing,omitempty"` // what it would take, where nothing was found
}

// EvidenceKind is a kind of evidence, in the contract's order.
type EvidenceKind string

// The kinds.
const (
	EvidenceUtilization EvidenceKind = "limiter utilization"
	EvidenceFrequency   EvidenceKind = "429 frequency"
	EvidenceSaturation  EvidenceKind = "engine saturation"
	EvidenceLatency     EvidenceKind = "latency"
	EvidenceExhaustion  EvidenceKind = "capacity exhaustion"
	EvidenceSupport     EvidenceKind = "support evidence"
)

// EvidenceKinds lists all of them.
func EvidenceKinds() []EvidenceKind {
	return []EvidenceKind{EvidenceUtilization, EvidenceFrequency, EvidenceSaturation, EvidenceLatency, EvidenceExhaustion, EvidenceSupport}
}

// Basis says where a score is from.
type Basis string

// The bases.
const (
	BasisRecorded Basis = "recorded" // as the log has it
	BasisReplayed Basis = "replayed" // the log's requests under today's allowance
	BasisMeasured Basis = "measured" // a load run
)

// ReportScore is how the users of a plan fared, by one input.
type ReportScore struct {
	Source              string           `json:"source"` // the input's name
	Basis               Basis            `json:"basis"`
	Allowance           *ReportAllowance `json:"allowance,omitempty"` // that was in force; absent: unknown
	Pool                Pool             `json:"pool"`                // what a user is
	Users               int              `json:"users"`               // with at least one attempt
	UsersAffected       UserShare        `json:"users_affected"`      // with at least one 429
	UsersOK             UserShare        `json:"users_ok"`            // fewer than 0.1 % of their attempts rejected
	EffectiveUsers      float64          `json:"effective_users"`     // Kish: so many equal users would be as uneven
	Attempts            int64            `json:"attempts"`
	Admitted            *int64           `json:"admitted,omitempty"` // absent: the input does not say
	Rejected            int64            `json:"rejected"`
	RejectedRate        *int64           `json:"rejected_rate,omitempty"`        // absent: the input does not say
	RejectedConcurrency *int64           `json:"rejected_concurrency,omitempty"` // likewise
	RejectedShare       float64          `json:"rejected_share"`                 // of attempts
	RejectedShare95     *[2]float64      `json:"rejected_share_95,omitempty"`    // Korn-Graubard; absent: fewer than 30 effective users, or unknown by user
	DesignEffect        *float64         `json:"design_effect,omitempty"`        // how much less the attempts tell than independent ones
	TopShare            *float64         `json:"top_share,omitempty"`            // of the rejections, by one user; absent: there are none
	RateJudged          *Judged          `json:"rejected_rate_judged,omitempty"`
	ConcurrencyJudged   *Judged          `json:"rejected_concurrency_judged,omitempty"`
	WithoutToken        *int64           `json:"without_token,omitempty"` // got past the rate limit though there was surely no token
	Latency             *ReportLatency   `json:"latency,omitempty"`

	Override            bool   `json:"override,omitempty"`             // of users with an allowance of their own, who are in no other row
	ConfigUnavailable   *int64 `json:"config_unavailable,omitempty"`   // 503 since the policy did not resolve; in none of the figures above
	CapacityUnavailable *int64 `json:"capacity_unavailable,omitempty"` // 503 since the engine had no room; likewise
	OutOfOperations     *int64 `json:"out_of_operations,omitempty"`    // 402; likewise
}

// Wrong is how many decisions surely were none of the plan's limiter: 429s that
// were not due, and admissions without a token.
func (s ReportScore) Wrong() (n int64) {
	for _, j := range []*Judged{s.RateJudged, s.ConcurrencyJudged} {
		if j != nil {
			n += j.Undue
		}
	}
	if s.WithoutToken != nil {
		n += *s.WithoutToken
	}
	return n
}

// UserShare is a number of users and their share, with Wilson's 95 % interval.
type UserShare struct {
	N       int        `json:"n"`
	Share   float64    `json:"share"`
	Share95 [2]float64 `json:"share_95"`
}

// ReportLatency is how long admitted requests took, in microseconds.
type ReportLatency struct {
	P50US int64  `json:"p50_us"`
	P99US int64  `json:"p99_us"`
	From  string `json:"from"` // due: when the request should have left; received: when the server had it
}

// ReportWhatIf is a log's traffic of one plan under other allowances.
type ReportWhatIf struct {
	Source         string       `json:"source"`
	Pool           Pool         `json:"pool"`
	Days           int          `json:"days"`   // different days (UTC) with traffic
	SpanS          float64      `json:"span_s"` // seconds from the first attempt to the last
	Users          int          `json:"users"`
	Attempts       int64        `json:"attempts"`
	AlreadyRefused int64        `json:"already_refused"`   // attempts that the log shows as refused by a limiter
	LeftOut        int          `json:"left_out"`          // users with an allowance of their own
	Refused        string       `json:"refused,omitempty"` // why nothing was replayed
	Policy         int64        `json:"policy"`            // the divisor of the line that today's burst is on, or nearest to
	Lines          []ReportLine `json:"lines"`             // over the rate
	Rates          []int64      `json:"rates"`             // of the grid
	Bursts         []int64      `json:"bursts"`            // of the grid
	Grid           []Cell       `json:"grid"`              // every rate with every burst
	BurstNeeded    []Needs      `json:"burst_needed"`      // one per rate of the grid

	Caps   []int64        `json:"caps"`                  // of the grid, its innermost dimension; empty: concurrency was not replayed
	Closed []ReportClosed `json:"closed"`                // clients that obey Retry-After, over the rates of the policy's line
	Moved  *ReportMoved   `json:"moved,omitempty"`       // from today's allowance to the target
	Today  *ReportPeaks   `json:"peaks_today,omitempty"` // this plan's
	Then   *ReportPeaks   `json:"peaks_target,omitempty"`
}

// ReportLine is a series of rates whose burst follows the rate.
type ReportLine struct {
	Divisor int64  `json:"divisor"` // burst = rate ÷ divisor, rounded down, at least 1
	Cells   []Cell `json:"cells"`
}

// InputKind is what an input turned out to be.
type InputKind string

// The kinds.
const (
	InputRun       InputKind = "run"
	InputAccessLog InputKind = "access-log"
	InputAPILog    InputKind = "api-log"
	InputCapacity  InputKind = "capacity"
	InputPlanMap   InputKind = "plan-map"
	InputMetrics   InputKind = "prometheus"
	InputUsage     InputKind = "operations"
	InputPrices    InputKind = "prices"
	InputTickets   InputKind = "tickets"
	InputGates     InputKind = "gates"
	InputReport    InputKind = "report"
)

// ReportInput is one input as it was read.
type ReportInput struct {
	Name   string    `json:"name"`
	Kind   InputKind `json:"kind"`
	Bytes  int64     `json:"bytes"`
	SHA256 string    `json:"sha256"`
}

// ReportRun is what a report says of a load run beside its scores.
type ReportRun struct {
	Name        string          `json:"name"`
	Brimline    string          `json:"brimline"` // version that made the run
	Started     time.Time       `json:"started"`
	ActualMS    int64           `json:"actual_ms"`
	Interrupted bool            `json:"interrupted"`
	Seed        int64           `json:"seed"`
	Target      string          `json:"target"`
	Clock       string          `json:"clock"`
	Populations []RunPopulation `json:"populations"`
	LagP99US    int64           `json:"lag_p99_us"` // how late requests left, on the load side
	Limits      []string        `json:"limits"`     // what limits its claims
	Untold      []RunDoubt      `json:"untold"`     // why plans, or all of it, tell nothing of the target
}
