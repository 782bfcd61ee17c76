package steps

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/cucumber/godog"
)

// sentence is one sentence that features may use: a regular expression anchored
// at both ends, and what it does. Its groups become the function's arguments.
type sentence struct {
	keyword keyword
	pattern string
	does    any
}

// keyword is what a sentence begins with, "And" taken as the one before.
type keyword string

const (
	given keyword = "Given"
	when  keyword = "When"
	then  keyword = "Then"
)

// Register teaches godog the sentences, each for its own keyword.
func (s *Scenario) Register(sc *godog.ScenarioContext) {
	sc.StepContext().Before(func(ctx context.Context, st *godog.Step) (context.Context, error) {
		s.step = st.Text
		return ctx, nil
	})
	for _, x := range s.sentences() {
		map[keyword]func(expr, step any){given: sc.Given, when: sc.When, then: sc.Then}[x.keyword](s.suite.patterns[x.pattern], x.does)
	}
}

// sentences lists all there are.
func (s *Scenario) sentences() []sentence {
	return slices.Concat(
		s.givens(),
		s.whens(), s.flights(), s.strangers(), s.addresses(), s.proxied(), s.unparsables(),
		s.changes(), s.schedules(), s.overrides(), s.boundaries(), s.breakages(), s.capacities(), s.restarts(),
		s.thens(), s.audits(), s.pages(),
		s.startups(), s.metered(),
	)
}

// Patterns lists the pattern of every sentence.
func Patterns() []string {
	var all []string
	for _, x := range new(Scenario).sentences() {
		all = append(all, x.pattern)
	}
	return all
}

// compiled is every pattern's regular expression: compiling them anew for each
// scenario would take longer than most scenarios do.
func compiled() map[string]*regexp.Regexp {
	all := map[string]*regexp.Regexp{}
	for _, p := range Patterns() {
		all[p] = regexp.MustCompile(p)
	}
	return all
}

// each does something for every user that the sentences speak of.
func (s *Scenario) each(do func(u *subject) error) error {
	for _, u := range s.they {
		if err := do(u); err != nil {
			return err
		}
	}
	return nil
}

// sends wraps a sentence that sends: the answers it collects are those that the
// following sentences are about.
func (s *Scenario) sends(collect func() ([]exchange, error)) error {
	got, err := collect()
	s.got = got
	if err == nil && len(got) == 0 {
		return fmt.Errorf("nothing was sent by %q", s.step)
	}
	return err
}

// ready ends a Given: what was found so far is not what the scenario is about.
func (s *Scenario) ready(err error) error {
	s.mark = len(s.found)
	return err
}
