package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/features"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

const checkHelp = `Check runs the conformance suite against a deployment that a target file
describes, or against the reference server inside this program, and gives every
clause of the contract a verdict.

  pass           kept
  fail           not kept
  known_failing  not kept, as the file behind --known-failing says
  stale          kept, though that file says it is not
  differs        not kept, but the contract leaves it open (--strict: fail)
  inconclusive   asked, and the answer tells nothing
  setup_failed   could not be asked
  untrue         the target file declares what it takes, and it is not so
  not_run        the target does not offer what it takes, or nobody asked

Exit code 0: nothing failed. 1: a clause failed, or one is stale. 2: nothing could
be run, or the target file declares what is not so: the same run would end the same
again. 3: the target is away, the run was cut short, or more clauses could not be
told than could. docs/verdicts.md says more of each.

--out leaves conformance.json, junit.xml, index.html, summary.md for a CI server's
summary, and badge.json for shields.io.`

// checkFlags are what check was asked for.
type checkFlags struct {
	target         string
	clauses        []string
	out            string
	list, plan     bool
	steps          bool
	explainTarget  bool
	own            string
	features       fs.FS // the contract's, and those of own
	selfTest       bool
	whole          bool
	on             string
	strict, asJSON bool
	budget         time.Duration
	budgeted       bool // a budget was given

	knownFailing   string
	against        string
	quiet, verbose bool
}

func checkVerb(w world) *cobra.Command {
	var f checkFlags
	c := &cobra.Command{
		Use:   "check",
		Short: "Judge a deployment, clause by clause",
		Long:  checkHelp,
		Example: `  brimline check
  brimline check --target staging.yaml --out out
  brimline check --clauses RATE-1,HDR-5
  brimline check --target staging.yaml --known-failing known.txt --against last/conformance.json
  brimline check --target staging.yaml --plan
  brimline check --target staging.yaml --budget 3m
  brimline check --self-test`,
		Args: noArguments("a target file goes behind --target"),
		RunE: func(c *cobra.Command, _ []string) error {
			for _, pair := range [][]string{{"list", "plan", "self-test", "steps", "explain-target"}, {"explain-target", "target"}, {"explain-target", "out"}, {"explain-target", "json"}, {"self-test", "target"}, {"list", "target"}, {"steps", "target"}, {"steps", "clauses"}, {"steps", "features"}, {"self-test", "features"}, {"steps", "out"}, {"list", "out"}, {"plan", "out"}, {"quiet", "verbose"},
				{"list", "plan", "self-test", "steps", "known-failing"}, {"list", "plan", "self-test", "steps", "against"}} {
				if err := exclusive(c, pair...); err != nil {
					return err
				}
			}
			f.budgeted = c.Flags().Changed("budget")
			return check(c.Context(), f, w)
		},
	}
	c.AddCommand(initVerb(w))
	flags := c.Flags()
	flags.StringVar(&f.target, "target", "", "judge the deployment that `FILE` describes (default: the reference inside this program)")
	flags.StringSliceVar(&f.clauses, "clauses", nil, "only these clauses, by `ID` with commas between")
	flags.BoolVar(&f.list, "list", false, "list the clauses and stop")
	flags.StringVar(&f.own, "features", "", "judge by the features in `DIR` as well, with the clauses that clauses.yaml there declares")
	flags.BoolVar(&f.steps, "steps", false, "list the sentences that features may use, and stop")
	flags.BoolVar(&f.explainTarget, "explain-target", false, "say what a target file may hold, key by key, and stop")
	flags.BoolVar(&f.plan, "plan", false, "say what would be run, and what would not and why, and stop")
	flags.DurationVar(&f.budget, "budget", 0, "run what fits into `TIME`, such as 3m, most telling first")
	flags.StringVar(&f.out, "out", "", "leave the result in `DIR`, for people and machines")
	flags.BoolVar(&f.selfTest, "self-test", false, "run the suite against servers that are wrong on purpose, and say which it notices")
	flags.BoolVar(&f.whole, "whole", false, "with --self-test: each of them meets the whole suite, not only the scenarios that can catch it; several times as long")
	flags.StringVar(&f.on, "on", string(record.MovedClock), "with --self-test: the `KIND` of target that they are: "+kinds())
	flags.BoolVar(&f.strict, "strict", false, "what the contract leaves open counts like the rest")
	flags.BoolVar(&f.asJSON, "json", false, "print the result as one JSON object")
	flags.StringVar(&f.knownFailing, "known-failing", "", "the clauses that `FILE` lists are known to fail: an id a line, the reason behind a #")
	flags.StringVar(&f.against, "against", "", "say what has changed since the conformance.json that `FILE` is")
	flags.BoolVar(&f.quiet, "quiet", false, "print what is not kept, and the last line")
	flags.BoolVar(&f.verbose, "verbose", false, "print every scenario, and how long it took; with --plan also those that would not be run")
	return c
}

// leastBudget is less than any scenario takes that is worth to be told.
const leastBudget = time.Second

func check(ctx context.Context, f checkFlags, w world) error {
	f.features = features.FS
	if f.own != "" {
		own, err := conformance.ReadOwn(f.own)
		if err != nil {
			return fmt.Errorf("--features: %w", err)
		}
		f.features = own
	}
	for _, id := range f.clauses {
		if !f.known(id) {
			return fmt.Errorf("--clauses: there is no clause %q; \"brimline check --list\" shows them all", id)
		}
	}
	if f.budget != 0 && f.budget < leastBudget || f.budget == 0 && f.budgeted {
		return fmt.Errorf("--budget: %s is no time to run in; accepted: %s or more, such as 3m", f.budget, leastBudget)
	}
	if !f.selfTest && (f.whole || f.on != string(record.MovedClock)) {
		return errors.New("--whole and --on go with --self-test")
	}
	if f.selfTest && f.out != "" { // now, not after minutes
		if err := os.MkdirAll(f.out, 0o755); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	switch {
	case f.list:
		return f.showList(w)
	case f.explainTarget:
		return explainTarget(w.stdout)
	case f.steps:
		return showSteps(f.asJSON, w)
	case f.selfTest:
		return f.runSelfTest(ctx, w)
	}
	b, err := f.readBeside()
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := claim(f.out); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	t, end, err := f.open(ctx, w)
	if err != nil {
		return checkError(err)
	}
	defer end()
	if f.plan {
		return f.showPlan(ctx, t, w)
	}
	return f.judge(ctx, t, b, w)
}

// judge runs the suite, holds what came out against what stands beside it, and
// leaves and prints that.
func (f checkFlags) judge(ctx context.Context, t *target.Target, b beside, w world) error {
	if f.target != "" {
		if err := t.TryOut(ctx); err != nil {
			return checkError(err)
		}
	}
	counter := newCounter(w.stderr, "scenarios")
	c, err := conformance.Run(ctx, t, f.options(counter))
	counter.clear()
	if err != nil {
		return checkError(err)
	}
	c = b.hold(c)
	c.Reproduce.Command = f.command()
	return f.report(c, w)
}

// open opens the target to be judged. The function it returns ends it.
func (f checkFlags) open(ctx context.Context, w world) (*target.Target, func() error, error) {
	if f.target == "" {
		return embedded(w.executable, record.MovedClock)(ctx, "")
	}
	file, err := target.ReadFile(f.target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf(`%w; "brimline check init" writes a first one`, err)
	case err != nil:
		return nil, nil, err
	}
	t, err := target.Open(ctx, file, target.Options{Environment: w.getenv})
	if err != nil {
		return nil, nil, aboutTarget(f.target, err)
	}
	return t, t.Close, nil
}

// aboutTarget names the target file in an error that does not yet.
func aboutTarget(file string, err error) error {
	if strings.HasPrefix(err.Error(), file+":") {
		return err
	}
	return fmt.Errorf("%s: %w", file, err)
}

// checkError gives an error of a run its exit code.
func checkError(err error) error {
	if errors.As(err, new(*tls.CertificateVerificationError)) { // waiting does not help
		return fmt.Errorf("%w; accepted: a certificate that this machine or tls.ca-file vouches for", err)
	}
	if errors.Is(err, target.ErrAway) || errors.Is(err, conformance.ErrSuite) || errors.Is(err, context.Canceled) {
		return exitWith(exitCannotTell, err)
	}
	return err
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// showList prints the selected clauses, or all.
func (f checkFlags) showList(w world) error {
	clauses := slices.DeleteFunc(conformance.Clauses(f.features), func(c contract.Clause) bool {
		return !f.selected(c.ID)
	})
	if f.asJSON {
		return printJSON(w.stdout, clauses)
	}
	group := ""
	for _, c := range clauses {
		if c.Group != group {
			group = c.Group
			fmt.Fprintf(w.stdout, "%s\n", group)
		}
		fmt.Fprintf(w.stdout, "  %-9s %-8s %s\n", c.ID, c.Level, c.Sentence)
	}
	return nil
}

// counter shows how far a run is: redrawn on a terminal, elsewhere a line now
// and then, so that a log does not fall silent.
type counter struct {
	w        io.Writer
	noun     string
	terminal bool
	said     time.Time
	waits    waits
}

// quiet is how long a counter that is no terminal stays silent.
const quiet = 10 * time.Second

func newCounter(w io.Writer, noun string) *counter {
	return &counter{w: w, noun: noun, terminal: isTerminal(w), said: time.Now()}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (c *counter) show(e conformance.Event) {
	switch {
	case c.terminal:
		fmt.Fprintf(c.w, "\r\x1b[K%d of %d %s  %s", e.Done, e.Of, c.noun, render.Visible(e.Name))
	case time.Since(c.said) >= quiet:
		c.said = time.Now()
		fmt.Fprintf(c.w, "%d of %d %s%s\n", e.Done, e.Of, c.noun, c.waits.fold())
	}
}

func (c *counter) clear() {
	if c.terminal {
		fmt.Fprint(c.w, "\r\x1b[K")
	} else if text := c.waits.reasons(); text != "" {
		fmt.Fprintln(c.w, text)
	}
}

// known reports whether there is such a clause.
func (f checkFlags) known(id string) bool {
	return slices.ContainsFunc(conformance.Clauses(f.features), func(c contract.Clause) bool { return c.ID == id })
}

// selected reports whether a clause is asked for.
func (f checkFlags) selected(id string) bool {
	return len(f.clauses) == 0 || slices.Contains(f.clauses, id)
}
