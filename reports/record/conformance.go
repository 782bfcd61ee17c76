package record

import (
	"slices"
	"time"
)

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
	WaitedMS   int64     `json:"waited_ms"`          // of the scenarios' time, for tokens and for each other
	Charged    int64     `json:"charged_at_most"`    // operations that the target can have charged
	Aborted    string    `json:"aborted,omitempty"`  // why the run ended early
	Selected   []string  `json:"selected,omitempty"` // what was asked for; absent: everything
	Reproduce  Reproduce `json:"reproduce"`

	KnownFailing []KnownFailing `json:"known_failing,omitempty"` // what was expected not to be kept
	Changes      *Changes       `json:"changes,omitempty"`       // against an earlier run
	Clauses      []Clause       `json:"clauses"`                 // every clause of the contract, in its order
	Power        Power          `json:"power"`                   // which known faults this run can have noticed
	Totals       Totals         `json:"totals"`                  // last, so that a file that was cut shows
}

// Reproduce is what it takes to do a run again, beside the version and the target
// it was made with. Nothing in it is secret: keys are read from where the target
// file says.
type Reproduce struct {
	Command string `json:"command,omitempty"` // for a shell; empty: the run was made by a program
}

// Totals is how much a result holds.
type Totals struct {
	Clauses   int `json:"clauses"`
	Scenarios int `json:"scenarios"` // over all clauses; one that carries two counts twice
	Findings  int `json:"findings"`
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
	ResultPartial Result = "partial" // none failed, but some were not judged in full, or were known to fail
	ResultFailure Result = "failure" // a clause failed, or one that was known to fail is kept
)

// Verdict is what was found of a clause or in a scenario.
type Verdict string

// The verdicts.
const (
	Pass         Verdict = "pass"
	Fail         Verdict = "fail"
	Untrue       Verdict = "untrue"        // what the target file declares for it is not so
	KnownFails   Verdict = "known_failing" // not kept, as was known; see [Conformance.WithKnown]
	Stale        Verdict = "stale"         // kept, though it was said to be known that it is not
	Differs      Verdict = "differs"       // a DECIDED clause that is settled otherwise there
	Inconclusive Verdict = "inconclusive"  // the question was asked and not answered
	SetupFailed  Verdict = "setup_failed"  // the question could not be asked
	NotRun       Verdict = "not_run"       // the target does not offer what it takes, or nobody asked
)

// Verdicts lists all of them, worst first.
func Verdicts() []Verdict {
	return []Verdict{Fail, Stale, Untrue, KnownFails, Differs, SetupFailed, Inconclusive, Pass, NotRun}
}

// Counts is how many clauses ended how.
type Counts struct {
	Pass         int `json:"pass"`
	Fail         int `json:"fail"`
	Untrue       int `json:"untrue"`
	KnownFails   int `json:"known_failing"`
	Stale        int `json:"stale"`
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
	Decision  string     `json:"decision,omitempty"` // what the reference does and why, where it is DECIDED
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
	InPassing  bool      `json:"in_passing,omitempty"`   // it is about another clause and broke this one on its way
	OutOfReach bool      `json:"out_of_reach,omitempty"` // not run since the target does not offer what it takes
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

// Summed is c with its counts, its result and its totals made from its clauses.
func (c Conformance) Summed() Conformance {
	c.Counts = Of(c.Clauses)
	c.Result = c.sum()
	c.Totals = Totals{Clauses: len(c.Clauses)}
	for _, cl := range c.Clauses {
		c.Totals.Scenarios += len(cl.Scenarios)
		for _, s := range cl.Scenarios {
			c.Totals.Findings += len(s.Findings)
		}
	}
	return c
}

// sum is the whole in a word. What was not selected does not count against it,
// unless it failed.
func (c Conformance) sum() Result {
	r := ResultSuccess
	for _, cl := range c.Clauses {
		switch {
		case cl.Verdict == Fail, cl.Verdict == Stale:
			return ResultFailure
		case len(c.Selected) > 0 && !slices.Contains(c.Selected, cl.ID):
		case cl.Verdict == Pass && cl.Reason == "", cl.Verdict == Differs:
		default:
			r = ResultPartial
		}
	}
	return r
}

// Of counts the clauses by verdict.
func Of(clauses []Clause) Counts {
	var c Counts
	for _, cl := range clauses {
		if n := c.of(cl.Verdict); n != nil {
			*n++
		}
	}
	return c
}

// Get is the number of a verdict.
func (c Counts) Get(v Verdict) int {
	if n := c.of(v); n != nil {
		return *n
	}
	return 0
}

// of is where a verdict is counted; nil: it is none.
func (c *Counts) of(v Verdict) *int {
	return map[Verdict]*int{
		Pass: &c.Pass, Fail: &c.Fail, KnownFails: &c.KnownFails, Stale: &c.Stale, Untrue: &c.Untrue, Differs: &c.Differs,
		Inconclusive: &c.Inconclusive, SetupFailed: &c.SetupFailed, NotRun: &c.NotRun,
	}[v]
}
