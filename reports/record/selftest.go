package record

import (
	"cmp"
	"slices"
)

// SelfTestSchema names the layout of [SelfTest] as JSON.
const SelfTestSchema = "brimline.selftest/1"

// SelfTest is whether the suite notices servers that are wrong in one known way
// each: the kill table.
type SelfTest struct {
	Schema     string     `json:"schema"`
	Result     Result     `json:"result"` // success: the correct server passed and every fault was caught
	Brimline   string     `json:"brimline"`
	Setting    Setting    `json:"setting"` // the kind of target that the servers were
	DurationMS int64      `json:"duration_ms"`
	Aborted    string     `json:"aborted,omitempty"` // why it ended early; the result is partial then
	Correct    []CaughtBy `json:"correct"`           // what was held against the correct server: false alarms
	Caught     int        `json:"caught"`
	Fragile    int        `json:"fragile"` // faults that one scenario alone catches
	Faults     []Fault    `json:"faults"`
}

// Fault is a wrong server and what gave it away.
type Fault struct {
	Name       string     `json:"name"`
	Clause     string     `json:"clause"`           // the clause it breaks
	Caught     bool       `json:"caught"`           // by a scenario that carries this clause
	Fragile    bool       `json:"fragile"`          // by one such scenario alone
	Needs      []string   `json:"needs"`            // the least that a target has to offer for it to be caught
	DurationMS int64      `json:"duration_ms"`      // of all that it met
	By         []CaughtBy `json:"by"`               // everything that was held against it
	Reason     string     `json:"reason,omitempty"` // why it was not caught, where more is known than that
}

// CaughtBy is one scenario that found one clause broken.
type CaughtBy struct {
	Clause   string   `json:"clause"`
	Scenario string   `json:"scenario"`
	At       string   `json:"at"`
	Carries  bool     `json:"carries"` // the scenario is about this clause
	Needs    []string `json:"needs"`   // what the scenario asks of a target
}

// Catchers is what counts as having caught a fault: the scenarios that are about
// the clause it breaks.
func (f Fault) Catchers() []CaughtBy {
	var all []CaughtBy
	for _, by := range f.By {
		if by.Carries && by.Clause == f.Clause {
			all = append(all, by)
		}
	}
	return all
}

// KillTable is a self-test of which it is known by whom each fault was caught,
// with all that follows from it.
func KillTable(setting Setting, faults []Fault) SelfTest {
	st := SelfTest{Schema: SelfTestSchema, Result: ResultSuccess, Setting: setting, Correct: []CaughtBy{}, Faults: faults}
	for i := range st.Faults {
		f := &st.Faults[i]
		f.Needs = []string{}
		by := f.Catchers()
		if len(by) == 0 {
			st.Result = ResultFailure
			continue
		}
		least := slices.MinFunc(by, func(a, b CaughtBy) int { return cmp.Compare(len(a.Needs), len(b.Needs)) })
		f.Caught, f.Fragile, f.Needs = true, len(by) == 1, append(f.Needs, least.Needs...)
		st.Caught++
		if f.Fragile {
			st.Fragile++
		}
	}
	return st
}
