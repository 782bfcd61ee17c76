package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/invoicespec/brimline/internal/build"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/reassess"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

// reportFlags are the flags of report.
type reportFlags struct {
	out       string
	plan      string
	allowance allowance
	scope     scope
	proxies   prefixes
	json      bool
}

func reportVerb(w world) *cobra.Command {
	var f reportFlags
	c := &cobra.Command{
		Use:   "report INPUT...",
		Short: "Say of each plan whether its allowance should be kept or raised",
		Long: `Report weighs what load runs and logs tell of each plan's allowance, and writes
report.html, report.json and report.md. An input is a folder that "brimline load"
left, an access log in Common or Combined Log Format, or brimline's own API log,
plain or gzip; which one is told by its content.

An access log names neither plans nor allowances: --allowance says what its
clients are allowed today, and --plan, if need be, which plan they are on.

A plan is told only on at least 381 users, since fewer cannot show that 99 % of
them are OK, and 7 days of traffic. A log and its compressed copy are refused: they
would count twice. The same inputs give the same files to the byte.

Exit code 2: an input cannot be read.
Exit code 3: there is not enough evidence on any plan, or a run is among the inputs
that measured the machine it was run on; brimline load said so.`,
		Example: `  brimline report access.log.gz --allowance 10/10 --out report
  brimline report runs/monday api.jsonl --out report
  brimline report access.log access.log.1 --scope /v1/invoice --allowance 60/20 --plan starter --out report
  brimline report api.jsonl --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("report needs an input: a folder that brimline load left, or a log")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return runReport(c, w, args, f) },
	}
	c.Flags().StringVar(&f.out, "out", "", "write the three files into `DIR`")
	c.Flags().StringVar(&f.plan, "plan", "", "the `NAME` of the plan that an access log's clients are on")
	c.Flags().Var(&f.allowance, "allowance", "what an access log's clients are allowed today: requests per minute and burst, such as 10/10")
	c.Flags().Var(&f.scope, "scope", "only a log's requests at or below this path, such as /v1/invoice")
	c.Flags().Var(&f.proxies, "trusted-proxies", "skipped where an entry begins with a list of addresses, such as 10.0.0.0/8")
	c.Flags().BoolVar(&f.json, "json", false, "print report.json")
	return c
}

func runReport(c *cobra.Command, w world, args []string, f reportFlags) error {
	if f.out == "" && !f.json {
		return errors.New("report needs --out DIR, or --json")
	}
	report, err := f.tell(c.Context(), args, w)
	if err != nil {
		return err
	}
	for _, p := range report.Plans {
		if p.Verdict.Word != record.NotEnoughEvidence {
			return nil
		}
	}
	return exitWith(exitCannotTell, errors.New("not enough evidence on any plan"))
}

// tell weighs the inputs, and leaves and prints what they say.
func (f reportFlags) tell(ctx context.Context, inputs []string, w world) (record.Report, error) {
	evidence, err := reassess.Read(ctx, inputs, accesslog.Options{Scope: string(f.scope), TrustedProxies: f.proxies})
	if errors.Is(err, reassess.ErrNoEvidence) {
		return record.Report{}, exitWith(exitCannotTell, err)
	}
	if err != nil {
		return record.Report{}, err
	}
	report, err := evidence.Report(reassess.Options{
		Brimline: build.Version(), Rules: reassess.Rules(), Plan: f.plan, Allowance: f.allowance.value(),
	})
	if err != nil {
		return record.Report{}, err
	}
	return report, f.write(w.stdout, report)
}

// write leaves the three files and says the verdicts, or prints the JSON.
func (f reportFlags) write(w io.Writer, r record.Report) error {
	var asJSON, asHTML, asMarkdown bytes.Buffer
	out := json.NewEncoder(&asJSON)
	out.SetIndent("", "  ")
	err := errors.Join(out.Encode(r), render.ReportHTML(&asHTML, r), render.ReportMarkdown(&asMarkdown, r))
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := os.MkdirAll(f.out, 0o755); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		for _, file := range []struct {
			name string
			data []byte
		}{{"report.json", asJSON.Bytes()}, {"report.md", asMarkdown.Bytes()}, {"report.html", asHTML.Bytes()}} {
			if err := replaceFile(filepath.Join(f.out, file.name), file.data); err != nil {
				return fmt.Errorf("--out: %w", err)
			}
		}
	}
	if f.json {
		_, err := w.Write(asJSON.Bytes())
		return err
	}
	if err := render.Report(w, r); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\nreport: %s  (report.json and report.md beside it)\n", filepath.Join(f.out, "report.html"))
	return err
}

// replaceFile writes a file whole or not at all, over an earlier one.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// allowance is a flag: requests per minute and burst.
type allowance struct{ rate, burst int64 }

func (a *allowance) Set(text string) error {
	rate, burst, ok := strings.Cut(text, "/")
	if !ok {
		return errors.New("it is requests per minute, a slash and the burst, such as 10/10")
	}
	r, err := policy.ParseValue(policy.RequestsPerMinute, strings.TrimSpace(rate))
	if err != nil {
		return err
	}
	b, err := policy.ParseValue(policy.Burst, strings.TrimSpace(burst))
	if err != nil {
		return err
	}
	a.rate, a.burst = r, b
	return nil
}

func (a *allowance) String() string {
	if a.rate == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", a.rate, a.burst)
}

func (a *allowance) Type() string { return "RATE/BURST" }

// value is nil where the flag was not given.
func (a *allowance) value() *record.ReportAllowance {
	if a.rate == 0 {
		return nil
	}
	return &record.ReportAllowance{RequestsPerMinute: a.rate, Burst: a.burst}
}
