package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/reports/accesslog"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/replay"
)

// demoSeed makes every demo replay the same traffic.
const demoSeed = 7

// demoAllowances are the rates and bursts that the demo compares.
var demoAllowances = [][2]int64{{10, 10}, {60, 20}, {300, 100}}

// demoVerb is the tour: every verb once, on this machine alone.
func demoVerb(w world) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "demo",
		Short: "Take the tour: judge the reference, replay a week of traffic",
		Long: `Demo starts the reference server inside this program, judges it clause by
clause over HTTP, makes up an access log of a week and replays it under three
allowances. It writes into one folder and needs nothing but this program.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return demo(c.Context(), out, w) },
	}
	c.Flags().StringVar(&out, "out", "demo-out", "write into `DIR`")
	return c
}

func demo(ctx context.Context, out string, w world) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	fmt.Fprint(w.stdout, "Does the reference keep the contract?\n\n")
	judged, err := demoCheck(ctx, out, w)
	if err != nil {
		return err
	}
	fmt.Fprint(w.stdout, "\nWhat would three allowances do to a week of traffic?\n\n")
	if err := demoReplay(ctx, out, w); err != nil {
		return err
	}
	fmt.Fprintf(w.stdout, "\nfiles to open, in %s:\n"+
		"  conformance.json  every clause and what was seen of it\n"+
		"  junit.xml         the same for a CI server\n"+
		"  access.log        the traffic that was replayed\n"+
		"  replay-*.json     what each allowance did to it\n", out)
	if code := checkCode(judged); code != exitHolds {
		return exitWith(code, nil)
	}
	return nil
}

func demoCheck(ctx context.Context, out string, w world) (record.Conformance, error) {
	f := checkFlags{out: out}
	t, end, err := f.open(ctx)
	if err != nil {
		return record.Conformance{}, checkError(err)
	}
	defer end()
	counter := newCounter(w.stderr, "scenarios")
	judged, err := conformance.Run(ctx, t, conformance.Options{Progress: counter.show})
	counter.clear()
	if err != nil {
		return judged, checkError(err)
	}
	return judged, f.report(judged, w)
}

// demoReplay makes up a log and replays it once for each allowance.
func demoReplay(ctx context.Context, out string, w world) error {
	path := filepath.Join(out, "access.log")
	if err := writeDemoLog(path); err != nil {
		return err
	}
	log, err := accesslog.Read(ctx, []accesslog.Source{accesslog.File(path)}, accesslog.Options{})
	if err != nil {
		return err
	}
	fmt.Fprintf(w.stdout, "%s: %d requests of %d clients\n", path, log.Quality.Entries, log.Quality.Clients)
	for _, a := range demoAllowances {
		result, err := replay.Run(log, replay.Question{Rates: []int64{a[0]}, Bursts: []int64{a[1]}})
		if err != nil {
			return err
		}
		data, err := json.MarshalIndent(result, "", "  ")
		if err != nil {
			return err
		}
		name := filepath.Join(out, fmt.Sprintf("replay-%d-%d.json", a[0], a[1]))
		if err := os.WriteFile(name, append(data, '\n'), 0o644); err != nil {
			return err
		}
		r := result.Rejections
		fmt.Fprintf(w.stdout, "  %3d a minute, burst %3d: %6d rejected (%5.2f %%), %3d of %d users affected (95 %%: %.1f to %.1f %%)\n",
			a[0], a[1], r.Rejected, 100*r.RejectedShare, r.UsersAffected, result.Users,
			100*r.UsersAffected95[0], 100*r.UsersAffected95[1])
	}
	return nil
}

func writeDemoLog(path string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	return accesslog.Generate(f, demoSeed)
}
