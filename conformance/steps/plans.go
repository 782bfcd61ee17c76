package steps

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/invoicespec/brimline/conformance/oracle"
)

// plan is a plan of the target.
type plan struct {
	name string
	oracle.Allowance
}

// plans lists the target's plans, in order of burst, then rate, then name.
func (s *Scenario) plans() []plan {
	var all []plan
	for _, name := range s.Plans() {
		if a, ok := s.Allowance(name); ok {
			all = append(all, plan{name, a})
		}
	}
	slices.SortFunc(all, func(a, b plan) int {
		return cmp.Or(cmp.Compare(a.Burst, b.Burst), cmp.Compare(a.RequestsPerMinute, b.RequestsPerMinute), cmp.Compare(a.name, b.name))
	})
	return all
}

// toFull is how long an empty bucket takes to be full, as a number to compare.
func (p plan) toFull() float64 { return float64(p.Burst) / float64(p.RequestsPerMinute) }

// named lists the plans that a sentence speaks of: those of its outline's row,
// or the one that a description fits. A description picks a plan by what the
// scenario needs, so that it runs on any target.
func (s *Scenario) named(phrase string, named []string) ([]plan, error) {
	all := s.plans()
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: the target has users on no plan", ErrSetup)
	}
	if phrase == everyOther {
		return slices.DeleteFunc(all, func(p plan) bool { return slices.Contains(named, p.name) }), nil
	}
	word := strings.TrimSuffix(strings.TrimPrefix(phrase, "the "), " plan")
	pick := func(better func(a, b plan) int) []plan { return []plan{slices.MinFunc(all, better)} }
	switch word {
	case "smallest": // least burst
		return all[:1], nil
	case "second smallest":
		return all[min(1, len(all)-1):][:1], nil
	case "slowest":
		return pick(func(a, b plan) int { return cmp.Compare(a.RequestsPerMinute, b.RequestsPerMinute) }), nil
	case "fastest":
		return pick(func(a, b plan) int { return cmp.Compare(b.RequestsPerMinute, a.RequestsPerMinute) }), nil
	case "quickest": // soonest full
		return pick(func(a, b plan) int { return cmp.Compare(a.toFull(), b.toFull()) }), nil
	}
	i := slices.IndexFunc(all, func(p plan) bool { return p.name == word })
	if i < 0 {
		return nil, fmt.Errorf("%w: the target has no user on plan %q", ErrSetup, word)
	}
	return all[i : i+1], nil
}

// roomy is the plan for a scenario that needs so many tokens: one whose burst
// has them, refills soon (a user may have been used before) and has a small cap
// (filling it costs as many operations). Where none has them, the largest burst
// has to do.
func (s *Scenario) roomy(need func(plan) int64) (plan, error) {
	all := s.plans()
	if len(all) == 0 {
		return plan{}, fmt.Errorf("%w: the target has users on no plan", ErrSetup)
	}
	enough := slices.DeleteFunc(slices.Clone(all), func(p plan) bool { return p.Burst < need(p) })
	if len(enough) == 0 {
		return all[len(all)-1], nil
	}
	price := func(p plan) float64 {
		return 60*float64(need(p))/float64(p.RequestsPerMinute) + float64(p.Concurrency)
	}
	return slices.MinFunc(enough, func(a, b plan) int { return cmp.Compare(price(a), price(b)) }), nil
}

// neighbour is the plan whose burst is the next larger or smaller one.
func (s *Scenario) neighbour(u *subject, direction string) (plan, error) {
	all := s.plans()
	burst := u.Bucket.Allowance().Burst
	if direction == "smaller" {
		slices.Reverse(all)
	}
	for _, p := range all {
		if direction == "larger" && p.Burst > burst || direction == "smaller" && p.Burst < burst {
			return p, nil
		}
	}
	return plan{}, fmt.Errorf("%w: no plan of the target has a %s burst than %s's %d", ErrSetup, direction, u.Plan, burst)
}

// leaseAll leases a user on each plan that phrase speaks of.
func (s *Scenario) leaseAll(ctx context.Context, phrase string, keys int) error {
	plans, err := s.named(phrase, s.rows)
	if err != nil {
		return err
	}
	for _, p := range plans {
		u, err := s.lease(ctx, p.name, keys)
		if err != nil {
			return err
		}
		s.they = append(s.they, u)
	}
	return nil
}

// everyOther is the row of an outline that stands for the plans which no other
// row names.
const everyOther = "every other plan"
