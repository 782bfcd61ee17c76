package merge

import (
	"fmt"
	"slices"
	"time"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// untold is why the whole tells nothing: what its own figures say, what is missing,
// and which load sides were unfit. One of them is enough, since nobody can say
// what the target would have done had it got what was planned.
func untold(r record.Run) []record.RunDoubt {
	list := r.Doubts()
	for _, i := range r.Merged.Missing {
		list = append(list, record.RunDoubt{Why: fmt.Sprintf("shard %d of %d is missing", i, r.Merged.Of)})
	}
	for _, p := range r.Merged.Parts {
		for _, d := range p.Untold {
			if d.Plan == "" { // what one shard says of a plan, the others may refute
				list = append(list, record.RunDoubt{Why: fmt.Sprintf("shard %d: %s", p.Index, d.Why)})
			}
		}
	}
	return list
}

// limits are what limits the claims: sentences of all parts once, those of some
// with their shard, and what limits a run by several machines.
func limits(parts []Part, m *record.RunMerged) []string {
	var list []string
	say := func(text string) {
		if !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	everybody := func(text string) bool {
		return !slices.ContainsFunc(parts, func(p Part) bool { return !slices.Contains(p.Run.Limits, text) })
	}
	for _, p := range parts {
		for _, text := range p.Run.Limits {
			if everybody(text) {
				say(text)
			}
		}
	}
	if len(parts) > 1 {
		say(clocks(m.Parts))
		say("Quantiles by second are not told: those of the shards do not make those of all.")
	}
	for _, p := range parts {
		if r := p.Run; r.Interrupted {
			say(fmt.Sprintf("Shard %d stopped after %s of %s: nothing of its users is in the seconds after.", r.Shard.Index, seconds(r.ActualMS), seconds(r.PlannedMS)))
		}
	}
	for _, was := range m.Replaced {
		say(fmt.Sprintf("A try at shard %d was replaced by a later one; the %s that it sent came to the target all the same.", was.Index, figure.Count(was.Sent, "request")))
	}
	for _, p := range parts {
		for _, text := range p.Run.Limits {
			if !everybody(text) {
				say(fmt.Sprintf("Shard %d: %s", p.Run.Shard.Index, text))
			}
		}
	}
	return list
}

// clocks says how far the parts' seconds may lie apart.
func clocks(parts []record.RunPart) string {
	var apart, late int64
	var unknown []int64
	for _, p := range parts {
		late = max(late, p.Generator.StartLateUS)
		if !p.Clock.Known || !p.Clock.Synchronised {
			unknown = append(unknown, p.Index)
			continue
		}
		apart = max(apart, p.Clock.MostOffUS)
	}
	text := fmt.Sprintf("The shards' seconds lie beside each other as well as their clocks agree; the last began %s after the start.", figure.Micros(late))
	switch {
	case len(unknown) > 0:
		return fmt.Sprintf("%s Of shards %v it is not known that their clocks are synchronised.", text, unknown)
	case apart > 0:
		return fmt.Sprintf("%s Each says that its clock is right to %s.", text, figure.Micros(apart))
	}
	return text
}

func seconds(ms int64) string {
	return (time.Duration(ms) * time.Millisecond).Round(100 * time.Millisecond).String()
}
