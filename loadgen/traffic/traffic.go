// Package traffic is who asks: a scenario file's populations, the users they are
// made of, how often each asks and what they do when they meet a 429.
//
// Most callers [Read] a scenario, let it [Scenario.Cast] its members for the
// allowances of a target, and [Recruit] a user of the target for each of them.
package traffic

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/invoicespec/brimline/internal/strictyaml"
	"github.com/invoicespec/brimline/loadgen/arrival"
	"github.com/invoicespec/brimline/loadgen/threshold"
)

// Bounds of a scenario.
const (
	MaxDuration = 24 * time.Hour
	MaxUsers    = 100_000    // in all
	MaxPlanned  = 20_000_000 // requests in all
	maxTogether = 10_000     // requests of one user at one instant
	maxShare    = 1000       // times the allowance

	maxThresholds = 100
)

// Scenario is a scenario file.
type Scenario struct {
	Duration    time.Duration `yaml:"duration"`
	Seed        int64         `yaml:"seed,omitempty"`
	Populations []Population  `yaml:"populations"`

	Thresholds []threshold.Threshold `yaml:"thresholds,omitempty"`

	doc *strictyaml.Document
}

// Population is a number of users who behave alike.
type Population struct {
	Plan    string  `yaml:"plan"`
	Users   int64   `yaml:"users"`
	Arrival Arrival `yaml:"arrival"`
	Rate    Rate    `yaml:"rate,omitempty"` // not with bursts, which have their own
	On429   On429   `yaml:"on-429"`
}

// Arrival is how a user's requests follow each other: a word, or bursts.
type Arrival struct {
	Word   string        // constant or poisson; empty: bursts
	Bursts int64         `yaml:"bursts"`
	Every  time.Duration `yaml:"every"`
}

// The words of [Arrival].
const (
	Constant = "constant"
	Poisson  = "poisson"
)

// UnmarshalText reads a word.
func (a *Arrival) UnmarshalText(text []byte) error {
	if a.Word = string(text); a.Word != Constant && a.Word != Poisson {
		return fmt.Errorf("%.12q is no arrival; accepted: %s, %s, {bursts: 40, every: 10s}", a.Word, Constant, Poisson)
	}
	return nil
}

func (a Arrival) String() string {
	if a.Word != "" {
		return a.Word
	}
	return fmt.Sprintf("bursts of %d every %v", a.Bursts, a.Every)
}

// Rate is how often one user asks: requests per minute, or a share of what the
// plan allows. The zero value is a rate that was not given.
type Rate struct {
	text    string
	number  int64 // thousandths
	ofShare bool
}

const thousandth = 1000

var rateText = regexp.MustCompile(`^([0-9]{1,7})(?:\.([0-9]{1,3}))?(x?)$`)

// UnmarshalText reads "90" or "1.2x".
func (r *Rate) UnmarshalText(text []byte) error {
	parts := rateText.FindStringSubmatch(string(text))
	if parts == nil {
		return fmt.Errorf("%.12q is no rate; accepted: 90 or 12.5 per minute, or a share as 1.2x", text)
	}
	n, _ := strconv.ParseInt(parts[1]+(parts[2] + "000")[:3], 10, 64) // at most ten digits
	*r = Rate{text: string(text), number: n, ofShare: parts[3] != ""}
	switch {
	case n == 0:
		return errors.New("a rate of 0 is no load; accepted: more than 0")
	case r.ofShare && n > maxShare*thousandth:
		return fmt.Errorf("%s is more than %dx", text, maxShare)
	case n > arrival.MaxRate*thousandth:
		return fmt.Errorf("%s is more than %d requests per minute", text, arrival.MaxRate)
	}
	return nil
}

// String is the rate as it was written.
func (r Rate) String() string { return r.text }

// of is the rate for an allowance of so many requests per minute.
func (r Rate) of(perMinute int64) (arrival.Rate, error) {
	if r.ofShare {
		return arrival.NewRate(r.number*perMinute, thousandth)
	}
	return arrival.NewRate(r.number, thousandth)
}

// On429 is what a user does who meets a 429.
type On429 string

// The ways.
const (
	Ignore On429 = "ignore"           // asks on as if nothing had been
	Obey   On429 = "obey-retry-after" // does not ask until the time that the answer names
)

// UnmarshalText reads one.
func (o *On429) UnmarshalText(text []byte) error {
	if *o = On429(text); *o != Ignore && *o != Obey {
		return fmt.Errorf("%.12q is not known; accepted: %s, %s", text, Ignore, Obey)
	}
	return nil
}

// Read reads and checks a scenario file.
func Read(path string) (Scenario, error) {
	var s Scenario
	doc, err := strictyaml.Read(path, &s)
	return s.checked(doc, err)
}

// Parse is [Read] for a file in memory; name is what errors call it.
func Parse(name string, data []byte) (Scenario, error) {
	var s Scenario
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
	if len(s.Populations) == 0 {
		return Scenario{}, doc.Refuse("populations", "nobody is listed", "at least one population")
	}
	users := int64(0)
	for i, p := range s.Populations {
		key := func(name string) string { return fmt.Sprintf("populations[%d].%s", i, name) }
		if p.Users < 1 || p.Users > MaxUsers-users {
			return Scenario{}, doc.Refuse(key("users"), fmt.Sprintf("%d is out of range", p.Users), fmt.Sprintf("1 to %d in all", MaxUsers))
		}
		users += p.Users
		if a := p.Arrival; a.Word == "" {
			switch {
			case a.Bursts < 1 || a.Bursts > maxTogether:
				return Scenario{}, doc.Refuse(key("arrival.bursts"), fmt.Sprintf("%d is out of range", a.Bursts), fmt.Sprintf("1 to %d requests", maxTogether))
			case a.Every < 10*time.Millisecond || a.Every > MaxDuration:
				return Scenario{}, doc.Refuse(key("arrival.every"), a.Every.String()+" is out of range", "10ms to 24h")
			case p.Rate != (Rate{}):
				return Scenario{}, doc.Refuse(key("rate"), "bursts carry their own rate", "no rate, or another arrival")
			}
		} else if p.Rate == (Rate{}) {
			return Scenario{}, doc.Refuse(key("rate"), "missing", "requests per minute such as 90, or a share of the allowance such as 1.2x")
		}
	}
	if len(s.Thresholds) > maxThresholds {
		return Scenario{}, doc.Refuse("thresholds", fmt.Sprintf("%d are listed", len(s.Thresholds)), fmt.Sprintf("at most %d", maxThresholds))
	}
	plans, _ := s.Plans()
	for i, t := range s.Thresholds {
		key := fmt.Sprintf("thresholds[%d]", i)
		if t.Plan() != "" && !slices.Contains(plans, t.Plan()) {
			return Scenario{}, doc.Refuse(key, fmt.Sprintf("no population is on plan %q", t.Plan()), list(plans)+", or no plan for all of them")
		}
		if slices.Contains(s.Thresholds[:i], t) {
			return Scenario{}, doc.Refuse(key, fmt.Sprintf("%q is given twice", t), "each threshold once")
		}
	}
	return s, nil
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

// refuse is an error about a population.
func (s Scenario) refuse(population int, key, problem, accepted string) error {
	return s.doc.Refuse(fmt.Sprintf("populations[%d].%s", population, key), problem, accepted)
}

func list(names []string) string { return strings.Join(names, ", ") }
