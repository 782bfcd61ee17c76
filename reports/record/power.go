package record

// Power is what a run can have noticed: of all servers that are known to be
// wrong in one way each, those that one of its scenarios would have told from a
// correct one. Only scenarios that were run to an answer count; what was not
// run, not selected, not set up or inconclusive does not.
//
// Known is the sum of Detectable, of every further Faults, and of Unselected,
// Unanswered and Unseen: each fault is counted once.
type Power struct {
	Known      int       `json:"known"` // faults there are; 0: nothing is known of this run's power
	Detectable int       `json:"detectable"`
	Measured   Setting   `json:"measured"`   // on targets of which kind
	Further    []Further `json:"further"`    // what else the target could offer, the most telling first
	Unselected int       `json:"unselected"` // faults within reach of scenarios that nobody asked for
	Unanswered int       `json:"unanswered"` // faults within reach of scenarios that came to no answer
	Unseen     int       `json:"unseen"`     // faults that no scenario sees on a target of this kind
}

// Further is faults that a run would notice if the target offered more.
type Further struct {
	Needs  []string `json:"needs"` // what is missing, all of it
	Faults int      `json:"faults"`
}

// Setting is the kind of target that a fault was looked for on.
type Setting string

// The settings. What is seen on one need not be seen on another: a clock that
// stands still makes every level exact.
const (
	MovedClock Setting = "moved-clock" // control, and a clock that only the suite moves
	RealClock  Setting = "real-clock"  // control, and nobody moves the clock
	PlainHTTP  Setting = "plain-http"  // no control: keys from a file, of whose past nothing is known
)

// Settings lists all of them, the one that shows most first.
func Settings() []Setting { return []Setting{MovedClock, RealClock, PlainHTTP} }
