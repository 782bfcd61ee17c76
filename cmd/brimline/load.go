package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/internal/build"
	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/loadgen/attack"
	"github.com/invoicespec/brimline/loadgen/forecast"
	"github.com/invoicespec/brimline/loadgen/traffic"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

const loadHelp = `Load sends the traffic of a scenario file to a target and leaves DIR/run.json:
what every plan's users met, which of their 429s were due, and how long answers
took. A scenario looks like this:

  duration: 30s
  seed: 7
  populations:
    - { plan: free, users: 20, arrival: poisson, rate: 1.2x, on-429: obey-retry-after }
    - { plan: pro, users: 5, arrival: { bursts: 40, every: 10s }, on-429: ignore }

A rate is requests per minute of one user, or a share of what the plan allows. The
same seed gives the same requests. --explain documents every key: arrivals that
change with time, mixes of operations, what users do on a 429. --dry-run says what
a file comes to, and sends nothing; docs/load-scenarios.md has the whole.

Users come from the target's keys file, or are made through its control protocol.
A request that is late by more than 100 ms is dropped and counted, never sent in a
bunch with others. Ctrl-C ends a run early and leaves what was measured.

Load only goes to this machine, unless --allow-host names the host and the scenario
has a max-rate.

A scenario may say what is asked of a run, of one plan or of all together:

  thresholds:
    - free.rejected.rate < 5%
    - pro.admitted.latency.p99 < 250ms
    - undue-429 == 0

With --abort-on-breach a run ends once one of them is broken for good: a count at
once, a share or a quantile after five looks in a row, a second apart, on enough
samples. docs/load.md has the words, and how to read a run.

Several machines make one run with --shard I/N and a common --start-at; what each
sends is its users' share, also of workers and limits. Their clocks must be
synchronised. "brimline load merge" joins what they leave. docs/load-many-machines.md
has the steps.

With --find-capacity the scenario's rates are raised in steps until an SLO fails
twice in a row: docs/capacity.md. It leaves DIR/capacity.json and each step's run.
Then exit code 0 means that a load was found under which the SLO holds, 1 that it
held under none, 3 that this machine or the users' allowances were the limit.

Exit code 0: it was measured, and no threshold is broken; an early end and undue
429s are results. 1: a threshold is broken. 2: usage, bad input, too few users, a
target whose clock stands still, or a run is in DIR already. 3: it could not be
told: the target is away, on some plan nothing was admitted or most requests got
no answer, a threshold had no data, or this machine was too slow, which
docs/load.md says in figures.`

// loadFlags are what load was asked for.
type loadFlags struct {
	scenario   string
	target     string
	out        string
	allowHosts hosts
	part       partFlags
	capacity   capacityFlags
	ahead      aheadFlags

	abortOnBreach bool
	exports       exports
	metrics       metricsAddr
}

func loadVerb(w world) *cobra.Command {
	var f loadFlags
	c := &cobra.Command{
		Use:   "load FILE --target FILE --out DIR",
		Short: "Send traffic and measure what users meet",
		Long:  loadHelp,
		Example: `  brimline load examples/load.yaml --target target.yaml --out runs/monday
  brimline load load.yaml --target staging.yaml --dry-run
  brimline load load.yaml --target staging.yaml --allow-host staging.invoices.example --out runs/staging`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case f.ahead.explain && len(args) > 0:
				return errors.New("--explain takes no scenario file")
			case !f.ahead.explain && len(args) != 1:
				return errors.New("load needs one scenario file")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if f.ahead.explain {
				return explainScenario(w.stdout)
			}
			f.scenario = args[0]
			if err := errors.Join(f.part.given(c, time.Now()), f.capacity.given(c), f.ahead.given(c)); err != nil {
				return err
			}
			_, err := load(c.Context(), f, w)
			return err
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.target, "target", "", "the target `FILE`")
	flags.StringVar(&f.out, "out", "", "leave run.json in `DIR`, which holds no other run")
	flags.Var(&f.allowHosts, "allow-host", "`HOST` beyond this machine that may be loaded; may be given again")
	flags.BoolVar(&f.abortOnBreach, "abort-on-breach", false, "end the run once a threshold is broken for good")
	flags.BoolVar(&f.exports.rows, "rows", false, "leave rows.jsonl.zst in DIR as well: a line for each request")
	flags.BoolVar(&f.exports.vegeta, "vegeta", false, "leave vegeta.json in DIR as well, for vegeta report and vegeta plot")
	flags.Var(&f.metrics, "metrics", "serve the figures to Prometheus at `ADDR` while the run lasts, such as :9102")
	f.part.add(c)
	f.capacity.add(c)
	f.ahead.add(c)
	c.AddCommand(loadMergeVerb(w))
	return c
}

// load carries out one run and returns its record, which it has also written and
// printed. An error may come beside a record.
func load(ctx context.Context, f loadFlags, w world) (record.Run, error) {
	switch {
	case f.target == "":
		return record.Run{}, errors.New("load needs --target FILE")
	case f.out == "" && !f.ahead.dryRun:
		return record.Run{}, errors.New("load needs --out DIR")
	}
	scenario, err := traffic.Read(f.scenario)
	if err != nil {
		return record.Run{}, err
	}
	f.part.plan(&scenario)
	file, err := target.ReadFile(f.target)
	if err != nil {
		return record.Run{}, err
	}
	if f.ahead.dryRun {
		return record.Run{}, f.lookAhead(ctx, scenario, file, w.stdout)
	}
	opt := target.Options{Environment: w.getenv}
	if f.capacity.find {
		return record.Run{}, f.findCapacity(ctx, scenario, file, opt, w)
	}
	return f.drive(ctx, scenario, file, opt, w)
}

// drive sends a scenario to the target that a file describes.
func (f loadFlags) drive(ctx context.Context, scenario traffic.Scenario, file target.File, opt target.Options, w world) (record.Run, error) {
	if f.abortOnBreach && len(scenario.Thresholds) == 0 {
		return record.Run{}, fmt.Errorf("--abort-on-breach: %s has no thresholds that could be broken", f.scenario)
	}
	cast, err := f.cast(ctx, scenario, file)
	if err != nil {
		return record.Run{}, err
	}
	t, err := f.open(ctx, file, opt)
	if err != nil {
		return record.Run{}, err
	}
	defer t.Close()
	members, err := f.part.shard.Recruit(ctx, t, cast)
	if err != nil {
		return record.Run{}, loadError(aboutTarget(f.target, err))
	}
	site := attack.SiteOf(file, t)
	a, err := attack.New(attack.Config{
		Members: members, Duration: scenario.Duration, Seed: scenario.Seed, MaxRate: scenario.MaxRate, Start: f.part.start.Time, Site: site, Each: f.exports.each(),
	})
	if err != nil {
		return record.Run{}, err
	}
	if err := f.exports.open(f.out, members, site, a.Started); err != nil {
		return record.Run{}, err
	}
	defer f.exports.abandon()
	if err := f.part.wait(ctx, w.stderr); err != nil {
		return record.Run{}, err
	}
	endMetrics, err := f.metrics.serve(w.stderr, a.Meter)
	if err != nil {
		return record.Run{}, err
	}
	defer endMetrics()
	defer roomy(len(members))()
	end := watchLoad(w.stderr, a.Meter, scenario.Duration)
	running, endWatch := ctx, func() {}
	if f.abortOnBreach {
		running, endWatch = endAtBreach(ctx, scenario.Thresholds, scenario.Duration, a.Meter)
	}
	r, err := a.Run(running)
	end()
	defer endWatch() // once the record knows why the run ended
	if err != nil {
		return record.Run{}, loadError(err)
	}
	r.Exports = f.exports.close()
	r.Limits = append(r.Limits, lost(r.Exports)...)
	if err := judge(running, scenario.Thresholds, &r); err != nil {
		return record.Run{}, err
	}
	r.Schema, r.Brimline = record.RunSchema, build.Version()
	r.Scenario, r.Target = scenarioRecord(scenario, cast), targetRecord(file, t)
	r.Shard = f.part.record(scenario.Seed, cast)
	return r, f.finish(r, w)
}

// open reaches a target that can be loaded and claims the folder for the run.
// The caller closes it.
func (f loadFlags) open(ctx context.Context, file target.File, opt target.Options) (*target.Target, error) {
	t, err := target.Open(ctx, file, opt)
	if err != nil {
		return nil, loadError(aboutTarget(f.target, err))
	}
	if t.Clock() == control.ClockFrozen {
		return nil, errors.Join(fmt.Errorf("%s: the target's clock is frozen: load needs one that runs, real or shifted", f.target), t.Close())
	}
	if err := record.ClaimRunFolder(f.out); err != nil {
		return nil, errors.Join(fmt.Errorf("--out: %w", err), t.Close())
	}
	return t, nil
}

// cast makes the scenario's members and checks that they may be let loose.
func (f loadFlags) cast(ctx context.Context, s traffic.Scenario, file target.File) ([]traffic.Member, error) {
	members, err := f.members(s, file)
	if err != nil {
		return nil, err
	}
	peak := int64(0)
	if s.MaxRate > 0 { // else nobody asks
		if peak, err = forecast.Peak(ctx, members, s.Duration, s.Seed); err != nil {
			return nil, loadError(err)
		}
	}
	return members, f.affordable(s, file, members, peak)
}

// affordable checks that members may be let loose, who plan so many requests for
// one second at most.
func (f loadFlags) affordable(s traffic.Scenario, file target.File, members []traffic.Member, peak int64) error {
	if traffic.Planned(members) == 0 {
		return fmt.Errorf("%s: no request comes due in %v", f.scenario, s.Duration)
	}
	if s.MaxRate > 0 && peak > s.MaxRate {
		return s.Refuse("max-rate", fmt.Sprintf("%d is less than the %d requests that are planned for the busiest second", s.MaxRate, peak), "a higher rate, or less traffic")
	}
	most := mostOperations(file)
	if n := traffic.MostCharged(members, s.Duration); n > most {
		return fmt.Errorf("%s: up to %d operations may be charged, limits.max-operations of %s is %d: raise it there, or ask for less", f.scenario, n, f.target, most)
	}
	return f.part.check(f.scenario, members)
}

// members are a scenario's members on a target that it fits, and may be sent to.
func (f loadFlags) members(s traffic.Scenario, file target.File) ([]traffic.Member, error) {
	if err := f.allowed(s, file); err != nil && !f.ahead.dryRun { // which sends nothing
		return nil, err
	}
	if err := s.Fits(file); err != nil {
		return nil, err
	}
	return s.Cast(file.Allowances)
}

// mostOperations is how many operations a target may charge for a run.
func mostOperations(file target.File) int64 {
	return cmp.Or(file.Limits.MaxOperations, target.DefaultMaxOperations)
}

// allowed refuses to load a host that nobody named, and one beyond this machine
// without a bound.
func (f loadFlags) allowed(s traffic.Scenario, file target.File) error {
	for _, base := range file.BaseURLs {
		u, err := url.Parse(base)
		if err != nil {
			return fmt.Errorf("%s: %w", f.target, err)
		}
		host := u.Hostname()
		if a, err := netip.ParseAddr(host); host == "localhost" || err == nil && a.Unmap().IsLoopback() {
			continue
		}
		if !f.allowHosts.have(host) {
			return fmt.Errorf("%s: %s is not this machine; say --allow-host %s if you may load it", f.target, host, host)
		}
		if s.MaxRate == 0 {
			return s.Refuse("max-rate", fmt.Sprintf("missing, and %s is not this machine", host), fmt.Sprintf("requests per second that it may get at most, 1 to %d", traffic.MaxRate))
		}
	}
	return nil
}

// loadError gives an error before the run its exit code.
func loadError(err error) error {
	if errors.Is(err, target.ErrAway) || errors.Is(err, attack.ErrStartMissed) || errors.Is(err, context.Canceled) {
		return exitWith(exitCannotTell, err)
	}
	return err
}

// finish leaves and prints a record and says what it is worth.
func (f loadFlags) finish(r record.Run, w world) error {
	if err := errors.Join(record.WriteRun(f.out, r), render.Load(w.stdout, r)); err != nil {
		return err
	}
	fmt.Fprintf(w.stdout, "\nrun: %s\n", filepath.Join(f.out, record.RunFile))
	for _, e := range r.Exports {
		fmt.Fprintf(w.stdout, "     %s  %s\n", filepath.Join(f.out, e.File), figure.Count(e.Rows, "row"))
	}
	return worth(r)
}

// hosts is a flag: names of hosts, one at a time.
type hosts []string

func (h *hosts) Set(text string) error {
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-._", r)
	}
	if _, err := netip.ParseAddr(text); err != nil && (text == "" || strings.ContainsFunc(text, odd)) {
		return errors.New("accepted: the name or address of a host, such as staging.invoices.example, without scheme, port and path")
	}
	*h = append(*h, text)
	return nil
}

func (h hosts) have(host string) bool {
	return slices.ContainsFunc(h, func(name string) bool { return strings.EqualFold(name, host) })
}

func (h *hosts) String() string { return strings.Join(*h, ",") }
func (h *hosts) Type() string   { return "HOST" }

func scenarioRecord(s traffic.Scenario, members []traffic.Member) record.RunScenario {
	r := record.RunScenario{DurationMS: s.Duration.Milliseconds(), Seed: s.Seed, MaxRate: s.MaxRate}
	for _, p := range s.Populations {
		r.Populations = append(r.Populations, record.RunPopulation{
			Plan: p.Plan, Users: p.Users, Arrival: p.Arrival.String(), Rate: p.Rate.String(), On429: p.On429.String(),
			Keys: p.Keys, Addresses: p.Addresses, Mix: p.Mix.String(), Spread: p.Spread.String(),
		})
	}
	for _, m := range members {
		r.Populations[m.Population].PerMinute += m.Process.Expected(s.Duration) / s.Duration.Minutes() / float64(s.Populations[m.Population].Users)
	}
	return r
}

func targetRecord(f target.File, t *target.Target) record.RunTarget {
	r := record.RunTarget{
		Description: t.Describe(), Server: t.Server(), Clock: string(t.Clock()),
		Operation:  f.Operations.Valid.Method + " " + f.Operations.Valid.Path,
		Allowances: map[string]record.RunAllowance{},
	}
	for _, base := range f.BaseURLs {
		if u, err := url.Parse(base); err == nil { // it was read before
			r.Hosts = append(r.Hosts, u.Host)
		}
	}
	for plan, a := range f.Allowances {
		r.Allowances[plan] = record.RunAllowance(a)
	}
	return r
}
