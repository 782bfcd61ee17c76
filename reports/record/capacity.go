package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// CapacitySchema names the layout of [Capacity] as JSON. It changes when a key is
// renamed, removed or given another meaning, not when one is added.
const CapacitySchema = "brimline.capacity/1"

// CapacityFile is the name of a search's file in its folder.
const CapacityFile = "capacity.json"

// Capacity is what a search for a target's capacity found: what was offered in
// each step, what came of it, and what that says. Rates are per second, of all
// users together.
type Capacity struct {
	Schema   string         `json:"schema"`
	Brimline string         `json:"brimline"` // version of the tool
	Started  time.Time      `json:"started"`
	Scenario RunScenario    `json:"scenario"` // as it was written; steps scale its rates
	Target   RunTarget      `json:"target"`
	SLO      []string       `json:"slo"`     // what a step has to hold, as it was written
	HoldMS   int64          `json:"hold_ms"` // length of a step
	Steps    []CapacityStep `json:"steps"`
	End      CapacityEnd    `json:"end"`
	Holds    *float64       `json:"holds,omitempty"`      // the highest load under which the SLO held; absent: under none
	Knee     *CapacityKnee  `json:"saturation,omitempty"` // where goodput stops to follow; absent: it was not seen to
	Warning  *CapacityKnee  `json:"warning,omitempty"`    // where latency begins to climb; absent: it was not seen to
	Said     []string       `json:"said"`                 // what the search has to say, a sentence each
}

// CapacityStep is one load, held for a while. Load and Goodput are of the seconds
// after the first fifth, in which the target takes in what is new.
type CapacityStep struct {
	Folder    string           `json:"folder"` // of its run, below the search's
	Asked     float64          `json:"asked"`
	Offered   float64          `json:"offered"` // what came due
	Limited   float64          `json:"limited"` // of this, what the rate limit kept away: it is no load
	Load      float64          `json:"load"`    // of this, the rest
	Goodput   float64          `json:"goodput"` // what was admitted and answered
	P50US     int64            `json:"p50_us"`  // of what was admitted, from when it was due
	P99US     int64            `json:"p99_us"`
	SLO       []RunThreshold   `json:"slo"`
	Verdict   CapacityVerdict  `json:"verdict"`
	Why       []string         `json:"why"` // it does not hold, or tells nothing
	PerSecond []CapacitySecond `json:"per_second"`
}

// CapacitySecond is one second of a step.
type CapacitySecond struct {
	Load    int64 `json:"load"`
	Goodput int64 `json:"goodput"`
}

// CapacityVerdict says what a step came to.
type CapacityVerdict string

// The verdicts.
const (
	CapacityHolds     CapacityVerdict = "holds"
	CapacityFails     CapacityVerdict = "fails"
	CapacityGenerator CapacityVerdict = "generator" // the load side was the limit: nothing is said of the target
	CapacityLimits    CapacityVerdict = "limits"    // the users' allowances were the limit
)

// CapacityEnd says why a search ended.
type CapacityEnd string

// The ends.
const (
	EndSLO         CapacityEnd = "slo"         // two steps in a row failed
	EndTop         CapacityEnd = "top"         // the highest load was reached
	EndGenerator   CapacityEnd = "generator"   // the load side could not make more
	EndLimits      CapacityEnd = "limits"      // the users may not ask for more
	EndInterrupted CapacityEnd = "interrupted" // from outside
)

// CapacityKnee is a load at which something begins, and the 95 % band of it.
type CapacityKnee struct {
	At   float64 `json:"at"`
	From float64 `json:"from"`
	To   float64 `json:"to"`
}

// Check says what does not fit together.
func (c Capacity) Check() error {
	if c.Schema != CapacitySchema {
		return fmt.Errorf("schema is %q, want %q", c.Schema, CapacitySchema)
	}
	if len(c.Steps) == 0 {
		return errors.New("no step is in it")
	}
	holds := false
	for i, s := range c.Steps {
		switch s.Verdict {
		case CapacityHolds:
			holds = true
		case CapacityFails, CapacityGenerator, CapacityLimits:
			if len(s.Why) == 0 {
				return fmt.Errorf("step %d: %s, and no reason", i+1, s.Verdict)
			}
		default:
			return fmt.Errorf("step %d is of verdict %q", i+1, s.Verdict)
		}
		if i > 0 && s.Asked <= c.Steps[i-1].Asked {
			return fmt.Errorf("step %d asks for no more than the one before", i+1)
		}
	}
	if c.Holds != nil && !holds {
		return errors.New("no step holds, and a load is said to")
	}
	for _, k := range []*CapacityKnee{c.Knee, c.Warning} {
		if k != nil && (k.From > k.At || k.At > k.To) {
			return fmt.Errorf("%g is not between %g and %g", k.At, k.From, k.To)
		}
	}
	return nil
}

// ParseCapacity reads what [WriteCapacity] wrote.
func ParseCapacity(data []byte) (Capacity, error) {
	var c Capacity
	if err := json.Unmarshal(data, &c); err != nil {
		return Capacity{}, fmt.Errorf("not a capacity search: %w", err)
	}
	return c, c.Check()
}

// WriteCapacity writes a search into its folder, whole or not at all, and never
// over another.
func WriteCapacity(dir string, c Capacity) error {
	if err := c.Check(); err != nil {
		return err
	}
	if err := ClaimRunFolder(dir); err != nil {
		return err
	}
	return writeWhole(dir, CapacityFile, c)
}
