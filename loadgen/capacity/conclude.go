package capacity

import (
	"fmt"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// notable is the share of what is offered that is said to be kept away by the
// rate limit.
const notable = 0.01

// Conclude says what the steps of a search tell.
func Conclude(c *record.Capacity) {
	if len(c.Steps) == 0 {
		return
	}
	steps := told(c.Steps)
	c.Holds = holds(steps)
	c.Knee, c.Warning = saturation(steps), warning(steps)
	c.Said = said(*c)
}

// told are the steps that say something of the target: all but the last, if it
// does not.
func told(steps []record.CapacityStep) []record.CapacityStep {
	last := len(steps) - 1
	if v := steps[last].Verdict; v == record.CapacityGenerator || v == record.CapacityLimits {
		return steps[:last]
	}
	return steps
}

// holds is the load of the last step that held before two failed in a row.
func holds(steps []record.CapacityStep) *float64 {
	var last *float64
	inARow := 0
	for _, s := range steps {
		if s.Verdict != record.CapacityHolds {
			if inARow++; inARow == failing {
				break
			}
			continue
		}
		inARow = 0
		last = &s.Load
	}
	return last
}

// said is what a search has to say: what can be promised comes first.
func said(c record.Capacity) []string {
	list := []string{}
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	last, seen := c.Steps[len(c.Steps)-1], 0.0
	for _, s := range told(c.Steps) {
		seen = max(seen, s.Load)
	}
	switch {
	case c.Holds == nil:
		say("The SLO held under no load that was offered, from %s on.", rate(c.Steps[0].Load))
	case c.End == record.EndSLO:
		say("The SLO holds up to %s; two steps in a row after that broke it.", rate(*c.Holds))
	default:
		say("The SLO holds up to %s at least.", rate(*c.Holds))
	}
	switch k := c.Knee; {
	case k != nil:
		say("The target is full at %s (95 %% of draws: %s to %s): from there on goodput does not follow the load.", rate(k.At), rate(k.From), rate(k.To))
	case c.End == record.EndSLO && last.Verdict == record.CapacityFails:
		say("Goodput was not seen to flatten up to %s, so where the target is full is not known; --beyond goes on after the SLO is broken.", rate(seen))
	case seen == 0:
	default:
		say("Goodput was not seen to flatten up to %s, so where the target is full is not known.", rate(seen))
	}
	if k := c.Warning; k != nil {
		say("Latency begins to climb at %s (95 %% of draws: %s to %s).", rate(k.At), rate(k.From), rate(k.To))
	}
	switch {
	case last.Verdict == record.CapacityGenerator:
		say("The generator ends here: at %s %s. That says nothing of the target; take a larger machine, or one that has less to do.", rate(last.Asked), last.Why[0])
	case last.Verdict == record.CapacityLimits:
		say("The allowances end here: at %s %s. That says nothing of the target; list more users, so that each asks for less than it may.", rate(last.Asked), last.Why[0])
	case c.End == record.EndInterrupted:
		say("The search was interrupted.")
	}
	for _, s := range c.Steps {
		if s.Verdict != record.CapacityLimits && s.Limited > notable*s.Offered {
			say("At %s the rate limit kept %s of what was offered away; that is no load, and no failure.", rate(s.Asked), figure.Percent(s.Limited/s.Offered))
			break
		}
	}
	return list
}

func rate(perSecond float64) string { return fmt.Sprintf("%.4g/s", perSecond) }
