package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/invoicespec/brimline/internal/build"
	"github.com/invoicespec/brimline/reports/reassess"
	"github.com/invoicespec/brimline/reports/record"
)

// reportFlags are the flags of report.
type reportFlags struct {
	out        string
	plan       string
	allowance  allowance
	log        logFlags
	gates      string
	against    []string
	date       string
	seed       uint64
	json       bool
	gate       bool
	junit      string
	beside     besideFlags
	printGates bool
}

// reportSeed is the seed unless somebody asks for another.
const reportSeed = 1

func reportVerb(w world) *cobra.Command {
	f := reportFlags{seed: reportSeed}
	c := &cobra.Command{
		Use:   "report INPUT...",
		Short: "Say of each plan whether its allowance should be kept, raised or lowered",
		Long: `Report weighs what logs, load runs, capacity searches and earlier reports tell of
each plan's allowance, and writes report.html, report.json, report.md and a CSV
for each chart. An input is a folder that "brimline load" left, a capacity search's
folder, an access log, or brimline's own API log; which one is told by its content,
and - is a log on standard input.

An access log names neither plans nor allowances: --plan-map says who is on which
plan and what plans allow, or --allowance what all its clients are allowed today,
and --plan, if need be, which plan they are on.

A plan is told only on at least 300 users, since fewer cannot show that 99 % of
them are OK, and 7 days of traffic; nothing is raised unless a capacity search shows
that the engine has room. These and all other bounds are the gates: --print-gates
prints them, and --gates reads them from a file. A log and its compressed copy are
refused: they would count twice. The same inputs give the same files to the byte.

Exit code 1: with --gate, a gate fails.
Exit code 2: an input cannot be read.
Exit code 3: there is not enough evidence on any plan, with --gate on some, or a run
is among the inputs that measured the machine it was run on; brimline load said so.`,
		Example: `  brimline report access.log.gz --allowance 10/10 --out report
  brimline report runs/monday capacity api.jsonl --out report
  brimline report access.log access.log.1 --scope /v1/invoice --allowance 60/20 --plan starter --out report
  brimline report access.log capacity --plan-map plans.yaml --prices prices.csv --tickets tickets.csv --out report
  brimline report --print-gates > gates.yaml
  brimline report api.jsonl capacity --gates gates.yaml --against last/report.json --gate --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && !f.printGates && f.beside.database == "" {
				return errors.New("report needs an input: a folder that brimline load left, or a log")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return runReport(c, w, args, f) },
	}
	c.Flags().StringVar(&f.out, "out", "", "write the files into `DIR`")
	c.Flags().StringVar(&f.plan, "plan", "", "the `NAME` of the plan that an access log's clients are on")
	c.Flags().Var(&f.allowance, "allowance", "what an access log's clients are allowed today: requests per minute and burst, such as 10/10")
	f.log.define(c)
	f.beside.define(c)
	c.Flags().StringVar(&f.gates, "gates", "", "read the gates from `FILE`; what it leaves out is as usual")
	c.Flags().BoolVar(&f.printGates, "print-gates", false, "print the usual gates as such a file, and do nothing else")
	c.Flags().StringArrayVar(&f.against, "against", nil, "an earlier `report.json`, the latest one last: its recommendations count, and the last one's figures are compared")
	c.Flags().StringVar(&f.date, "date", "", "the `YYYY-MM-DD` that notice counts from (default the day of the latest evidence)")
	c.Flags().Uint64Var(&f.seed, "seed", reportSeed, "of the draws that intervals of differences are from")
	c.Flags().BoolVar(&f.json, "json", false, "print report.json")
	c.Flags().BoolVar(&f.gate, "gate", false, "end in exit code 1 where a gate fails, and in 3 where the evidence is not enough")
	c.Flags().StringVar(&f.junit, "junit", "", "write the gates as JUnit XML into `FILE`")
	return c
}

func runReport(c *cobra.Command, w world, args []string, f reportFlags) error {
	if f.printGates {
		_, err := w.stdout.Write(reassess.UsualGates())
		return err
	}
	if f.out == "" && !f.json {
		return errors.New("report needs --out DIR, or --json")
	}
	if f.beside.database == "" && (c.Flags().Changed("since") || c.Flags().Changed("until")) {
		return errors.New("--since and --until are of the log in a database, and --database-url names none")
	}
	if _, err := time.Parse(time.DateOnly, f.date); f.date != "" && err != nil {
		return fmt.Errorf("--date: got %q; accepted: a day such as 2026-12-31", f.date)
	}
	if err := cmp.Or(exclusive(c, "plan-map", "plan"), exclusive(c, "plan-map", "allowance")); err != nil {
		return err
	}
	report, err := f.tell(c.Context(), args, w)
	if errors.Is(err, context.Canceled) {
		return exitWith(exitCannotTell, errors.New("interrupted: no report was written"))
	}
	if err != nil {
		return err
	}
	if f.gate {
		return gated(report)
	}
	for _, p := range report.Plans {
		if p.Verdict.Word != record.NotEnoughEvidence {
			return nil
		}
	}
	return exitWith(exitCannotTell, errors.New("not enough evidence on any plan"))
}

// gated is an error where a gate fails or its evidence is missing.
func gated(r record.Report) error {
	var failed, missing []string
	note := func(plan string, gates []record.ReportGate) {
		for _, g := range gates {
			switch text := fmt.Sprintf("%s%s: %s, where the gate asks for %s", plan, g.Name, g.Found, g.Need); g.State {
			case record.GateFails:
				failed = append(failed, text)
			case record.GateMissing:
				missing = append(missing, text)
			}
		}
	}
	note("", r.Gates)
	for _, p := range r.Plans {
		note(p.Plan+": ", p.Gates)
	}
	switch {
	case len(failed) > 0:
		return exitWith(exitFails, fmt.Errorf("gates that fail: %d; the first: %s", len(failed), failed[0]))
	case len(missing) > 0:
		return exitWith(exitCannotTell, fmt.Errorf("gates that cannot be told: %d; the first: %s", len(missing), missing[0]))
	}
	return nil
}

// tell weighs the inputs, and leaves and prints what they say.
func (f reportFlags) tell(ctx context.Context, inputs []string, w world) (record.Report, error) {
	opt := reassess.Options{
		Brimline: build.Version(), Gates: reassess.Gates{Rules: reassess.Rules()}, Plan: f.plan, Allowance: f.allowance.value(), Date: f.date, Seed: f.seed,
	}
	if f.gates != "" {
		var err error
		if opt.Gates, err = reassess.ReadGates(f.gates); err != nil {
			return record.Report{}, err
		}
	}
	for _, path := range f.against {
		e, err := reassess.ReadEarlier(path)
		if err != nil {
			return record.Report{}, err
		}
		opt.Earlier = append(opt.Earlier, e)
	}
	var err error
	if opt.Beside, err = f.beside.read(); err != nil {
		return record.Report{}, err
	}
	list := reassess.Files(inputs...)
	for i := range list {
		if list[i].Name == "-" {
			list[i] = reassess.Input{Name: "standard input", Reader: w.stdin}
		}
	}
	if f.beside.database != "" {
		name, lines, done, err := apiLogLines(ctx, f.beside.database, f.beside.since.Time, f.beside.until.Time)
		if err != nil {
			return record.Report{}, err
		}
		defer done()
		list = append(list, reassess.Input{Name: name, Reader: lines})
	}
	logs, err := f.log.options()
	if err != nil {
		return record.Report{}, err
	}
	evidence, err := cancelled(ctx, func() (reassess.Evidence, error) {
		return reassess.Read(ctx, list, logs)
	})
	if errors.Is(err, reassess.ErrNoEvidence) {
		return record.Report{}, exitWith(exitCannotTell, err)
	}
	if err != nil {
		return record.Report{}, err
	}
	defer evidence.Close()
	if err := f.beside.ask(ctx, evidence, &opt.Beside); err != nil {
		return record.Report{}, err
	}
	progress := newReplayProgress(w.stderr)
	opt.Progress = progress.show
	report, err := evidence.Report(ctx, opt)
	progress.end()
	if err != nil {
		return record.Report{}, err
	}
	return report, f.write(w.stdout, report)
}

// cancelled ends with the context, even while a terminal or a pipe has nothing to
// say: a read from either cannot be interrupted.
func cancelled[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type answer struct {
		got T
		err error
	}
	answers := make(chan answer, 1)
	go func() {
		got, err := read()
		answers <- answer{got, err}
	}()
	select {
	case a := <-answers:
		return a.got, a.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
