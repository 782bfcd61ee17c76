package traffic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/loadgen/arrival"
)

// Member is one user of a scenario.
type Member struct {
	Name       string // such as free-003
	Plan       string
	Population int // place in the scenario
	Allowance  oracle.Allowance
	Process    arrival.Process
	Obeys      bool  // a Retry-After
	Planned    int64 // requests in the whole run

	// Given by [Recruit].
	Key    target.Secret
	Rested bool // the bucket is known to be full
}

// Cast makes the scenario's members for plans with these allowances. Nobody's
// name or schedule depends on how many others there are behind them.
func (s Scenario) Cast(allowances map[string]target.Allowance) ([]Member, error) {
	var members []Member
	numbers := map[string]int{} // members by plan
	expected := 0.0
	for i, p := range s.Populations {
		a, ok := allowances[p.Plan]
		if !ok {
			return nil, s.refuse(i, "plan", fmt.Sprintf("the target has no allowance for plan %q", p.Plan), list(slices.Sorted(maps.Keys(allowances))))
		}
		process, err := p.process(a.RequestsPerMinute)
		if err != nil {
			return nil, s.refuse(i, "rate", fmt.Sprintf("%s of %d requests per minute: %v", p.Rate, a.RequestsPerMinute, err), "a lower rate")
		}
		if expected += process.PerMinute() * s.Duration.Minutes() * float64(p.Users); expected > MaxPlanned {
			return nil, s.refuse(i, "users", fmt.Sprintf("with this population about %.0f requests are planned", expected), fmt.Sprintf("at most %d in all", MaxPlanned))
		}
		for range p.Users {
			numbers[p.Plan]++
			m := Member{
				Name: fmt.Sprintf("%s-%03d", p.Plan, numbers[p.Plan]), Plan: p.Plan, Population: i,
				Allowance: oracle.Allowance(a), Process: process, Obeys: p.On429 == Obey,
			}
			m.Planned = process.Count(s.Seed, m.Name, s.Duration)
			members = append(members, m)
		}
	}
	return members, nil
}

func (p Population) process(perMinute int64) (arrival.Process, error) {
	if p.Arrival.Word == "" {
		return arrival.Bursts(p.Arrival.Bursts, p.Arrival.Every), nil
	}
	rate, err := p.Rate.of(perMinute)
	if p.Arrival.Word == Constant {
		return arrival.Constant(rate), err
	}
	return arrival.Poisson(rate), err
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
		refill := int64(float64(m.Allowance.RequestsPerMinute)*d.Minutes()) + 1
		n += min(m.Planned, m.Allowance.Burst+refill)
	}
	return n
}

// Lender lends out users of a target; a [target.Target] does.
type Lender interface {
	Lease(ctx context.Context, plan string, keys int) (*target.User, error)
}

// Shortage is a target that lends too few users.
type Shortage struct {
	Plans []PlanShortage
	Err   error // why the first one was not lent
}

// PlanShortage is what one plan lacks.
type PlanShortage struct {
	Plan          string
	Needed, There int64
}

func (s *Shortage) Error() string {
	var parts []string
	for _, p := range s.Plans {
		parts = append(parts, fmt.Sprintf("%d users on plan %s are needed, the target lends %d", p.Needed, p.Plan, p.There))
	}
	return strings.Join(parts, "; ") + ": list more in its keys file, or let it offer control, which makes them"
}

func (s *Shortage) Unwrap() error { return s.Err }

// Recruit gives every member a user of the target. Where the target has too few,
// the error is a [*Shortage] that counts them for every plan.
func Recruit(ctx context.Context, from Lender, members []Member) error {
	short := &Shortage{}
	place := map[string]int{} // of a plan among those that are short, from 1
	there := map[string]int64{}
	for i := range members {
		m := &members[i]
		if at := place[m.Plan]; at > 0 {
			short.Plans[at-1].Needed++
			continue
		}
		u, err := from.Lease(ctx, m.Plan, 1)
		switch {
		case errors.Is(err, target.ErrNoUser):
			short.Plans = append(short.Plans, PlanShortage{Plan: m.Plan, Needed: there[m.Plan] + 1, There: there[m.Plan]})
			place[m.Plan] = len(short.Plans)
			if short.Err == nil {
				short.Err = err
			}
			continue
		case err != nil:
			return fmt.Errorf("a user on plan %s: %w", m.Plan, err)
		}
		there[m.Plan]++
		full, _ := u.Bucket.Level()
		m.Key, m.Rested = u.Secret(0), full >= m.Allowance.Burst*oracle.Token
	}
	if len(short.Plans) > 0 {
		return short
	}
	return nil
}
