package steps

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/cucumber/godog"

	"github.com/invoicespec/brimline/conformance/contract"
)

// sentence is one sentence that features may use: a regular expression anchored
// at both ends, what it means for who writes features, what it needs of a target
// by itself, and what it does. Its groups become the function's arguments.
type sentence struct {
	keyword keyword
	pattern string
	means   string
	needs   needs
	does    any
}

// needs is what a sentence cannot do without.
type needs []contract.Need

// topic is the sentences about one matter.
type topic struct {
	name      string
	sentences []sentence
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

// topics lists all sentences there are.
func (s *Scenario) topics() []topic {
	return []topic{
		{"users", s.givens()},
		{"requests", s.whens()},
		{"requests in flight", s.flights()},
		{"bad credentials", s.strangers()},
		{"attempts of an address", s.addresses()},
		{"clients behind a proxy", s.proxied()},
		{"what a parser refuses", s.unparsables()},
		{"changes under way", s.changes()},
		{"plans that take over later", s.schedules()},
		{"overrides", s.overrides()},
		{"the operator boundary", s.boundaries()},
		{"broken entitlements", s.breakages()},
		{"paid operations", s.capacities()},
		{"a server that starts anew", s.restarts()},
		{"answers", s.thens()},
		{"what a request leaves behind", s.audits()},
		{"the billing page", s.pages()},
		{"servers of a scenario's own", slices.Concat(s.startups(), s.endings())},
		{"the page of metrics", s.metered()},
		{Offered, s.offered()},
	}
}

func (s *Scenario) sentences() []sentence {
	var all []sentence
	for _, t := range s.topics() {
		all = append(all, t.sentences...)
	}
	return all
}

// compiled is every pattern's regular expression, made once: compiling them anew
// for each scenario would take longer than most scenarios do.
var compiled = sync.OnceValue(func() map[string]*regexp.Regexp {
	all := map[string]*regexp.Regexp{}
	for _, x := range new(Scenario).sentences() {
		all[x.pattern] = regexp.MustCompile(x.pattern)
	}
	return all
})

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
	for _, u := range s.they {
		u.late = u.Bucket.Late()
	}
	return err
}

// anyOf matches the words that something is told apart by.
func anyOf[V any](all map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(all)), "|")
}
