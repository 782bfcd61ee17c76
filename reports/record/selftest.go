package record

// SelfTestSchema names the layout of [SelfTest] as JSON.
const SelfTestSchema = "brimline.selftest/1"

// SelfTest is whether the suite notices servers that are wrong in one known way
// each: the kill table.
type SelfTest struct {
	Schema     string     `json:"schema"`
	Result     Result     `json:"result"` // success: the correct server passed and every fault was caught
	Brimline   string     `json:"brimline"`
	DurationMS int64      `json:"duration_ms"`
	Aborted    string     `json:"aborted,omitempty"` // why it ended early; the result is partial then
	Correct    []CaughtBy `json:"correct"`           // what was held against the correct server: false alarms
	Caught     int        `json:"caught"`
	Faults     []Fault    `json:"faults"`
}

// Fault is a wrong server and what gave it away.
type Fault struct {
	Name   string     `json:"name"`
	Clause string     `json:"clause"`           // the clause it breaks
	Caught bool       `json:"caught"`           // by a scenario that carries this clause
	By     []CaughtBy `json:"by"`               // everything that was held against it
	Reason string     `json:"reason,omitempty"` // why it was not caught, where more is known than that
}

// CaughtBy is one scenario that found one clause broken.
type CaughtBy struct {
	Clause   string `json:"clause"`
	Scenario string `json:"scenario"`
	At       string `json:"at"`
	Carries  bool   `json:"carries"` // the scenario is about this clause
}
