package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
	"github.com/invoicespec/brimline/reports/replay"
	"github.com/invoicespec/brimline/reports/roster"
)

// maxValues bounds each list of a what-if table.
const maxValues = 16

// replayFlags are the flags of replay.
type replayFlags struct {
	rate, burst, concurrency values
	log                      logFlags
	planMap                  string
	closedLoop               bool
	json                     bool
}

func replayVerb(w world) *cobra.Command {
	f := replayFlags{
		rate:  values{dimension: policy.RequestsPerMinute},
		burst: values{dimension: policy.Burst}, concurrency: values{dimension: policy.Concurrency},
	}
	c := &cobra.Command{
		Use:   "replay FILE...",
		Short: "Put recorded traffic through other allowances",
		Long: `Replay decides every request of an access log again, exactly as the reference
limiter would, under each --rate with each --burst.

It reads Common and Combined Log Format, the logs of nginx in JSON, Caddy, Traefik,
Envoy, AWS load balancers and CloudFront, any CSV or JSON Lines by --mapping, and
brimline's own API log, plain, gzip or zstd: docs/logs.md. Several files make one
log, unless two hold the same lines, and - is standard input. Of an API log it also
checks every recorded decision; without --rate and --burst that is all it does.

With --closed-loop it also says what clients that obey Retry-After would meet,
and how much later their requests would be served.

Exit code 1: a recorded decision does not come out as recorded.
Exit code 3: the log cannot tell, for instance on concurrency without durations, or
the replay was interrupted.`,
		Example: `  brimline replay access.log.gz --rate 10 --burst 10
  brimline replay access.log access.log.1 --rate 10,20,60 --burst 10,20,40 --scope /v1/invoice
  brimline replay access.log.gz --rate 10 --burst 10 --closed-loop
  brimline replay access.log.gz --plan-map plans.yaml
  brimline replay api.jsonl
  brimline replay api.jsonl --rate 60 --burst 20 --concurrency 2,5 --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("replay needs a log: a file, or - for standard input")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			err := runReplay(c, w, args, f)
			if errors.Is(err, context.Canceled) {
				return exitWith(exitCannotTell, errors.New("interrupted: nothing was told"))
			}
			return err
		},
	}
	c.Flags().Var(&f.rate, "rate", "requests per minute; several with commas between them")
	c.Flags().Var(&f.burst, "burst", "burst; several with commas between them")
	c.Flags().Var(&f.concurrency, "concurrency", "requests in flight at once; several with commas between them")
	f.log.define(c)
	c.Flags().StringVar(&f.planMap, "plan-map", "", "who is on which plan (docs/evidence.md): each plan by itself, at its own allowance unless --rate and --burst are given")
	c.Flags().BoolVar(&f.closedLoop, "closed-loop", false, "also with clients that send a rejected request again when Retry-After has run out")
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	return c
}

func runReplay(c *cobra.Command, w world, args []string, f replayFlags) error {
	if allowed := len(f.rate.list) > 0; allowed != (len(f.burst.list) > 0) || !allowed && len(f.concurrency.list) > 0 {
		return errors.New("--rate and --burst are needed together, and --concurrency needs both")
	}
	mapped, err := f.mapped(c)
	if err != nil {
		return err
	}
	sources := make([]accesslog.Source, len(args))
	for i, name := range args {
		if sources[i] = accesslog.File(name); name == "-" {
			sources[i] = accesslog.Stream("standard input", w.stdin)
		}
	}
	opt, err := f.log.options()
	if err != nil {
		return err
	}
	log, err := readLog(c.Context(), sources, opt)
	if err != nil {
		return err
	}
	defer log.Close()
	progress := newReplayProgress(w.stderr)
	q := replay.Question{
		Rates: f.rate.list, Bursts: f.burst.list, Concurrency: f.concurrency.list, ClosedLoop: f.closedLoop, Progress: progress.show,
	}
	if mapped != nil {
		if q.Roster, err = mapped.Resolve(c.Context(), log.Names, log.Attempts); err != nil {
			return err
		}
	}
	result, err := replay.Run(c.Context(), log, q)
	progress.end()
	if errors.Is(err, replay.ErrNoAllowance) {
		return fmt.Errorf("%w: give --rate and --burst, or --plan-map", err)
	}
	refused := (*replay.RefusedError)(nil)
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	if err := f.print(w.stdout, result); err != nil {
		return err
	}
	if refused != nil {
		return exitWith(exitCannotTell, err)
	}
	return agreement(result)
}

// mapped is the plan map, if one is named.
func (f replayFlags) mapped(c *cobra.Command) (*roster.Map, error) {
	if !c.Flags().Changed("plan-map") {
		return nil, nil
	}
	if f.planMap == "" {
		return nil, errors.New("--plan-map names no file")
	}
	return roster.Read(f.planMap)
}

// agreement is an error where recorded decisions do not come out as recorded.
func agreement(result record.Replay) error {
	switch a := result.Agreement; {
	case a != nil && a.Disagreed > 0:
		return exitWith(exitFails, fmt.Errorf("%d of %d recorded decisions do not come out as recorded", a.Disagreed, a.Compared))
	case a != nil && a.Untold > 0:
		return exitWith(exitCannotTell, fmt.Errorf("%d of %d recorded decisions cannot be checked: %d are missing from the log", a.Untold, a.Compared, a.Missing))
	}
	return nil
}

// readLog ends with the context, as [cancelled] does.
func readLog(ctx context.Context, sources []accesslog.Source, opt accesslog.Options) (*accesslog.Log, error) {
	return cancelled(ctx, func() (*accesslog.Log, error) { return accesslog.Read(ctx, sources, opt) })
}

func (f replayFlags) print(w io.Writer, result record.Replay) error {
	if !f.json {
		return render.Replay(w, result)
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(result)
}

// values is a flag: a list of different values of one dimension.
type values struct {
	dimension policy.Dimension
	list      []int64
}

func (v *values) Set(text string) error {
	for word := range strings.SplitSeq(text, ",") {
		n, err := policy.ParseValue(v.dimension, strings.TrimSpace(word))
		switch {
		case err != nil:
			return err
		case slices.Contains(v.list, n):
			return fmt.Errorf("%d is given twice", n)
		case len(v.list) == maxValues:
			return fmt.Errorf("more than %d values", maxValues)
		}
		v.list = append(v.list, n)
	}
	return nil
}

func (v *values) String() string { return strings.Trim(fmt.Sprint(v.list), "[]") }
func (v *values) Type() string   { return "N,..." }

// scope is a flag: a path prefix.
type scope string

func (s *scope) Set(text string) error {
	if !strings.HasPrefix(text, "/") {
		return errors.New("a path begins with /")
	}
	*s = scope(text)
	return nil
}

func (s *scope) String() string { return string(*s) }
func (s *scope) Type() string   { return "PATH" }

// prefixes is a flag: a list of address prefixes.
type prefixes []netip.Prefix

func (p *prefixes) Set(text string) error {
	for word := range strings.SplitSeq(text, ",") {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(word))
		if err != nil {
			return fmt.Errorf("%q is no address prefix such as 10.0.0.0/8", word)
		}
		*p = append(*p, prefix)
	}
	return nil
}

func (p *prefixes) String() string { return strings.Trim(fmt.Sprint([]netip.Prefix(*p)), "[]") }
func (p *prefixes) Type() string   { return "PREFIX,..." }
