package record

import "time"

// ConformanceSchema names the layout of [Conformance] as JSON. It changes when
// a key is renamed, removed or given another meaning, not when one is added.
const ConformanceSchema = "brimline.conformance/1"

// Conformance is how a target was judged, clause by clause. Terminal text,
// JUnit and every other report are made from it alone.
type Conformance struct {
	Schema     string    `json:"schema"`
	Result     Result    `json:"result"`
	Counts     Counts    `json:"counts"`
	Target     Target    `json:"target"`
	Brimline   string    `json:"brimline"`      // version of the suite
	Run        string    `json:"run,omitempty"` // in the User-Agent of each request of the run
	Started    time.Time `json:"started"`
	DurationMS int64     `json:"duration_ms"`
	Strict     bool      `json:"strict"`             // DECIDED clauses count as MUST
	Charged    int64     `json:"charged_at_most"`    // operations that the target can have charged
	Aborted    string    `json:"aborted,omitempty"`  // why the run ended early
	Selected   []string  `json:"selected,omitempty"` // what was asked for; absent: everything
	Clauses    []Clause  `json:"clauses"`            // every clause of the contract, in its order
	Power      Power     `json:"power"`              // which known faults this run can have noticed
}

// Target is the deployment that was judged.
type Target struct {
	Description string   `json:"description"` // one line: host, users, plans, clock, what it can
	Server      string   `json:"server,omitempty"`
	Clock       string   `json:"clock"` // real, shifted or frozen
	Plans       []string `json:"plans"`
	Offers      []string `json:"offers"` // the needs it meets
}

// Result is the whole run in a word.
type Result string

// The results. A failure is a failure whatever else could not be told.
const (
	ResultSuccess Result = "success" // every clause was judged and none failed
	ResultPartial Result = "partial" // none failed, but not every clause was judged
	ResultFailure Result = "failure"
)

// Verdict is what was found of a clause or in a scenario.
type Verdict string

// The verdicts.
const (
	Pass         Verdict = "pass"
	Fail         Verdict = "fail"
	Untrue       Verdict = "untrue"       // what the target file declares for it is not so
	Differs      Verdict = "differs"      // a DECIDED clause that is settled otherwise there
	Inconclusive Verdict = "inconclusive" // the question was asked and not answered
	SetupFailed  Verdict = "setup_failed" // the question could not be asked
	NotRun       Verdict = "not_run"      // the target does not offer what it takes, or nobody asked
)

// Verdicts lists all of them, worst first.
func Verdicts() []Verdict {
	return []Verdict{Fail, Untrue, Differs, SetupFailed, Inconclusive, Pass, NotRun}
}

// Counts is how many clauses ended how.
type Counts struct {
	Pass         int `json:"pass"`
	Fail         int `json:"fail"`
	Untrue       int `json:"untrue"` // absent in files of versions before it
	Differs      int `json:"differs"`
	Inconclusive int `json:"inconclusive"`
	SetupFailed  int `json:"setup_failed"`
	NotRun       int `json:"not_run"`
}

// Clause is one clause and what was found of it.
type Clause struct {
	ID        string     `json:"id"`
	Level     string     `json:"level"`
	Group     string     `json:"group"`
	Sentence  string     `json:"sentence"`
	Verdict   Verdict    `json:"verdict"`
	Reason    string     `json:"reason,omitempty"` // why it is no plain pass
	Scenarios []Scenario `json:"scenarios"`        // those that carry it, and those that broke it in passing
}

// Scenario is one scenario as far as it concerns a clause.
type Scenario struct {
	Name       string    `json:"name"`
	At         string    `json:"at"` // feature file and line
	Verdict    Verdict   `json:"verdict"`
	Reason     string    `json:"reason,omitempty"`
	InPassing  bool      `json:"in_passing,omitempty"` // it is about another clause and broke this one on its way
	DurationMS int64     `json:"duration_ms"`
	Findings   []Finding `json:"findings,omitempty"`
}

// Finding is one thing that was not as it has to be.
type Finding struct {
	Clause      string `json:"clause"`
	Step        string `json:"step"`  // the sentence during which it was seen
	Field       string `json:"field"` // what was looked at
	Expected    string `json:"expected"`
	Ground      string `json:"ground,omitempty"` // why that was expected
	Got         string `json:"got"`
	Consequence string `json:"consequence,omitempty"`
	Exchange    string `json:"exchange,omitempty"` // a command that repeats the request, its key masked
	Answer      string `json:"answer,omitempty"`   // the answer's status line, headers and body, cut
}

// Of counts the clauses by verdict.
func Of(clauses []Clause) Counts {
	var c Counts
	for _, cl := range clauses {
		switch cl.Verdict {
		case Pass:
			c.Pass++
		case Fail:
			c.Fail++
		case Untrue:
			c.Untrue++
		case Differs:
			c.Differs++
		case Inconclusive:
			c.Inconclusive++
		case SetupFailed:
			c.SetupFailed++
		case NotRun:
			c.NotRun++
		}
	}
	return c
}

// Get is the number of a verdict.
func (c Counts) Get(v Verdict) int {
	return map[Verdict]int{Pass: c.Pass, Fail: c.Fail, Untrue: c.Untrue, Differs: c.Differs,
		Inconclusive: c.Inconclusive, SetupFailed: c.SetupFailed, NotRun: c.NotRun}[v]
}
