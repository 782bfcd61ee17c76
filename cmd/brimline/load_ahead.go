package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/invoicespec/brimline/conformance/oracle"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/loadgen/forecast"
	"github.com/invoicespec/brimline/loadgen/traffic"
	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/bucket"
	"github.com/invoicespec/brimline/reference/policy"
)

// aheadFlags are about what can be said before a request is sent.
type aheadFlags struct {
	explain bool
	dryRun  bool
	latency time.Duration
}

func (f *aheadFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.BoolVar(&f.explain, "explain", false, "say what a scenario file may hold, key by key, and stop")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say what would be sent and what an exact limiter would make of it, and send nothing")
	flags.DurationVar(&f.latency, "assume-latency", 50*time.Millisecond, "how long answers take in a dry run, but those of slow operations, which take longer by what the target file says")
}

// given checks what goes with what.
func (f *aheadFlags) given(c *cobra.Command) error {
	changed := c.Flags().Changed
	if f.dryRun {
		for _, name := range []string{"find-capacity", "abort-on-breach", "rows", "vegeta", "start-at"} {
			if err := exclusive(c, "dry-run", name); err != nil {
				return err
			}
		}
	}
	switch {
	case f.dryRun && changed("out"):
		return errors.New("--dry-run leaves nothing in --out: give one of them")
	case !f.dryRun && changed("assume-latency"):
		return errors.New("--assume-latency is for --dry-run")
	case f.latency < 0 || f.latency > time.Hour:
		return fmt.Errorf("--assume-latency %v is out of range; accepted: 0s to 1h", f.latency)
	}
	return nil
}

// lookAhead prints what a scenario comes to.
func (f loadFlags) lookAhead(ctx context.Context, s traffic.Scenario, file target.File, out io.Writer) error {
	cast, err := f.members(s, file)
	if err != nil {
		return err
	}
	q := forecast.Question{
		Members: cast, Duration: s.Duration, Seed: s.Seed, Limiter: exactLimiter, Latency: f.ahead.latency,
	}
	if o := file.Operations.Slow; o != nil {
		q.Slow = o.Takes
	}
	p, err := forecast.Run(ctx, q)
	if err != nil {
		return loadError(err)
	}
	if _, err := io.WriteString(out, f.aheadText(s, cast, p)); err != nil {
		return err
	}
	return f.affordable(s, file, cast, p.All.Peak)
}

// exactLimiter is the reference's own decision on a bucket that is full at the
// start. The target file was checked, so its allowances are good.
func exactLimiter(a oracle.Allowance) forecast.Bucket {
	allowance, err := policy.NewAllowance(a.RequestsPerMinute, a.Burst, a.Concurrency)
	var state bucket.State
	return func(at time.Duration, inFlight int64) (forecast.Outcome, time.Duration) {
		if err != nil {
			return forecast.RateRejected, 0
		}
		var d admission.Decision
		state, d = admission.Decide(state, inFlight, allowance, bucket.Instant(at.Microseconds()))
		switch d.Outcome {
		case admission.Admitted:
			return forecast.Admitted, 0
		case admission.RateRejected:
			return forecast.RateRejected, time.Second * time.Duration(max(1, (d.ToToken+999_999)/1_000_000))
		}
		return forecast.ConcurrencyRejected, time.Second
	}
}

// aheadText is a forecast for people.
func (f loadFlags) aheadText(s traffic.Scenario, cast []traffic.Member, p forecast.Plan) string {
	var b strings.Builder
	users, charged := make([]int64, len(s.Populations)), make([]int64, len(s.Populations))
	for i := range cast {
		users[cast[i].Population]++
		charged[cast[i].Population] += cast[i].MostCharged(s.Duration)
	}
	sum := func(list []int64, plan string) (n int64) {
		for i, population := range s.Populations {
			if plan == "" || population.Plan == plan {
				n += list[i]
			}
		}
		return n
	}
	fmt.Fprintf(&b, "%s, seed %d, %v: %s, %s; nothing was sent\n\n", f.scenario, s.Seed, s.Duration,
		figure.Count(int64(len(cast)), "user"), figure.Count(p.All.Planned, "request"))
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "plan\tpopulation\tusers\tplanned\tmean/s\tpeak/s\tcharged, at most\theld off\tadmitted\t429 rate\t429 conc.\t")
	row := func(plan, which string, users, charged int64, c forecast.Count) {
		rate, concurrency := c.Rejected()
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.4g\t%s\t%s\t%s\t%s\t%s\t%s\t\n", plan, which, figure.Grouped(users), figure.Grouped(c.Planned),
			float64(c.Planned)/s.Duration.Seconds(), figure.Grouped(c.Peak), figure.Grouped(charged),
			figure.Grouped(c.HeldOff), figure.Grouped(c.Admitted), figure.Percent(rate), figure.Percent(concurrency))
	}
	for i, population := range s.Populations {
		row(population.Plan, fmt.Sprint(i+1), users[i], charged[i], p.Populations[i])
	}
	if len(p.Plans) < len(s.Populations) {
		for _, plan := range p.Plans {
			row(plan.Plan, "all", sum(users, plan.Plan), sum(charged, plan.Plan), plan.Count)
		}
	}
	if len(p.Plans) > 1 {
		row("all", "all", sum(users, ""), sum(charged, ""), p.All)
	}
	t.Flush()
	fmt.Fprintf(&b, "\n  peak/s is of planned requests in one second, wherever it begins\n")
	fmt.Fprintf(&b, "  429s are those of an exact limiter, as shares of the requests that ask it: every\n  bucket is full at the start, nothing is late, and every answer takes %v\n", f.ahead.latency)
	if n := p.All.Strangers; n > 0 {
		fmt.Fprintf(&b, "  %s no good key: a 401, or a 429 of the address's pool, which is not foreseen\n", figure.Count(n, "request")+map[bool]string{true: " has", false: " have"}[n == 1])
	}
	return b.String()
}
