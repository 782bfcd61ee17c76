package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/invoicespec/brimline/loadgen/merge"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

const loadMergeHelp = `Merge joins the run folders of shards (see "brimline load --shard") into one run,
DIR/run.json: the record that one machine would have left. Counters are added,
histograms merged value by value, and seconds counted from the common start. A
RUN may be a folder of run folders.

Only shards of one run are joined: the same scenario, seed, target, version,
number of shards and start. Of several tries at one shard the latest counts, and
the others are named. A folder whose run cannot be read whole is refused.

Exit code 0: every shard is there and each was fit to measure. 1: a threshold is
broken. 2: usage, bad input, runs that do not belong together, or a run is in DIR
already. 3: a shard is missing or says nothing of its target; the merged run is
left all the same, and says so.`

func loadMergeVerb(w world) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:     "merge --out DIR RUN...",
		Short:   "Join the runs of several machines into one",
		Long:    loadMergeHelp,
		Example: "  brimline load merge --out runs/monday runs/shard-0 runs/shard-1",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("load merge needs run folders")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if out == "" {
				return errors.New("load merge needs --out DIR")
			}
			return loadMerge(out, args, w)
		},
	}
	c.Flags().StringVar(&out, "out", "", "leave the merged run in `DIR`, which holds no other run")
	return c
}

func loadMerge(out string, folders []string, w world) error {
	parts, left, err := merge.Read(folders...)
	if err != nil {
		return err
	}
	for _, folder := range left {
		fmt.Fprintf(w.stderr, "%s: no %s in it, left out\n", render.Visible(folder), record.RunFile)
	}
	r, err := merge.Runs(parts)
	if err != nil {
		return err
	}
	if err := record.ClaimRunFolder(out); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if err := render.LoadParts(w.stdout, *r.Merged); err != nil {
		return err
	}
	return loadFlags{out: out}.finish(r, w)
}
