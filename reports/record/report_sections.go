package record

// Dimension is a part of an allowance.
type Dimension string

// The dimensions.
const (
	DimensionRate        Dimension = "rate"
	DimensionBurst       Dimension = "burst"
	DimensionConcurrency Dimension = "concurrency"
)

// ReportDimension is the decision on one dimension of a plan's allowance.
type ReportDimension struct {
	Dimension Dimension    `json:"dimension"`
	Word      Reassessment `json:"word"`
	Today     *int64       `json:"today,omitempty"`    // absent: unknown
	Uncapped  *int64       `json:"uncapped,omitempty"` // what the users' goal alone would take
	Target    *int64       `json:"target,omitempty"`   // what is left of it under the caps of the next plan and the engine
	Range     *[2]int64    `json:"range,omitempty"`    // where the uncapped target may be, wider for a shorter history
	HeldBy    string       `json:"held_by,omitempty"`  // the gate, cap or missing evidence that held it there
	Why       string       `json:"why"`                // a sentence
}

// ReportCapacity is S6: what the engine can take, and what the allowances could
// ask of it. Rates are per second, of all plans together.
type ReportCapacity struct {
	Source     string               `json:"source,omitempty"` // the capacity search; absent: none was given
	SLO        []string             `json:"slo"`
	Holds      *float64             `json:"holds,omitempty"`      // the highest load under which the SLO held
	Saturation *CapacityKnee        `json:"saturation,omitempty"` // broken stick on goodput
	Warning    *CapacityKnee        `json:"warning,omitempty"`    // broken stick on log p99
	Steps      []ReportCapacityStep `json:"steps"`

	Worst            *float64     `json:"worst,omitempty"`            // sum over plans of users times rate: everybody at full rate at once
	Oversubscription *float64     `json:"oversubscription,omitempty"` // Worst over Holds
	Today            *ReportPeaks `json:"today,omitempty"`            // replayed peak at today's allowances
	Candidate        *ReportPeaks `json:"candidate,omitempty"`        // and at the targets
	Share            *float64     `json:"share,omitempty"`            // the candidate's peak (10 s) over Holds
	P99US            *int64       `json:"p99_us,omitempty"`           // the engine's at that peak, by the next larger step of the search
	MostShare        float64      `json:"most_share"`                 // that the gate allows

	Observed []ReportObserved    `json:"observed"` // by the meters of the running engine
	Runs     []string            `json:"runs"`     // sentences: what each load run saw of saturation
	Latency  []ReportPlanLatency `json:"latency"`
	Missing  []string            `json:"missing"`
}

// ReportObserved is one figure of a running deployment over the time that was
// asked for.
type ReportObserved struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	P50    float64 `json:"p50"`
	P95    float64 `json:"p95"`
	Max    float64 `json:"max"`
	Points int     `json:"points"`
	Source string  `json:"source"`
}

// ReportCapacityStep is one step of the search.
type ReportCapacityStep struct {
	Offered float64         `json:"offered"`
	Goodput float64         `json:"goodput"`
	P50US   int64           `json:"p50_us"`
	P99US   int64           `json:"p99_us"`
	Verdict CapacityVerdict `json:"verdict"`
}

// ReportPlanLatency is how long a plan's admitted requests took, in microseconds;
// rejections are left out, since they are fast and flatter it.
type ReportPlanLatency struct {
	Plan    string         `json:"plan"`
	Source  string         `json:"source"`
	All     ReportLatency  `json:"all"`
	Peak    *ReportLatency `json:"peak,omitempty"`     // in the tenth of the seconds with most requests
	OffPeak *ReportLatency `json:"off_peak,omitempty"` // in the half with fewest
}

// ReportBinding is S7: which limit the users of a plan meet first.
type ReportBinding struct {
	Users           int      `json:"users"`
	Operations      int      `json:"operations"` // out of paid operations before anything else
	Rate            int      `json:"rate"`
	Burst           int      `json:"burst"`
	Concurrency     int      `json:"concurrency"`
	Engine          int      `json:"engine"`
	None            int      `json:"none"`
	HoursToExhaust  *float64 `json:"hours_to_exhaust,omitempty"`  // of the paid operations at full rate: operations / (60 R)
	ExhaustedFirst  *float64 `json:"exhausted_first,omitempty"`   // share of paid users out of operations before any rejection for the rate
	NotTheRateLimit bool     `json:"rate_limit_is_not_the_limit"` // said where that share is a half and more
	Missing         []string `json:"missing"`
}

// ReportFairness is S8.
type ReportFairness struct {
	Plans           []ReportFair `json:"plans"`                      // in order of allowance
	FailAtFree      *int         `json:"fail_at_free,omitempty"`     // users of the smallest plan with a rejection
	FailAtNext      *int         `json:"fail_at_next,omitempty"`     // of these, how many would still have one in the next plan
	UpgradePressure *float64     `json:"upgrade_pressure,omitempty"` // share of the plan's users whom the next plan would cure
	Missing         []string     `json:"missing"`
}

// ReportFair is what one plan gets for what it pays. Ratios are to the smallest
// plan that has the figure.
type ReportFair struct {
	Plan         string   `json:"plan"`
	Allowance    float64  `json:"allowance_ratio"`
	Price        *float64 `json:"price_ratio,omitempty"`
	Demand       *float64 `json:"demand_ratio,omitempty"` // 99th percentile of users' most attempts in any 60 s
	Jain         *float64 `json:"jain,omitempty"`         // of admitted over demanded, within the plan: 1 is equal
	EngineShare  *float64 `json:"engine_share,omitempty"` // of engine seconds
	RevenueShare *float64 `json:"revenue_share,omitempty"`
}

// ReportCost is S9: what a raise costs the engine at the busiest minute.
type ReportCost struct {
	AdmittedPerHour *float64 `json:"admitted_per_hour,omitempty"` // more than today
	ServiceS        *float64 `json:"service_s,omitempty"`         // mean, of admitted requests
	EngineSPerHour  *float64 `json:"engine_s_per_hour,omitempty"`
	Workers         *float64 `json:"workers,omitempty"` // the same in workers kept busy
	Missing         []string `json:"missing"`
}

// ReportNotice is S10: whom a reduction would hit, and when it may come.
type ReportNotice struct {
	Needed   bool        `json:"needed"` // a reduction of a paid plan is looked at
	Days     int         `json:"days"`
	Earliest string      `json:"earliest,omitempty"` // date, YYYY-MM-DD
	Hit      []ReportHit `json:"hit"`
	Exempt   []string    `json:"exempt"` // abuse or incidents, with their evidence
	First    string      `json:"first"`  // what to do before it: a shadow run
	Missing  []string    `json:"missing"`
}

// ReportHit is a user whom a reduction would newly reject.
type ReportHit struct {
	User     string  `json:"user"` // pseudonym
	Rejected int64   `json:"rejected"`
	Share    float64 `json:"share"`              // of the user's attempts
	Boundary string  `json:"boundary,omitempty"` // the next billing boundary after the notice, YYYY-MM-DD
}

// ReportSupport is S11.
type ReportSupport struct {
	Tickets []ReportTicket `json:"tickets"` // none: empty, and Given is true
	Given   bool           `json:"given"`   // somebody looked
	Missing []string       `json:"missing"`
}

// ReportTicket is a customer's report held against the replay.
type ReportTicket struct {
	ID       string `json:"id"`
	User     string `json:"user"` // pseudonym; empty: not in the traffic
	Plan     string `json:"plan"`
	Date     string `json:"date"`
	Symptom  string `json:"symptom"`
	Attempts int64  `json:"attempts"` // of that user in that hour, or on that day where the ticket has no time
	Rejected int64  `json:"rejected"` // of them, by replay at today's allowance
	Shows    string `json:"shows"`    // in words
}

// ReportAgainst is S12: this report beside an earlier one.
type ReportAgainst struct {
	Old  string             `json:"old"` // the file's SHA-256
	Rows []ReportAgainstRow `json:"rows"`
	Said []string           `json:"said"`
}

// ReportAgainstRow is one figure in both reports.
type ReportAgainstRow struct {
	Plan   string   `json:"plan"`
	Figure string   `json:"figure"`
	Unit   string   `json:"unit"`
	Old    *float64 `json:"old,omitempty"`
	New    *float64 `json:"new,omitempty"`
	Delta  *float64 `json:"delta,omitempty"` // of the old one; absent: the difference may be chance, or one is missing
	P      *float64 `json:"p,omitempty"`
	NOld   int      `json:"n_old"`
	NNew   int      `json:"n_new"`
}

// ReportMigration is S14: whether local limiter storage still does.
type ReportMigration struct {
	Verdict Migration               `json:"verdict"`
	Why     string                  `json:"why"`
	Signals []ReportMigrationSignal `json:"signals"`
}

// Migration is what is said of the limiter's storage.
type Migration string

// The answers.
const (
	MigrationStay    Migration = "stay"
	MigrationMigrate Migration = "migrate"
	MigrationUntold  Migration = "not_enough_evidence"
)

// ReportMigrationSignal is one of the measured signals of the contract.
type ReportMigrationSignal struct {
	Name    string `json:"name"`
	Value   string `json:"value,omitempty"`
	Says    string `json:"says,omitempty"`    // stay, migrate, or nothing where it only informs
	Missing string `json:"missing,omitempty"` // how to get it
}
