package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/examples"
	"github.com/invoicespec/brimline/loadgen/traffic"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/reassess"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
	"github.com/invoicespec/brimline/reports/replay"
)

// demoSeed makes every tour report on the same week.
const demoSeed = 7

const demoHelp = `Demo takes the tour, on this machine alone and in about a minute:

  1. it starts the reference server inside this program, on a clock that only the
     suite moves, and judges it clause by clause over HTTP;
  2. it starts another on a real clock, sends it half a minute of traffic
     (examples/load.yaml) and judges every 429;
  3. it takes every decision again that the server wrote into its API log;
  4. it makes up a week of a free plan's traffic, of 412 clients, and reports
     whether the allowance fits.

It writes into one folder, over what an earlier tour left there, and needs nothing
but this program.`

// demoVerb is the tour: every verb once.
func demoVerb(w world) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Take the tour: from contract to decision in a minute",
		Long:  demoHelp,
		Args:  noArguments("its files go where --out says"),
		RunE:  func(c *cobra.Command, _ []string) error { return tour{out, examples.Load, w}.take(c.Context()) },
	}
	c.Flags().StringVar(&out, "out", "demo-out", "write into `DIR`")
	return c
}

// tour is one demo: where its files go, what traffic its server gets, and whom
// it tells.
type tour struct {
	out      string
	scenario []byte
	w        world
}

func (t tour) path(name string) string { return filepath.Join(t.out, name) }

// take goes through all four questions. An answer that is no good one ends in
// its exit code, but only at the end.
func (t tour) take(ctx context.Context) error {
	if err := os.MkdirAll(t.out, 0o755); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	var first *verdict
	for _, leg := range []struct {
		question string
		answer   func(context.Context) error
	}{
		{"Does the reference keep the contract?", t.check},
		{"What do users meet under load?", t.load},
		{"Was every decision of that server right?", t.replay},
		{"Does the free plan's allowance fit a week of traffic?", t.report},
	} {
		fmt.Fprintf(t.w.stdout, "\n— %s\n\n", leg.question)
		err := leg.answer(ctx)
		var v *verdict
		if err != nil && (ctx.Err() != nil || !errors.As(err, &v)) {
			return err
		}
		first = cmp.Or(first, v)
	}
	fmt.Fprintf(t.w.stdout, "\nfiles to open, in %s:\n"+
		"  report.html       the decision and its evidence, for a browser\n"+
		"  index.html        every clause and what was seen of it, for a browser\n"+
		"  conformance.json  the same for programs; junit.xml and summary.md for a CI server\n"+
		"  run/run.json      what the load run measured; load.yaml is its scenario\n"+
		"  api.jsonl         every decision of the server under load\n"+
		"  access.log        the week that was reported on\n", t.out)
	if first != nil {
		return first
	}
	return nil
}

// check judges the embedded reference as "brimline check" does.
func (t tour) check(ctx context.Context) error {
	f := checkFlags{out: t.out}
	site, end, err := f.open(ctx, t.w)
	if err != nil {
		return checkError(err)
	}
	defer end()
	return f.judge(ctx, site, beside{}, t.w)
}

// load sends the scenario to a server of its own.
func (t tour) load(ctx context.Context) (err error) {
	apiLog, run := t.path("api.jsonl"), t.path("run")
	for _, old := range []string{apiLog, filepath.Join(run, record.RunFile)} {
		if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	name := t.path("load.yaml")
	if err := os.WriteFile(name, t.scenario, 0o644); err != nil {
		return err
	}
	scenario, err := traffic.Parse(name, t.scenario)
	if err != nil {
		return err
	}
	// Requests may end after the signal that ends the tour.
	lasting := context.WithoutCancel(ctx)
	cfg := server.Config{Listen: "127.0.0.1:0", Control: "127.0.0.1:0", APILog: apiLog}
	s, err := server.Open(lasting, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close(lasting)) }()
	f := loadFlags{scenario: name, out: run}
	_, err = f.drive(ctx, scenario, targetFile(s, cfg), target.Options{ControlToken: target.NewSecret(s.ControlToken())}, t.w)
	return err
}

// replay takes the decisions of the server's log again, with the same limiter.
func (t tour) replay(ctx context.Context) error {
	log, err := accesslog.Read(ctx, []accesslog.Source{accesslog.File(t.path("api.jsonl"))}, accesslog.Options{})
	if err != nil {
		return err
	}
	defer log.Close()
	result, err := replay.Run(ctx, log, replay.Question{})
	if err != nil {
		return err
	}
	if err := render.Replay(t.w.stdout, result); err != nil {
		return err
	}
	return agreement(result)
}

// report makes up a week of traffic and weighs it beside the server's own log and
// the run, if that says anything.
func (t tour) report(ctx context.Context) error {
	week := t.path("access.log")
	if err := writeWeek(week); err != nil {
		return err
	}
	f := reportFlags{out: t.out, plan: "free", allowance: allowance{rate: 10, burst: 10}}
	_, err := f.tell(ctx, []string{week, t.path("api.jsonl"), t.path("run")}, t.w)
	if errors.Is(err, reassess.ErrNoEvidence) { // as the second question has told
		_, err = f.tell(ctx, []string{week, t.path("api.jsonl")}, t.w)
	}
	return err
}

func writeWeek(path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return accesslog.Generate(f, demoSeed)
}
