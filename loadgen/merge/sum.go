package merge

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/invoicespec/brimline/reports/record"
)

// plans are those of all parts, in the scenario's order.
func plans(parts []Part) ([]record.RunPlan, error) {
	var list []record.RunPlan
	for _, population := range parts[0].Run.Scenario.Populations {
		if slices.ContainsFunc(list, func(p record.RunPlan) bool { return p.Plan == population.Plan }) {
			continue
		}
		sum := record.RunPlan{Plan: population.Plan, Latency: []record.RunLatency{}}
		sum.OtherStatuses, sum.TransportErrors = []record.Count{}, []record.Count{}
		if err := add(&sum, record.RunPlan{Plan: population.Plan}); err != nil { // lists, also where no part has the plan
			return nil, err
		}
		for _, part := range parts {
			for _, p := range part.Run.Plans {
				if p.Plan != sum.Plan {
					continue
				}
				if err := add(&sum, p); err != nil {
					return nil, fmt.Errorf("%s: plan %s: %w", part.Folder, p.Plan, err)
				}
			}
		}
		list = append(list, sum)
	}
	return list, nil
}

// generator is what all load sides were together. How late they began and their
// longest pause do not add up: the largest counts.
func generator(parts []Part) (record.Generator, error) {
	sum := record.Generator{Transport: parts[0].Run.Generator.Transport}
	latest, longest := int64(0), 0.0
	for _, part := range parts {
		g := part.Run.Generator
		latest, longest = max(latest, g.StartLateUS), max(longest, g.GCPauseMaxMS)
		if err := add(&sum, g); err != nil {
			return sum, fmt.Errorf("%s: generator: %w", part.Folder, err)
		}
	}
	sum.StartLateUS, sum.GCPauseMaxMS = latest, longest
	return sum, nil
}

// add adds all figures of a value to those of another, so that no counter that a
// record is given later can be forgotten here.
func add[T any](sum *T, more T) error {
	return addValue(reflect.ValueOf(sum).Elem(), reflect.ValueOf(more))
}

func addValue(sum, more reflect.Value) error {
	switch a := sum.Addr().Interface().(type) {
	case *record.Quantiles:
		both, err := record.MergeQuantiles(*a, more.Interface().(record.Quantiles))
		*a = both
		return err
	case *record.RunSeconds:
		addSeconds(a, more.Interface().(record.RunSeconds))
		return nil
	case *[]record.RunLatency:
		return addLatencies(a, more.Interface().([]record.RunLatency))
	case *[]record.Count:
		addCounts(a, more.Interface().([]record.Count))
		return nil
	}
	switch sum.Kind() {
	case reflect.Struct:
		for i := range sum.NumField() {
			if err := addValue(sum.Field(i), more.Field(i)); err != nil {
				return fmt.Errorf("%s: %w", sum.Type().Field(i).Name, err)
			}
		}
	case reflect.Int, reflect.Int64:
		sum.SetInt(sum.Int() + more.Int())
	case reflect.Float64:
		sum.SetFloat(sum.Float() + more.Float())
	case reflect.String:
		if sum.String() != more.String() {
			return fmt.Errorf("%q and %q do not add up", sum, more)
		}
	default:
		return fmt.Errorf("a %s cannot be added", sum.Type())
	}
	return nil
}

// addSeconds adds what was counted. The largest of a second is that of all; a
// second's quantiles are not those of its parts, and are left out.
func addSeconds(sum *record.RunSeconds, more record.RunSeconds) {
	together := func(a, b []int64, of func(a, b int64) int64) []int64 {
		list := make([]int64, max(len(a), len(b)))
		copy(list, a)
		for i, n := range b {
			list[i] = of(list[i], n)
		}
		return list
	}
	plus := func(a, b int64) int64 { return a + b }
	*sum = record.RunSeconds{
		Due: together(sum.Due, more.Due, plus), Sent: together(sum.Sent, more.Sent, plus), Admitted: together(sum.Admitted, more.Admitted, plus),
		RejectedRate:        together(sum.RejectedRate, more.RejectedRate, plus),
		RejectedConcurrency: together(sum.RejectedConcurrency, more.RejectedConcurrency, plus),
		Dropped:             together(sum.Dropped, more.Dropped, plus),
		Other:               together(sum.Other, more.Other, plus), HeldOff: together(sum.HeldOff, more.HeldOff, plus),
		MaxUS: together(sum.MaxUS, more.MaxUS, func(a, b int64) int64 { return max(a, b) }),
	}
}

// addLatencies keeps the order of all outcomes.
func addLatencies(sum *[]record.RunLatency, more []record.RunLatency) error {
	for _, l := range more {
		i := slices.IndexFunc(*sum, func(s record.RunLatency) bool { return s.Outcome == l.Outcome })
		if i < 0 {
			*sum = append(*sum, l)
			continue
		}
		if err := add(&(*sum)[i], l); err != nil {
			return fmt.Errorf("latency of %s: %w", l.Outcome, err)
		}
	}
	place := func(l record.RunLatency) int { return slices.Index(record.Outcomes(), l.Outcome) }
	slices.SortStableFunc(*sum, func(a, b record.RunLatency) int { return place(a) - place(b) })
	return nil
}

func addCounts(sum *[]record.Count, more []record.Count) {
	for _, c := range more {
		i := slices.IndexFunc(*sum, func(s record.Count) bool { return s.Name == c.Name })
		if i < 0 {
			*sum = append(*sum, c)
			continue
		}
		(*sum)[i].N += c.N
	}
	slices.SortFunc(*sum, func(a, b record.Count) int { return strings.Compare(a.Name, b.Name) })
}
