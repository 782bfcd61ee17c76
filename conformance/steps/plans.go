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

// toFull is how long an empty bucket takes to be full, as a number to compare.
func (p plan) toFull() float64 { return float64(p.Burst) / float64(p.RequestsPerMinute) }

// catalogue is the plans of a target that there are users on, by burst, then
// rate, then name. A scenario picks from it by what it needs, so that it runs on
// any target.
type catalogue []plan

func (s *Scenario) plans() (catalogue, error) {
	var all catalogue
	for _, name := range s.Plans() {
		if a, ok := s.Allowance(name); ok {
			all = append(all, plan{name, a})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: the target has users on no plan", ErrSetup)
	}
	slices.SortFunc(all, func(a, b plan) int {
		return cmp.Or(cmp.Compare(a.Burst, b.Burst), cmp.Compare(a.RequestsPerMinute, b.RequestsPerMinute), cmp.Compare(a.name, b.name))
	})
	return all, nil
}

// everyOther is the row of an outline that stands for the plans which no other
// row names.
const everyOther = "every other plan"

// named lists the plans that a sentence speaks of: the one that a row names or a
// description fits, or those that none of the rows names.
func (c catalogue) named(phrase string, rows []string) ([]plan, error) {
	if phrase == everyOther {
		return slices.DeleteFunc(slices.Clone(c), func(p plan) bool { return slices.Contains(rows, p.name) }), nil
	}
	word := strings.TrimSuffix(strings.TrimPrefix(phrase, "the "), " plan")
	best := func(better func(a, b plan) int) []plan { return []plan{slices.MinFunc(c, better)} }
	switch word {
	case "smallest": // least burst
		return c[:1], nil
	case "second smallest":
		return c[min(1, len(c)-1):][:1], nil
	case "slowest":
		return best(func(a, b plan) int { return cmp.Compare(a.RequestsPerMinute, b.RequestsPerMinute) }), nil
	case "fastest":
		return best(func(a, b plan) int { return cmp.Compare(b.RequestsPerMinute, a.RequestsPerMinute) }), nil
	case "quickest": // soonest full
		return best(func(a, b plan) int { return cmp.Compare(a.toFull(), b.toFull()) }), nil
	}
	i := slices.IndexFunc(c, func(p plan) bool { return p.name == word })
	if i < 0 {
		return nil, fmt.Errorf("%w: the target has no user on plan %q", ErrSetup, word)
	}
	return c[i : i+1], nil
}

// roomy is the plan for a scenario that needs so many tokens: one whose burst
// has them, refills soon (a user may have been used before) and has a small cap
// (filling it costs as many operations). Where none has them, the largest burst
// has to do.
func (c catalogue) roomy(need func(plan) int64) plan {
	enough := slices.DeleteFunc(slices.Clone(c), func(p plan) bool { return p.Burst < need(p) })
	if len(enough) == 0 {
		return c[len(c)-1]
	}
	price := func(p plan) float64 {
		return 60*float64(need(p))/float64(p.RequestsPerMinute) + float64(p.Concurrency)
	}
	return slices.MinFunc(enough, func(a, b plan) int { return cmp.Compare(price(a), price(b)) })
}

// neighbour is the plan whose burst is the next larger or smaller one.
func (c catalogue) neighbour(burst int64, direction string) (plan, error) {
	if direction == "larger" {
		if i := slices.IndexFunc(c, func(p plan) bool { return p.Burst > burst }); i >= 0 {
			return c[i], nil
		}
	}
	for _, p := range slices.Backward(c) {
		if direction == "smaller" && p.Burst < burst {
			return p, nil
		}
	}
	return plan{}, fmt.Errorf("%w: no plan of the target has a %s burst than %d", ErrSetup, direction, burst)
}

// leaseAll leases a user on each plan that phrase speaks of.
func (s *Scenario) leaseAll(ctx context.Context, phrase string, keys int) error {
	all, err := s.plans()
	if err != nil {
		return err
	}
	plans, err := all.named(phrase, s.rows)
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
