// Package traffic is who asks: a scenario file's populations, the users they are
// made of, how often each asks, what for, and what they do when they meet a 429.
//
// Most callers [Read] a scenario, see whether a target [Scenario.Fits] it, let it
// [Scenario.Cast] its members for the allowances of that target, and [Recruit] a
// user of the target for each of them. Everything about a member but the user is
// a pure function of the scenario, its seed and the allowances.
package traffic

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/invoicespec/brimline/internal/strictyaml"
	"github.com/invoicespec/brimline/loadgen/threshold"
)

// Bounds of a scenario.
const (
	MaxDuration  = 24 * time.Hour
	MaxUsers     = 100_000    // in all
	MaxPlanned   = 20_000_000 // requests in all
	MaxRate      = 1_000_000  // requests per second in all
	maxTogether  = 10_000     // requests of one user at one instant
	maxShare     = 1000       // times the allowance
	maxKeys      = 16         // of one user
	maxAddresses = 10_000     // of one population

	maxThresholds = 100
)

// Scenario is a scenario file.
type Scenario struct {
	Duration    time.Duration `yaml:"duration"`
	Seed        int64         `yaml:"seed,omitempty"`
	MaxRate     int64         `yaml:"max-rate,omitempty"` // requests in any second, of all together; 0: not given
	Populations []Population  `yaml:"populations"`

	Thresholds []threshold.Threshold `yaml:"thresholds,omitempty"`

	doc    *strictyaml.Document
	folder string // that paths are relative to
}

// Population is a number of users who behave alike.
type Population struct {
	Plan      string  `yaml:"plan"`
	Users     int64   `yaml:"users"`
	Keys      int64   `yaml:"keys,omitempty"`      // of each user, used in turn; 0: not given, so one
	Addresses int64   `yaml:"addresses,omitempty"` // client addresses that the users share; 0: not given, so this machine's own
	Arrival   Arrival `yaml:"arrival"`
	Rate      Rate    `yaml:"rate,omitempty"`   // where the arrival has none of its own
	Spread    Spread  `yaml:"spread,omitempty"` // of the rate over the users
	Mix       *Mix    `yaml:"mix,omitempty"`    // nil: valid operations alone
	On429     On429   `yaml:"on-429"`
}

// Read reads and checks a scenario file. Logs that it names are beside it.
func Read(path string) (Scenario, error) {
	s := Scenario{folder: filepath.Dir(path)}
	doc, err := strictyaml.Read(path, &s)
	return s.checked(doc, err)
}

// Parse is [Read] for a file in memory; name is what errors call it.
func Parse(name string, data []byte) (Scenario, error) {
	s := Scenario{folder: filepath.Dir(name)}
	doc, err := strictyaml.Parse(name, data, &s)
	return s.checked(doc, err)
}

func (s Scenario) checked(doc *strictyaml.Document, err error) (Scenario, error) {
	if err != nil {
		return Scenario{}, err
	}
	s.doc = doc
	if s.Duration < time.Second || s.Duration > MaxDuration {
		return Scenario{}, doc.Refuse("duration", s.Duration.String()+" is out of range", "1s to 24h")
	}
	if err := s.within(s.MaxRate, "max-rate", MaxRate, "requests per second"); err != nil {
		return Scenario{}, err
	}
	if len(s.Populations) == 0 {
		return Scenario{}, doc.Refuse("populations", "nobody is listed", "at least one population")
	}
	users := int64(0)
	for i, p := range s.Populations {
		if p.Users < 1 || p.Users > MaxUsers-users {
			return Scenario{}, s.refuse(i, "users", fmt.Sprintf("%d is out of range", p.Users), fmt.Sprintf("1 to %d in all", MaxUsers))
		}
		users += p.Users
		if err := s.sensible(i, p); err != nil {
			return Scenario{}, err
		}
	}
	if err := s.thresholdsMakeSense(); err != nil {
		return Scenario{}, err
	}
	return s, nil
}

func (s Scenario) thresholdsMakeSense() error {
	if len(s.Thresholds) > maxThresholds {
		return s.Refuse("thresholds", fmt.Sprintf("%d are listed", len(s.Thresholds)), fmt.Sprintf("at most %d", maxThresholds))
	}
	plans, _ := s.Plans()
	for i, t := range s.Thresholds {
		key := fmt.Sprintf("thresholds[%d]", i)
		if t.Plan() != "" && !slices.Contains(plans, t.Plan()) {
			return s.Refuse(key, fmt.Sprintf("no population is on plan %q", t.Plan()), list(plans)+", or no plan for all of them")
		}
		if slices.Contains(s.Thresholds[:i], t) {
			return s.Refuse(key, fmt.Sprintf("%q is given twice", t), "each threshold once")
		}
	}
	return nil
}

// sensible finds what makes no sense in a population.
func (s Scenario) sensible(i int, p Population) error {
	key := func(name string) string { return fmt.Sprintf("populations[%d].%s", i, name) }
	if err := s.within(p.Keys, key("keys"), maxKeys, "keys of each user"); err != nil {
		return err
	}
	if err := s.within(p.Addresses, key("addresses"), min(p.Users, maxAddresses), "client addresses, not more than users"); err != nil {
		return err
	}
	for _, f := range []func(at, Population) error{arrivalMakesSense, spreadMakesSense, mixMakesSense, on429MakesSense} {
		if err := f(at{s, i}, p); err != nil {
			return err
		}
	}
	return nil
}

// at is a population of a scenario, for errors about it.
type at struct {
	scenario   Scenario
	population int
}

func (a at) has(key string) bool {
	return a.scenario.doc.Has(fmt.Sprintf("populations[%d].%s", a.population, key))
}

func (a at) refuse(key, problem, accepted string) error {
	return a.scenario.refuse(a.population, key, problem, accepted)
}

// within checks a number that may be left out.
func (s Scenario) within(n int64, key string, most int64, what string) error {
	if s.doc.Has(key) && (n < 1 || n > most) {
		return s.doc.Refuse(key, fmt.Sprintf("%d is out of range", n), fmt.Sprintf("1 to %d %s", most, what))
	}
	return nil
}

// Plans are the plans of the scenario in its order, each once, with the users it
// takes.
func (s Scenario) Plans() (names []string, users map[string]int64) {
	users = map[string]int64{}
	for _, p := range s.Populations {
		if users[p.Plan] == 0 {
			names = append(names, p.Plan)
		}
		users[p.Plan] += p.Users
	}
	return names, users
}

// Refuse is an error about a key of the scenario, with its place.
func (s Scenario) Refuse(key, problem, accepted string) error {
	return s.doc.Refuse(key, problem, accepted)
}

// refuse is an error about a population.
func (s Scenario) refuse(population int, key, problem, accepted string) error {
	return s.doc.Refuse(fmt.Sprintf("populations[%d].%s", population, key), problem, accepted)
}

func list(names []string) string { return strings.Join(names, ", ") }
