package traffic

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/loadgen/arrival"
	"github.com/invoicespec/brimline/loadgen/dice"
	"github.com/invoicespec/brimline/loadgen/manners"
)

// Member is one user of a scenario.
type Member struct {
	Name       string // such as free-003
	Plan       string
	Population int // place in the scenario
	Allowance  oracle.Allowance
	Process    arrival.Process
	On429      manners.Manners
	Mix        *Mix  // nil: valid operations alone
	Planned    int64 // requests in the whole run
	Wants      Wants

	// Given by [Recruit].
	Keys   []target.Secret
	From   *target.Sender // nil: this machine, as it is
	Rested bool           // the bucket is known to be full

	dice dice.Dice // of operations
}

// Wants is what a member needs of a target beside a user.
type Wants struct {
	Keys    int64 // at least one
	Address int64 // number of the client address among those of the population, from 1; 0: any
}

// Operation is what a member's request of a number asks for.
func (m *Member) Operation(number int64) Operation {
	if m.Mix == nil {
		return Valid
	}
	return m.Mix.at(m.dice.At(number))
}

// Key is the key that a member's request of a number is sent with: each in turn.
func (m *Member) Key(number int64) target.Secret {
	if len(m.Keys) == 0 {
		return target.Secret{}
	}
	return m.Keys[number%int64(len(m.Keys))]
}

// Cast makes the scenario's members for plans with these allowances. Nobody's
// name depends on how many others there are behind them, nor, as long as the
// population's rate is the same for all, does anybody's schedule.
func (s Scenario) Cast(allowances map[string]target.Allowance) ([]Member, error) {
	_, perPlan := s.Plans()
	total := int64(0)
	for _, n := range perPlan {
		total += n
	}
	members := make([]Member, 0, total)
	numbers := map[string]int{} // members by plan
	expected := 0.0
	for i, p := range s.Populations {
		a, ok := allowances[p.Plan]
		if !ok {
			return nil, s.refuse(i, "plan", fmt.Sprintf("the target has no allowance for plan %q", p.Plan), list(slices.Sorted(maps.Keys(allowances))))
		}
		names := make([]string, p.Users)
		for k := range names {
			numbers[p.Plan]++
			names[k] = fmt.Sprintf("%s-%03d", p.Plan, numbers[p.Plan])
		}
		processes, err := s.processes(at{s, i}, p, names, a.RequestsPerMinute)
		if err != nil {
			return nil, err
		}
		for _, process := range processes {
			expected += process.Expected(s.Duration)
		}
		if expected > MaxPlanned {
			return nil, s.refuse(i, "users", fmt.Sprintf("with this population about %.0f requests are planned", expected), fmt.Sprintf("at most %d in all", MaxPlanned))
		}
		reaction := p.On429.Manners()
		for k, name := range names {
			m := Member{
				Name: name, Plan: p.Plan, Population: i, Allowance: oracle.Allowance(a),
				Process: processes[k], On429: reaction, Mix: p.Mix, Wants: Wants{Keys: max(1, p.Keys)},
			}
			if p.Mix != nil {
				m.dice = dice.New(s.Seed, "operation", name)
			}
			if p.Addresses > 0 {
				m.Wants.Address = 1 + int64(k)%p.Addresses
			}
			m.Planned = m.Process.Count(s.Seed, name, s.Duration)
			members = append(members, m)
		}
	}
	return members, nil
}

// whole is how fine shares of a curve are: its rate is so many units.
const whole = 1_000_000

// processes are those of a population's users for an allowance of so many
// requests per minute.
func (s Scenario) processes(here at, p Population, names []string, perMinute int64) ([]arrival.Process, error) {
	all := make([]arrival.Process, len(names))
	curve, err := p.curve(perMinute, s.Duration)
	switch a := p.Arrival; {
	case err != nil:
		return nil, here.refuse("arrival", fmt.Sprintf("with an allowance of %d requests per minute: %v", perMinute, err), "lower rates")
	case a.Replay != "":
		return s.replayed(here, p, names)
	case a.Bursts > 0:
		for i := range all {
			all[i] = arrival.Bursts(a.Bursts, a.Every)
		}
	case curve != nil:
		for i, share := range p.Spread.shares(whole*int64(len(names)), s.Seed, names) {
			if all[i] = curve.Evenly(float64(share) / whole); a.Process == Poisson {
				all[i] = curve.AtRandom(float64(share) / whole)
			}
			if all[i].Peak() > arrival.MaxRate {
				return nil, here.tooMuch(p, perMinute, fmt.Errorf("%.0f requests per minute are more than %d", all[i].Peak(), arrival.MaxRate))
			}
		}
	default:
		rates, err := p.rates(perMinute, s.Seed, names)
		if err != nil {
			return nil, here.tooMuch(p, perMinute, err)
		}
		for i, r := range rates {
			if all[i] = arrival.Constant(r); a.Word == string(Poisson) {
				all[i] = arrival.Poisson(r)
			}
		}
	}
	return all, nil
}

// tooMuch says that a user would ask too often: by the spread, if there is one.
func (a at) tooMuch(p Population, perMinute int64, err error) error {
	if !p.Spread.even() {
		return a.refuse("spread", fmt.Sprintf("the busiest user: %v", err), "a narrower spread")
	}
	return a.refuse("rate", fmt.Sprintf("%s of %d requests per minute: %v", p.Rate, perMinute, err), "a lower rate")
}

// rates are those of a population's users, exactly: together they are as many
// times the population's rate as there are users.
func (p Population) rates(perMinute, seed int64, names []string) ([]arrival.Rate, error) {
	mean, err := p.Rate.of(perMinute)
	rates := make([]arrival.Rate, len(names))
	if err != nil || p.Spread.even() {
		for i := range rates {
			rates[i] = mean
		}
		return rates, err
	}
	units := p.Rate.number // thousandths
	if p.Rate.ofShare {
		units *= perMinute
	}
	const fine = 1000 // of a thousandth
	for i, share := range p.Spread.shares(units*fine*int64(len(names)), seed, names) {
		if rates[i], err = arrival.NewRate(share, fine*thousandth); err != nil {
			return nil, err
		}
	}
	return rates, nil
}

// Planned is how many requests members are to send.
func Planned(members []Member) int64 {
	n := int64(0)
	for _, m := range members {
		n += m.Planned
	}
	return n
}

// MostCharged is how many operations a target can charge at most, if it keeps
// its own limits.
func MostCharged(members []Member, d time.Duration) int64 {
	n := int64(0)
	for _, m := range members {
		n += m.MostCharged(d)
	}
	return n
}

// MostCharged is how many of the member's operations can be charged.
func (m *Member) MostCharged(d time.Duration) int64 {
	if m.Mix.Share(Unauthenticated) == 1 {
		return 0
	}
	refill := int64(float64(m.Allowance.RequestsPerMinute)*d.Minutes()) + 1
	return min(m.Planned, m.Allowance.Burst+refill)
}
