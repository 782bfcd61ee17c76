package record

import (
	"slices"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
)

// Changes is what two runs say of the same clauses where they do not say the
// same.
type Changes struct {
	Against Earlier  `json:"against"`
	List    []Change `json:"list"` // in the contract's order
}

// Earlier is the run that another is held against.
type Earlier struct {
	Result   Result    `json:"result"`
	Started  time.Time `json:"started"`
	Brimline string    `json:"brimline"`
	Target   string    `json:"target"` // its description
}

// Change is one clause of which two runs say different things.
type Change struct {
	Clause string     `json:"clause"`
	Kind   ChangeKind `json:"kind"`
	Was    Verdict    `json:"was"`
	Is     Verdict    `json:"is"`
	Reason string     `json:"reason,omitempty"` // of the verdict it has now
}

// ChangeKind is what a change means.
type ChangeKind string

// The kinds.
const (
	NewlyFailing   ChangeKind = "newly_failing"    // not kept, and was not known to be so
	NewlyDiffers   ChangeKind = "newly_differs"    // settled otherwise than in the reference, and was not
	Mended         ChangeKind = "mended"           // kept, and was not
	NewlyJudged    ChangeKind = "newly_judged"     // kept, and was not judged
	NoLongerJudged ChangeKind = "no_longer_judged" // not judged, and was
)

// ChangeKinds lists all of them, those that want a reader most first.
func ChangeKinds() []ChangeKind {
	return []ChangeKind{NewlyFailing, NoLongerJudged, NewlyDiffers, Mended, NewlyJudged}
}

// Against is c with what has changed since an earlier run. A clause that was not
// selected this time is no change.
func (c Conformance) Against(old Conformance) Conformance {
	was := map[string]Clause{}
	for _, cl := range old.Clauses {
		was[cl.ID] = cl
	}
	changes := &Changes{
		Against: Earlier{Result: old.Result, Started: old.Started, Brimline: old.Brimline, Target: old.Target.Description},
		List:    []Change{},
	}
	is := map[string]bool{}
	for _, cl := range c.Clauses {
		is[cl.ID] = true
		before, known := was[cl.ID]
		if cl.stand() == open && len(c.Selected) > 0 && !slices.Contains(c.Selected, cl.ID) {
			continue
		}
		if !known {
			before.Verdict = NotRun // by a suite that did not know the clause
		}
		if kind := changeOf(before.stand(), cl.stand()); kind != "" {
			changes.List = append(changes.List, Change{Clause: cl.ID, Kind: kind, Was: before.Verdict, Is: cl.Verdict, Reason: cl.Reason})
		}
	}
	for _, cl := range old.Clauses {
		if !is[cl.ID] && cl.stand() != open {
			changes.List = append(changes.List, Change{Clause: cl.ID, Kind: NoLongerJudged, Was: cl.Verdict, Is: NotRun, Reason: "this suite does not know it"})
		}
	}
	c.Changes = changes
	return c
}

// stand is what a verdict says of a deployment, whatever a list of known
// failures or --strict made of it.
type stand int

const (
	open stand = iota // nothing
	kept
	otherwise
	broken
)

func (c Clause) stand() stand {
	switch c.Verdict {
	case Pass, Stale:
		return kept
	case Differs:
		return otherwise
	case Fail, KnownFails:
		if c.Level == string(contract.Decided) {
			return otherwise
		}
		return broken
	}
	return open
}

// changeOf names the step from one stand to another; empty: there is none.
func changeOf(was, is stand) ChangeKind {
	switch {
	case was == is:
		return ""
	case is == broken:
		return NewlyFailing
	case is == otherwise:
		return NewlyDiffers
	case is == open:
		return NoLongerJudged
	case was == open:
		return NewlyJudged
	}
	return Mended
}
