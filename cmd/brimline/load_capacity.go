package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/internal/build"
	"github.com/invoicespec/brimline/loadgen/attack"
	"github.com/invoicespec/brimline/loadgen/capacity"
	"github.com/invoicespec/brimline/loadgen/forecast"
	"github.com/invoicespec/brimline/loadgen/threshold"
	"github.com/invoicespec/brimline/loadgen/traffic"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

// What a search does if it is not told: its loads end where users ask for four
// fifths of what they may, and there are so many.
const (
	usualShare = 0.8
	usualSteps = 20
	warming    = 2 * time.Second // at the first load, before it counts
)

// capacityFlags say how to look for a target's capacity.
type capacityFlags struct {
	find         bool
	slo          []string
	from, to, by float64
	hold         time.Duration
	beyond       count
}

func (f *capacityFlags) add(c *cobra.Command) {
	f.beyond.most = capacity.MostSteps
	flags := c.Flags()
	flags.BoolVar(&f.find, "find-capacity", false, "raise the scenario's rates in steps until --slo is broken, and leave DIR/capacity.json")
	flags.StringArrayVar(&f.slo, "slo", nil, "what a step has to hold, a `THRESHOLD` such as 'admitted.latency.p99 < 250ms'; may be given again (default: the scenario's thresholds)")
	flags.Float64Var(&f.from, "from", 0, "first load, in `REQUESTS` per second of all users (default: one step)")
	flags.Float64Var(&f.to, "to", 0, "last load, in `REQUESTS` per second (default: 0.8 of what the users may ask for)")
	flags.Float64Var(&f.by, "step", 0, "`REQUESTS` per second from one load to the next (default: a twentieth of the last)")
	flags.DurationVar(&f.hold, "hold", 10*time.Second, "how long each load is held, 2s to 10m")
	flags.Var(&f.beyond, "beyond", "steps to go on for once the SLO is broken, to see where goodput flattens")
}

// given refuses what does not go together.
func (f capacityFlags) given(c *cobra.Command) error {
	if !f.find {
		for _, name := range []string{"slo", "from", "to", "step", "hold", "beyond"} {
			if c.Flags().Changed(name) {
				return fmt.Errorf("--%s goes with --find-capacity", name)
			}
		}
		return nil
	}
	for _, name := range []string{"shard", "start-at", "abort-on-breach", "rows", "vegeta", "metrics", "dry-run"} {
		if err := exclusive(c, "find-capacity", name); err != nil {
			return err
		}
	}
	if f.hold < 2*time.Second || f.hold > 10*time.Minute {
		return fmt.Errorf("--hold: %v is out of range; accepted: 2s to 10m", f.hold)
	}
	return nil
}

// asked is what a step has to hold.
func (f capacityFlags) asked(s traffic.Scenario) ([]threshold.Threshold, error) {
	if len(f.slo) == 0 && len(s.Thresholds) == 0 {
		return nil, errors.New("--find-capacity needs --slo THRESHOLD, such as 'admitted.latency.p99 < 250ms', or thresholds in the scenario")
	}
	list := s.Thresholds
	for i, text := range f.slo {
		t, err := threshold.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("--slo: %w", err)
		}
		if i == 0 {
			list = nil
		}
		list = append(list, t)
	}
	return list, nil
}

// plan is which loads to offer to a target that charges up to so much. Beyond
// what the users may ask for a search would find their allowances.
func (f capacityFlags) plan(cast []traffic.Member, most int64) (capacity.Plan, error) {
	_, allowed := traffic.PerSecond(cast)
	p := capacity.Plan{From: f.from, To: f.to, By: f.by, Beyond: f.beyond.n}
	if p.To == 0 {
		p.To = usualShare * allowed
	}
	if p.To > allowed {
		return p, fmt.Errorf("--to: at %.4g/s some users would ask for more than they may, and what is found would be their allowances; accepted: up to %.4g/s, or more users in the scenario", p.To, allowed)
	}
	if p.By == 0 {
		p.By = p.To / usualSteps
	}
	if p.From == 0 {
		p.From = min(p.By, p.To)
	}
	loads, err := p.Loads()
	if err != nil {
		return p, fmt.Errorf("--from, --to, --step: %w", err)
	}
	charged := loads[0] * warming.Seconds()
	for _, load := range loads {
		charged += load * f.hold.Seconds()
	}
	if charged > float64(most) {
		return p, fmt.Errorf("up to %.0f operations may be charged, limits.max-operations of the target is %d: raise it there, or ask for less", charged, most)
	}
	return p, nil
}

// search is one search under way.
type search struct {
	loadFlags
	scenario traffic.Scenario
	members  []traffic.Member // recruited, at the scenario's own rates
	site     attack.Site
	base     float64 // requests per second of the scenario's own rates
	file     target.File
	target   *target.Target
	slo      []threshold.Threshold
	over     *attack.Connections // one and the same for all loads
}

// findCapacity looks for the capacity of the target that a file describes.
func (f loadFlags) findCapacity(ctx context.Context, scenario traffic.Scenario, file target.File, opt target.Options, w world) error {
	slo, err := f.capacity.asked(scenario)
	if err != nil {
		return err
	}
	if _, err := scenario.Scaled(1, f.capacity.hold, scenario.Seed); err != nil {
		return err
	}
	cast, err := f.members(scenario, file)
	if err != nil {
		return err
	}
	plan, err := f.capacity.plan(cast, mostOperations(file))
	if err != nil {
		return err
	}
	loads, err := plan.Loads()
	if err != nil {
		return err
	}
	s := search{loadFlags: f, scenario: scenario, members: cast, file: file, slo: slo}
	s.base, _ = traffic.PerSecond(cast)
	if err := s.within(ctx, loads); err != nil {
		return err
	}
	t, err := f.open(ctx, file, opt)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := traffic.Recruit(ctx, t, cast); err != nil {
		return loadError(aboutTarget(f.target, err))
	}
	s.site, s.target = attack.SiteOf(file, t), t
	top, err := s.cast(loads[len(loads)-1], f.capacity.hold, 0)
	if err != nil {
		return err
	}
	s.over = attack.Connect(attack.Config{Members: top.members, Site: s.site})
	defer s.over.Close()
	c := record.Capacity{
		Schema: record.CapacitySchema, Brimline: build.Version(), Started: time.Now().UTC(), HoldMS: f.capacity.hold.Milliseconds(),
		Scenario: scenarioRecord(scenario, cast), Target: targetRecord(file, t), SLO: []string{},
	}
	for _, t := range slo {
		c.SLO = append(c.SLO, t.String())
	}
	fmt.Fprintf(w.stderr, "%d steps of %v, from %.4g to %.4g requests per second\n", len(loads), f.capacity.hold, loads[0], loads[len(loads)-1])
	c.Steps, c.End, err = capacity.Search(ctx, plan, func(ctx context.Context, n int, load float64) (record.CapacityStep, error) {
		step, err := s.step(ctx, n, load)
		if err == nil {
			fmt.Fprintf(w.stderr, "step %d of %d: %s\n", n, len(loads), render.CapacityStep(step))
		}
		return step, err
	})
	if err != nil {
		return loadError(err)
	}
	if len(c.Steps) == 0 {
		return exitWith(exitCannotTell, errors.New("interrupted before the end of the first step"))
	}
	capacity.Conclude(&c)
	return f.concluded(c, w)
}

// within checks that no second of any load has more requests than the scenario
// allows.
func (s search) within(ctx context.Context, loads []float64) error {
	for i := 0; i < len(loads) && s.scenario.MaxRate > 0; i++ {
		at, err := s.cast(loads[i], s.capacity.hold, int64(i+1))
		if err != nil {
			return err
		}
		peak, err := forecast.Peak(ctx, at.members, s.capacity.hold, at.Seed)
		if err != nil {
			return loadError(err)
		}
		if peak > s.scenario.MaxRate {
			return s.scenario.Refuse("max-rate", fmt.Sprintf("%d is less than the %d requests that are planned for the busiest second at %.4g/s", s.scenario.MaxRate, peak, loads[i]), "a higher rate, or a lower --to")
		}
	}
	return nil
}

// step offers one load and leaves its run.
func (s search) step(ctx context.Context, n int, load float64) (record.CapacityStep, error) {
	if n == 1 { // connections and the target's memory are warm once the first one counts
		if _, err := s.run(ctx, load, warming, 0); err != nil {
			return record.CapacityStep{}, err
		}
	}
	r, err := s.run(ctx, load, s.capacity.hold, int64(n))
	if err != nil {
		return record.CapacityStep{}, err
	}
	step, err := capacity.Measure(r, load, s.capacity.hold, s.slo)
	if err != nil {
		return step, err
	}
	step.Folder = fmt.Sprintf("step-%03d", n)
	r.Thresholds = step.SLO
	return step, record.WriteRun(filepath.Join(s.out, step.Folder), r)
}

// scaled is the scenario at a load.
type scaled struct {
	traffic.Scenario
	members []traffic.Member
}

// cast is the scenario at a load, with the users that were recruited. Each round
// has dice of its own.
func (s search) cast(load float64, d time.Duration, round int64) (scaled, error) {
	at, err := s.scenario.Scaled(load/s.base, d, s.scenario.Seed+round)
	if err != nil {
		return scaled{}, err
	}
	cast, err := at.Cast(s.file.Allowances)
	for i := range cast {
		was := s.members[i]
		cast[i].Keys, cast[i].From, cast[i].Rested = was.Keys, was.From, was.Rested && round == 0
	}
	return scaled{at, cast}, err
}

// run is one attack at a load. Every load begins when it begins: what an earlier
// one did not send is not made up for.
func (s search) run(ctx context.Context, load float64, d time.Duration, round int64) (record.Run, error) {
	at, err := s.cast(load, d, round)
	if err != nil {
		return record.Run{}, err
	}
	a, err := attack.New(attack.Config{Members: at.members, Duration: d, Seed: at.Seed, MaxRate: s.scenario.MaxRate, Site: s.site, Over: s.over})
	if err != nil {
		return record.Run{}, err
	}
	r, err := a.Run(ctx)
	if err == nil {
		err = ctx.Err()
	}
	r.Schema, r.Brimline = record.RunSchema, build.Version()
	r.Scenario, r.Target = scenarioRecord(at.Scenario, at.members), targetRecord(s.file, s.target)
	return r, err
}

// concluded leaves and prints what was found and says what it is worth.
func (f loadFlags) concluded(c record.Capacity, w world) error {
	if err := errors.Join(record.WriteCapacity(f.out, c), render.Capacity(w.stdout, c)); err != nil {
		return err
	}
	fmt.Fprintf(w.stdout, "\ncapacity: %s\n", filepath.Join(f.out, record.CapacityFile))
	switch {
	case c.End == record.EndInterrupted:
		return exitWith(exitCannotTell, errors.New("interrupted before a capacity was found"))
	case c.End == record.EndGenerator:
		return exitWith(exitCannotTell, errors.New("the generator was the limit, not the target"))
	case c.End == record.EndLimits:
		return exitWith(exitCannotTell, errors.New("the users' allowances were the limit, not the target"))
	case c.Holds == nil:
		return exitWith(exitFails, errors.New("the SLO held under no load"))
	}
	return nil
}
