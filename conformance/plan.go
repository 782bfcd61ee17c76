package conformance

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/cucumber/godog"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/steps"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/features"
)

// ErrSelection is a selection of clauses that is none: an unknown id, or
// nothing that could be run.
var ErrSelection = errors.New("nothing to run")

// Reach is what a plan asks of a target.
type Reach interface {
	Has(contract.Need) bool
	Untrue(contract.Need) string // why what is declared for a need was found not to be so; empty: it was not
	Plans() []string             // on which there are users
	Allowance(plan string) (oracle.Allowance, bool)
}

// Plan is what would be run against a target, and what would not and why. It is
// made before anything is sent.
type Plan struct {
	Scenarios []Planned `json:"scenarios"`
	Clauses   []string  `json:"selected,omitempty"` // selected clauses; empty: all
	Estimate  *Estimate `json:"estimate,omitempty"` // nil: it was not rehearsed

	order []string // in which scenarios begin, by where they stand; nil: as they are written
}

// Planned is one scenario, an outline's row counting as one.
type Planned struct {
	Name    string          `json:"name"`
	At      string          `json:"at"`      // feature file and line
	Clauses []string        `json:"clauses"` // its rule's own first
	Needs   []contract.Need `json:"needs"`
	Steps   []string        `json:"steps"`
	NotRun  string          `json:"not_run,omitempty"` // why it will not be run; empty: it will
	Cost    *Cost           `json:"cost,omitempty"`    // nil: not known
	Untrue  bool            `json:"untrue,omitempty"`  // it will not be run for what the target declares and has not

	plan  string   // the plan that its row names; empty: none, or every other
	rows  []string // the plans that the rows of its outline name; nil: it has none
	other bool     // its row stands for every plan that no other row names
	lacks string   // what of the target keeps it from being run, selected or not
}

// Running is the scenarios that will be run.
func (p Plan) Running() []Planned {
	return slices.DeleteFunc(slices.Clone(p.Scenarios), func(s Planned) bool { return s.NotRun != "" })
}

// Reached lists the clauses that scenarios to be run look at.
func (p Plan) Reached() []string {
	var all []string
	for _, s := range p.Running() {
		for _, id := range s.Clauses {
			if !slices.Contains(all, id) {
				all = append(all, id)
			}
		}
	}
	return all
}

// NewPlan reads the features and plans those scenarios that carry a selected
// clause; an empty selection is everything. Its error names a clause, level or
// need that does not exist; it wraps [ErrSelection] where that came from the
// selection, or where nothing at all can be run.
func NewPlan(reach Reach, features fs.FS, clauses []string) (Plan, error) {
	for _, id := range clauses {
		if _, ok := find(Clauses(features), id); !ok {
			return Plan{}, fmt.Errorf("%w: there is no clause %q; \"brimline check --list\" shows them all", ErrSelection, id)
		}
	}
	all, err := scenarios(features)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{Clauses: clauses}
	for _, s := range all {
		if !s.applies(reach) {
			continue
		}
		s.lacks = s.outOfReach(reach)
		s.NotRun = s.obstacle(clauses)
		s.Untrue = s.NotRun == s.lacks && s.misled(reach)
		p.Scenarios = append(p.Scenarios, s)
	}
	if len(p.Running()) == 0 {
		return p, fmt.Errorf("%w: %s", ErrSelection, p.whyEmpty())
	}
	return p, nil
}

// whyEmpty says what keeps the selected scenarios from being run.
func (p Plan) whyEmpty() string {
	reasons := map[string]bool{}
	for _, s := range p.Scenarios {
		if s.NotRun != notSelected {
			reasons[s.NotRun] = true
		}
	}
	if len(reasons) == 0 {
		return fmt.Sprintf("no scenario sees %s", strings.Join(p.Clauses, ", "))
	}
	var list []string
	for r := range reasons {
		list = append(list, r)
	}
	slices.Sort(list)
	if !slices.ContainsFunc(list, func(r string) bool { return !strings.HasPrefix(r, leftOutMark) }) {
		return "all of it is " + strings.Join(list, "; ") // the target could be asked
	}
	return "the target is out of reach for all of it: " + strings.Join(list, "; ")
}

const notSelected = "not selected"

// obstacle says why a scenario cannot be run; empty if it can.
func (s Planned) obstacle(clauses []string) string {
	selected := func(id string) bool { return slices.Contains(clauses, id) }
	if len(clauses) > 0 && !slices.ContainsFunc(s.Clauses, selected) {
		return notSelected
	}
	return s.lacks
}

// outOfReach says what the target lacks for a scenario; empty: nothing.
func (s Planned) outOfReach(reach Reach) string {
	var missing, untrue []string
	for _, n := range s.Needs {
		if reach.Has(n) {
			continue
		}
		missing = append(missing, string(n))
		if why := reach.Untrue(n); why != "" && !slices.Contains(untrue, why) {
			untrue = append(untrue, why)
		}
	}
	if s.misled(reach) {
		return target.ErrUntrue.Error() + ": " + strings.Join(untrue, "; ")
	}
	if len(missing) > 0 {
		return "needs " + strings.Join(missing, ", ")
	}
	if s.plan != "" && !slices.Contains(reach.Plans(), s.plan) {
		return fmt.Sprintf("there is no user on plan %s", s.plan)
	}
	return ""
}

// misled reports whether the scenario would be run if all that the target
// declares were so.
func (s Planned) misled(reach Reach) bool {
	found := false
	for _, n := range s.Needs {
		if !reach.Has(n) {
			if reach.Untrue(n) == "" {
				return false
			}
			found = true
		}
	}
	return found
}

// applies reports whether the plan of an outline's row exists. A row of a plan
// that the target does not have leaves nothing unseen.
func (s Planned) applies(reach Reach) bool {
	if s.other {
		return slices.ContainsFunc(reach.Plans(), func(p string) bool { return !slices.Contains(s.rows, p) })
	}
	_, known := reach.Allowance(s.plan)
	return s.plan == "" || known
}

// scenarios is all scenarios of features, in their order.
func scenarios(fsys fs.FS) ([]Planned, error) {
	if fsys == features.FS {
		all, err := ours()
		return slices.Clone(all), err
	}
	return readScenarios(fsys)
}

// ours is those of the contract's own features, read once: a self-test plans them
// for every fault.
var ours = sync.OnceValues(func() ([]Planned, error) { return readScenarios(features.FS) })

func readScenarios(features fs.FS) ([]Planned, error) {
	paths, err := fs.Glob(features, "*.feature")
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("%w: there are no features", ErrSelection)
	}
	own := ownOf(features)
	if own != nil {
		paths = append(paths, own.paths()...)
	}
	suite := godog.TestSuite{Options: &godog.Options{FS: features, Paths: paths}}
	parsed, err := suite.RetrieveFeatures()
	if err != nil {
		return nil, fmt.Errorf("read features: %w", err)
	}
	var all []Planned
	dictionary, clauses := steps.NewDictionary(), Clauses(features)
	for _, f := range parsed {
		for _, p := range f.Pickles {
			s := Planned{Name: p.Name, At: at(p), Needs: []contract.Need{}}
			for _, st := range p.Steps {
				s.Steps = append(s.Steps, st.Text)
			}
			if err := s.readTags(p, clauses); err != nil {
				return nil, fmt.Errorf("%s: %w", s.At, err)
			}
			if own != nil && own.files[p.Uri] != nil {
				s.impliedBy(dictionary, p)
			}
			if len(p.AstNodeIds) == 2 { // the row of an outline
				for _, e := range f.FindScenario(p.AstNodeIds[0]).Examples {
					if e.TableHeader.Cells[0].Value != planColumn {
						continue
					}
					for _, row := range e.TableBody {
						s.readRow(row.Cells[0].Value, row.Id == p.AstNodeIds[1])
					}
				}
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// planColumn is the heading of an outline's column that names plans.
const planColumn = "plan"

// readRow takes in one row of the scenario's outline.
func (s *Planned) readRow(cell string, own bool) {
	name, ok := strings.CutPrefix(cell, "the ")
	name = strings.TrimSuffix(name, " plan")
	if !ok {
		s.other = s.other || own
		return
	}
	s.rows = append(s.rows, name)
	if own {
		s.plan = name
	}
}

// readTags takes in the tags of the scenario, its rule and its examples. The
// rule's own clause comes first.
func (s *Planned) readTags(p *godog.Scenario, clauses []contract.Clause) error {
	var levels []contract.Level
	for _, tag := range p.Tags {
		name := strings.TrimPrefix(tag.Name, "@")
		if need, ok := strings.CutPrefix(name, "needs-"); ok {
			n, err := contract.ParseNeed(need)
			if err != nil {
				return err
			}
			s.Needs = append(s.Needs, n)
			continue
		}
		if l := contract.Level(name); l == contract.Must || l == contract.Decided {
			levels = append(levels, l)
			continue
		}
		if _, ok := find(clauses, name); !ok {
			return fmt.Errorf("unknown tag %s: a clause, a level or @needs-… is wanted", tag.Name)
		}
		s.Clauses = append(s.Clauses, name)
	}
	if len(s.Clauses) == 0 {
		return errors.New("no clause is tagged")
	}
	if c, _ := find(clauses, s.Clauses[0]); len(levels) != 1 || levels[0] != c.Level {
		return fmt.Errorf("tagged with levels %v: %s is %s", levels, c.ID, c.Level)
	}
	return nil
}

// at is where a scenario stands, an outline's row by its own line. Own features
// are below a folder of theirs.
func at(p *godog.Scenario) string {
	where := fmt.Sprintf("%s:%d", p.Uri, p.Location.Line)
	if strings.Contains(p.Uri, "/") {
		return where
	}
	return "features/" + where
}
