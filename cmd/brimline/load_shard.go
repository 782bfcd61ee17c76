package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/invoicespec/brimline/internal/hostclock"
	"github.com/invoicespec/brimline/loadgen/traffic"
	"github.com/invoicespec/brimline/reports/record"
)

// The start of a run that was agreed on.
const (
	mostAhead = time.Hour   // beyond that it is a slip of the pen
	startLead = time.Second // before it, the attack is made ready
)

// partFlags say which part of a run this machine makes, and when.
type partFlags struct {
	shard shardFlag
	start startFlag
	seed  int64

	seedGiven bool
	attempt   time.Time // when this try at it was made
}

func (p *partFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.Var(&p.shard, "shard", "send the part `I/N` of the scenario's users, I from 0; every shard needs the same files, --seed and --start-at")
	f.Var(&p.start, "start-at", "begin when the wall clock shows `TIME`, such as 2026-11-30T21:00:00Z, up to 1h ahead")
	f.Int64Var(&p.seed, "seed", 0, "plan by this seed in place of the scenario's")
}

// given notes what was on the command line, at the time of the try.
func (p *partFlags) given(c *cobra.Command, now time.Time) error {
	p.seedGiven, p.attempt = c.Flags().Changed("seed"), now.Round(0).UTC()
	if !p.shard.Whole() && p.start.IsZero() {
		return errors.New("--shard needs --start-at TIME, the same for every shard")
	}
	return p.start.check(now)
}

// plan lets the command line have its way with a scenario.
func (p partFlags) plan(s *traffic.Scenario) {
	if p.seedGiven {
		s.Seed = p.seed
	}
}

// check refuses a cut that leaves a shard with nobody: every shard says so alike.
func (p partFlags) check(file string, cast []traffic.Member) error {
	if none, ok := p.shard.Empty(cast); ok {
		return fmt.Errorf("%s: its %d users leave shard %s with nobody; accepted: fewer shards", file, len(cast), none)
	}
	return nil
}

// wait waits until the start is near.
func (p partFlags) wait(ctx context.Context, w io.Writer) error {
	if p.start.IsZero() {
		return nil
	}
	wait := time.Until(p.start.Add(-startLead))
	if wait > 0 {
		fmt.Fprintf(w, "ready; the run begins at %s, in %s\n", p.start, wait.Round(time.Second))
	}
	for ; wait > 0; wait = time.Until(p.start.Add(-startLead)) { // the clock may be set meanwhile
		t := time.NewTimer(min(wait, time.Second))
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return exitWith(exitCannotTell, errors.New("interrupted before the start: nothing was sent"))
		}
	}
	return nil
}

// record is what a run says of its part; nil: it is the whole.
func (p partFlags) record(seed int64, cast []traffic.Member) *record.RunShard {
	if p.shard.Of == 0 {
		return nil
	}
	clock := hostclock.Now()
	return &record.RunShard{
		Index: int64(p.shard.Index), Of: int64(p.shard.Of), Start: p.start.Time, Attempt: p.attempt,
		Traffic: traffic.Fingerprint(seed, cast),
		Clock:   record.RunClock{Known: clock.Known, Synchronised: clock.Synchronised, MostOffUS: clock.MostOff.Microseconds()},
	}
}

// shardFlag is a flag: i/n.
type shardFlag struct{ traffic.Shard }

func (s *shardFlag) Set(text string) (err error) {
	s.Shard, err = traffic.ParseShard(text)
	return err
}

func (s *shardFlag) String() string {
	if s.Of == 0 {
		return ""
	}
	return s.Shard.String()
}

func (s *shardFlag) Type() string { return "I/N" }

// startFlag is a flag: an instant of the wall clock.
type startFlag struct{ time.Time }

func (s *startFlag) Set(text string) error {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return errors.New("accepted: an instant with its zone, such as 2026-11-30T21:00:00Z")
	}
	s.Time = at.UTC()
	return nil
}

// check refuses a start that has passed or is far away.
func (s startFlag) check(now time.Time) error {
	ahead := s.Sub(now.Round(0))
	switch {
	case s.IsZero():
		return nil
	case ahead < 0:
		return fmt.Errorf("--start-at %s has passed: by this machine's clock it is %s; accepted: up to 1h ahead", s, clockTime(now))
	case ahead > mostAhead:
		return fmt.Errorf("--start-at %s is more than 1h ahead: by this machine's clock it is %s", s, clockTime(now))
	}
	return nil
}

func (s startFlag) String() string {
	if s.IsZero() {
		return ""
	}
	return s.Format(time.RFC3339)
}

func (s *startFlag) Type() string { return "TIME" }

func clockTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
