package conformance

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cucumber/godog"
	messages "github.com/cucumber/messages/go/v34"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/steps"
)

// check reads the features as a run would, and looks for what a run would pass
// over in silence.
func (o *Own) check(dir string) error {
	d := steps.NewDictionary()
	carried := map[string]bool{}
	for _, path := range o.paths() {
		file := filepath.Join(dir, strings.TrimPrefix(path, o.label+"/"))
		suite := godog.TestSuite{Options: &godog.Options{FS: o, Paths: []string{path}}}
		parsed, err := suite.RetrieveFeatures()
		if err != nil {
			return fmt.Errorf("%s: %s; accepted: Gherkin", file, parseProblem(err))
		}
		pickles, names := map[string]bool{}, map[string]bool{}
		for _, f := range parsed {
			places := newPlaces(f.Feature)
			for _, p := range f.Pickles {
				pickles[p.AstNodeIds[0]] = true
				s := Planned{Name: p.Name}
				if err := s.readTags(p, o.clauses); err != nil {
					return fmt.Errorf("%s:%d: %w; accepted: @ID and level of a clause in %s, @needs-…", file, p.Location.Line, err, clausesFile)
				}
				if name := s.Clauses[0] + " " + p.Name; names[name] {
					return fmt.Errorf("%s:%d: two scenarios of %s are called %q; accepted: names that tell them apart", file, p.Location.Line, s.Clauses[0], p.Name)
				}
				names[s.Clauses[0]+" "+p.Name] = true
				for _, id := range s.Clauses {
					carried[id] = true
				}
				if len(p.Steps) == 0 {
					return fmt.Errorf("%s:%d: %q says nothing; accepted: a scenario with sentences", file, p.Location.Line, p.Name)
				}
				for _, st := range p.Steps {
					if _, err := understand(d, st); err != nil {
						return fmt.Errorf("%s:%d: %w; \"brimline check --steps\" lists them all", file, places.lines[st.AstNodeIds[0]], err)
					}
				}
			}
			for _, s := range places.scenarios {
				if !pickles[s.Id] {
					return fmt.Errorf("%s:%d: %q is never run; accepted: an outline with examples", file, s.Location.Line, s.Name)
				}
			}
		}
		if len(pickles) == 0 {
			return fmt.Errorf("%s: no scenario that would be run; accepted: at least one", file)
		}
	}
	for _, c := range o.clauses {
		if !carried[c.ID] {
			return fmt.Errorf("%s: no scenario carries %s; accepted: a tag @%s on one at least", filepath.Join(dir, clausesFile), c.ID, c.ID)
		}
	}
	return nil
}

// parseProblem is a parser's complaint in one line.
func parseProblem(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// understand looks a sentence up, by what "And" stands for.
func understand(d steps.Dictionary, st *messages.PickleStep) ([]contract.Need, error) {
	keyword := map[messages.PickleStepType]string{
		messages.PickleStepType_CONTEXT: "Given", messages.PickleStepType_ACTION: "When", messages.PickleStepType_OUTCOME: "Then",
	}[st.Type]
	if st.Argument != nil && st.Argument.DocString != nil {
		return nil, fmt.Errorf("%q: no text may follow", st.Text)
	}
	return d.Understand(keyword, st.Text, st.Argument != nil)
}

// impliedBy adds what the sentences of an own scenario cannot do without.
func (s *Planned) impliedBy(d steps.Dictionary, p *godog.Scenario) {
	for _, st := range p.Steps {
		needs, _ := understand(d, st) // checked when it was read
		for _, n := range needs {
			if !slices.Contains(s.Needs, n) {
				s.Needs = append(s.Needs, n)
			}
		}
	}
}

// places is where sentences and scenarios stand in a file.
type places struct {
	lines     map[string]int64 // of sentences
	scenarios []*messages.Scenario
}

func newPlaces(f *messages.Feature) places {
	p := places{lines: map[string]int64{}}
	for _, c := range f.Children {
		p.background(c.Background)
		p.scenario(c.Scenario)
		if c.Rule != nil {
			for _, rc := range c.Rule.Children {
				p.background(rc.Background)
				p.scenario(rc.Scenario)
			}
		}
	}
	return p
}

func (p *places) background(b *messages.Background) {
	if b != nil {
		p.steps(b.Steps)
	}
}

func (p *places) scenario(s *messages.Scenario) {
	if s != nil {
		p.scenarios = append(p.scenarios, s)
		p.steps(s.Steps)
	}
}

func (p *places) steps(all []*messages.Step) {
	for _, st := range all {
		p.lines[st.Id] = st.Location.Line
	}
}
