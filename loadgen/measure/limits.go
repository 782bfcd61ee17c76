package measure

import (
	"fmt"

	"github.com/invoicespec/brimline/reports/record"
)

// busyMachine is the share of processors in use from which answers may lie about
// before they are read.
const busyMachine = 0.9

// Limits says in sentences what limits the claims of a record that is filled but
// for them.
func (m *Meter) Limits(r record.Run) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []string
	say := func(n int64, format string, args ...any) {
		if n > 0 {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	list = append(list,
		"429s are judged by the allowances of the target file, and as if nobody else had used these users.",
		fmt.Sprintf("A server is not accused of a clock as coarse as %d ms, of one that runs %.2g %% fast or slow, or of a permit held for %d ms after its answer or for twice the slowest answer.",
			Resolution.Milliseconds(), 100.0/driftShare, Grace.Milliseconds()))
	if r.Interrupted {
		list = append(list, "The run was interrupted before its time.")
	}

	var all record.RunPlan
	var lost, unknown int64
	for _, p := range r.Plans {
		all.Offered += p.Offered
		all.Dropped += p.Dropped
		all.DroppedBusy += p.DroppedBusy
		all.RateJudged = all.RateJudged.Plus(p.RateJudged)
		all.ConcurrencyJudged = all.ConcurrencyJudged.Plus(p.ConcurrencyJudged)
		unnamed, anonymous := p.Unjudged()
		unknown += unnamed
		all.RejectedAnonymous += anonymous
		for _, c := range p.TransportErrors {
			lost += c.N
		}
	}
	strangers := int64(0)
	for _, s := range m.subjects {
		if !s.Rested {
			strangers++
		}
	}
	say(strangers, "The buckets of %d of %d users were in a state not known at the start, so early 429s of theirs cannot be judged.", strangers, len(m.subjects))
	say(all.RateJudged.Undecided, "Of %d rate 429s %d could be neither confirmed nor refuted: their requests overlapped others of the same user, or fell within the clocks' uncertainty.",
		all.RateJudged.Sum(), all.RateJudged.Undecided)
	say(all.ConcurrencyJudged.Undecided, "Of %d concurrency 429s %d could be neither confirmed nor refuted: the cap may have been full, but was not seen to be.",
		all.ConcurrencyJudged.Sum(), all.ConcurrencyJudged.Undecided)
	say(all.RejectedAnonymous, "%d 429s came without RateLimit headers, as before authentication; they were not judged.", all.RejectedAnonymous)
	say(unknown, "%d 429s named no known cause; they were not judged.", unknown)
	say(lost, "%d requests got no whole answer; each may have spent a token or not, which weakens every later judgment of its user.", lost)
	say(m.totals.attempts-m.totals.results, "%d requests went out more than once, behind this tool's back.", m.totals.attempts-m.totals.results)
	say(m.totals.noWait, "%d 429s to users who obey had no Retry-After that can be obeyed; they waited 1 s.", m.totals.noWait)
	if own, others, stolen := r.Generator.Processors(); own+others+stolen > busyMachine {
		list = append(list, fmt.Sprintf("This machine's processors were hardly idle: brimline took %.0f %%, other programs %.0f %%, what it runs on %.0f %%. Some of the latencies may be its doing.",
			100*own, 100*others, 100*stolen))
	}
	own := all.Dropped - all.DroppedBusy
	say(own, "%d of %d requests were dropped because this machine was late: the target got less than the scenario asks for.", own, all.Offered)
	say(all.DroppedBusy, "%d of %d requests were dropped because all %d workers waited for answers: the target was too slow to take them.",
		all.DroppedBusy, all.Offered, r.Generator.Workers)
	return list
}
