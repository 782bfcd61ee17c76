// Package merge joins the shards of one load run: what several machines sent by
// one plan becomes the record that one machine would have left. Counters are
// added, histograms merged value by value, seconds counted from the common start;
// no figure is an average of others.
//
// Most callers [Read] run folders and join them with [Runs]. Only what belongs
// together is joined: shards of one traffic against one target by one version,
// cut into as many, from one start. Of several tries at a shard the latest counts.
// What is missing is said in the record, and the whole then tells nothing.
package merge

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/invoicespec/brimline/loadgen/threshold"
	"github.com/invoicespec/brimline/reports/record"
)

// Part is a shard's record and the folder that it is from.
type Part struct {
	Folder string
	Run    record.Run
}

// Runs is the run that the parts are shards of.
func Runs(parts []Part) (record.Run, error) {
	parts, replaced, err := latest(parts)
	if err != nil {
		return record.Run{}, err
	}
	first := parts[0].Run
	r := record.Run{
		Schema: first.Schema, Brimline: first.Brimline, Started: first.Started,
		PlannedMS: first.PlannedMS, Scenario: first.Scenario, Target: first.Target,
		Users: []record.RunUser{}, Merged: assembled(parts, replaced),
	}
	for _, p := range parts {
		r.ActualMS = max(r.ActualMS, p.Run.ActualMS)
		r.Interrupted = r.Interrupted || p.Run.Interrupted
		if p.Run.Ended != "" {
			r.Ended = fmt.Sprintf("shard %d: %s", p.Run.Shard.Index, p.Run.Ended)
		}
		r.Users = append(r.Users, p.Run.Users...)
	}
	slices.SortFunc(r.Users, asCast)
	if r.Plans, err = plans(parts); err != nil {
		return record.Run{}, err
	}
	if r.Generator, err = generator(parts); err != nil {
		return record.Run{}, err
	}
	r.Limits, r.Untold = limits(parts, r.Merged), untold(r)
	if r.Thresholds, err = thresholds(first, r); err != nil {
		return record.Run{}, err
	}
	return r, r.Check()
}

// latest is the latest try at each shard, by index, and what was replaced. It
// refuses parts that are not of one run.
func latest(parts []Part) ([]Part, []record.RunReplaced, error) {
	if len(parts) == 0 {
		return nil, nil, errors.New("no run to merge")
	}
	for _, p := range parts {
		if p.Run.Shard == nil {
			return nil, nil, fmt.Errorf("%s: not a shard: it was made without --shard", p.Folder)
		}
		if what := differs(parts[0].Run, p.Run); what != "" {
			return nil, nil, fmt.Errorf("%s and %s are not of one run: another %s", parts[0].Folder, p.Folder, what)
		}
	}
	parts = slices.SortedStableFunc(slices.Values(parts), func(a, b Part) int {
		s, o := a.Run.Shard, b.Run.Shard
		return cmp.Or(cmp.Compare(s.Index, o.Index), s.Attempt.Compare(o.Attempt))
	})
	kept, replaced, whose := []Part{}, []record.RunReplaced{}, map[string]string{}
	for i, p := range parts {
		s := p.Run.Shard
		if i+1 < len(parts) && parts[i+1].Run.Shard.Index == s.Index {
			if parts[i+1].Run.Shard.Attempt.Equal(s.Attempt) {
				return nil, nil, fmt.Errorf("%s and %s are the same try at shard %d", p.Folder, parts[i+1].Folder, s.Index)
			}
			replaced = append(replaced, record.RunReplaced{Index: s.Index, Attempt: s.Attempt, Sent: p.Run.Generator.Results})
			continue
		}
		for _, u := range p.Run.Users {
			if other, twice := whose[u.User]; twice {
				return nil, nil, fmt.Errorf("%s: user %s is in %s as well", p.Folder, u.User, other)
			}
			whose[u.User] = p.Folder
		}
		kept = append(kept, p)
	}
	return kept, replaced, nil
}

// differs says what two shards of one run cannot differ in; empty: nothing.
func differs(a, b record.Run) string {
	switch {
	case a.Schema != b.Schema, a.Brimline != b.Brimline:
		return fmt.Sprintf("version of brimline, %s and %s", a.Brimline, b.Brimline)
	case a.Scenario.Seed != b.Scenario.Seed:
		return fmt.Sprintf("seed, %d and %d", a.Scenario.Seed, b.Scenario.Seed)
	case !reflect.DeepEqual(a.Scenario, b.Scenario), a.PlannedMS != b.PlannedMS:
		return "scenario"
	case !reflect.DeepEqual(a.Target, b.Target):
		return "target"
	case !slices.Equal(asked(a), asked(b)):
		return "list of thresholds"
	case a.Shard.Of != b.Shard.Of:
		return fmt.Sprintf("number of shards, %d and %d", a.Shard.Of, b.Shard.Of)
	case !a.Shard.Start.Equal(b.Shard.Start):
		return fmt.Sprintf("start, %s and %s", a.Shard.Start, b.Shard.Start)
	case a.Shard.Traffic != b.Shard.Traffic:
		return "traffic, though the scenarios read alike: a file that they name, or the target's allowances"
	}
	return ""
}

// assembled says what the run is put together from.
func assembled(parts []Part, replaced []record.RunReplaced) *record.RunMerged {
	s := parts[0].Run.Shard
	m := &record.RunMerged{Of: s.Of, Start: s.Start, Traffic: s.Traffic, Missing: []int64{}, Replaced: replaced}
	there := map[int64]bool{}
	for _, p := range parts {
		r := p.Run
		there[r.Shard.Index] = true
		m.Parts = append(m.Parts, record.RunPart{
			Index: r.Shard.Index, Attempt: r.Shard.Attempt, Clock: r.Shard.Clock, Users: int64(len(r.Users)),
			ActualMS: r.ActualMS, Interrupted: r.Interrupted, Generator: r.Generator, Limits: r.Limits, Untold: r.Untold,
		})
	}
	for i := range m.Of {
		if !there[i] {
			m.Missing = append(m.Missing, i)
		}
	}
	return m
}

// thresholds are those of the shards, held against the whole.
func thresholds(shard, whole record.Run) ([]record.RunThreshold, error) {
	var list []threshold.Threshold
	for _, was := range shard.Thresholds {
		t, err := threshold.Parse(was.Threshold)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	return threshold.Evaluate(list, whole)
}

// asked are the texts of a run's thresholds.
func asked(r record.Run) (list []string) {
	for _, t := range r.Thresholds {
		list = append(list, t.Threshold)
	}
	return list
}

// asCast is the order in which a scenario casts its members.
func asCast(a, b record.RunUser) int {
	return cmp.Or(cmp.Compare(a.Population, b.Population), cmp.Compare(len(a.User), len(b.User)), cmp.Compare(a.User, b.User))
}
