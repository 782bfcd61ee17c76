package record

// ReportECDF is how a figure is spread over users: its quantiles by nearest rank,
// the share of users near the limit and far from it, and the whole distribution.
type ReportECDF struct {
	P50      float64       `json:"p50"`
	P90      float64       `json:"p90"`
	P95      float64       `json:"p95"`
	P99      float64       `json:"p99"`
	Max      float64       `json:"max"`
	Near     float64       `json:"near"`     // share of users at 0.8 and above
	Generous float64       `json:"generous"` // share of users at 0.25 and below
	Points   []ReportPoint `json:"points"`   // share of users at X and below, thinned to what a chart can show
}

// ReportPoint is one point of a curve.
type ReportPoint struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// ReportUtilization is how much of today's allowance users take, each figure as
// a part of what is allowed. Absent figures are in Missing, with the reason.
type ReportUtilization struct {
	Users       int         `json:"users"`
	Burst       *ReportECDF `json:"burst,omitempty"`       // peak of a leaky meter drained at the rate, over the burst: above 1 if and only if something is rejected
	Rate        *ReportECDF `json:"rate,omitempty"`        // most attempts in any 60 s, over the rate
	Sustained   *ReportECDF `json:"sustained,omitempty"`   // attempts in the busiest hour, over 60 times the rate
	Concurrency *ReportECDF `json:"concurrency,omitempty"` // most in flight at a time, over the cap
	Missing     []string    `json:"missing"`
}

// ReportAnatomy is what today's rejections are made of, by replay of the
// recorded attempts.
type ReportAnatomy struct {
	Rejected int64 `json:"rejected"`

	Lorenz    []ReportPoint `json:"lorenz"`      // share of users (fewest rejections first) to share of rejections
	Top1      float64       `json:"top_1"`       // share of the rejections that one user makes
	Top1Pct   float64       `json:"top_percent"` // share that the first percent of users makes, rounded up to whole users
	Gini      float64       `json:"gini"`
	Users     int           `json:"users"`
	Affected  int           `json:"affected"`
	Causes    ReportCauses  `json:"causes"`
	Hours     [7][24]int64  `json:"hours"`          // rejections by weekday (Monday first) and hour, UTC
	Minutes   [60]int64     `json:"minute_of_hour"` // rejections by minute of the hour
	Episodes  ReportEpisode `json:"episodes"`
	TooEarly  int64         `json:"too_early"` // rejections that were followed by another attempt before Retry-After ran out
	Followed  int64         `json:"followed"`  // rejections after which the user is seen again at all
	Undefined []string      `json:"undefined"` // what the log cannot tell of all this, and why
}

// ReportCauses sorts rejections by what would have made them vanish. They add up
// to all of them.
type ReportCauses struct {
	Burst       int64 `json:"burst"`       // gone with a burst of 60 times the rate, an hour's worth
	Sustained   int64 `json:"sustained"`   // for the rate, and still there with such a burst
	Concurrency int64 `json:"concurrency"` // gone without a cap
	Both        int64 `json:"both"`        // the remainder: gone with neither alone
}

// ReportEpisode is what runs of one user's rejections look like that are less
// than twice their Retry-After apart.
type ReportEpisode struct {
	N          int64       `json:"n"`
	Rejections ReportQuart `json:"rejections"` // in one episode
	Seconds    ReportQuart `json:"seconds"`    // from its first to its last rejection
	Recovery   ReportQuart `json:"recovery_s"` // from its first rejection to the next request that is admitted
	Unfinished int64       `json:"unfinished"` // after which nothing is admitted in the log
}

// ReportQuart is a spread in four numbers, by nearest rank.
type ReportQuart struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// ReportClosed is one allowance under clients that obey Retry-After: a rejected
// request is sent again when it has run out, and what the user wants to send
// meanwhile waits behind it.
type ReportClosed struct {
	Rate          int64       `json:"rate"`
	Burst         int64       `json:"burst"`
	Concurrency   int64       `json:"concurrency,omitempty"` // absent: without a cap
	Rejected      int64       `json:"rejected"`              // of all sendings, the repeated ones too
	Sendings      int64       `json:"sendings"`
	UsersAffected int         `json:"users_affected"`
	Delay         ReportQuart `json:"delay_s"`  // of all requests, from when they were wanted to when they were admitted
	Unserved      int64       `json:"unserved"` // still waiting when the log ends
}

// ReportMoved is what a change of the allowance does to users on the same
// traffic: how many meet a rejection only before it, or only after it. The
// intervals are from drawing users again and again, so they are paired.
type ReportMoved struct {
	Rate     int64      `json:"rate"`
	Burst    int64      `json:"burst"`
	Out      int        `json:"out"` // of rejection
	Out95    [2]float64 `json:"out_95"`
	In       int        `json:"in"`
	In95     [2]float64 `json:"in_95"`
	Share    float64    `json:"share"` // of all attempts: rejected now, less rejected then
	Share95  [2]float64 `json:"share_95"`
	Draws    int        `json:"draws"`
	Clusters string     `json:"clusters"` // what was drawn: users, or days
	Days     int        `json:"days"`     // on which somebody is spared a rejection
}

// ReportPeaks is the most admissions of all plans together in a stretch of time,
// per second.
type ReportPeaks struct {
	Second float64 `json:"s1"`
	Ten    float64 `json:"s10"`
	Minute float64 `json:"s60"`
	Source string  `json:"source"`
}
