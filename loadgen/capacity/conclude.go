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
	told := c.Steps
	if n := len(told); n > 0 && (told[n-1].Verdict == record.CapacityGenerator || told[n-1].Verdict == record.CapacityLimits) {
		told = told[:n-1]
	}
	c.Holds = holds(told)
	c.Knee, c.Warning = saturation(told), warning(told)
	c.Said = said(*c)
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
	if len(c.Steps) == 0 {
		return list
	}
	last := c.Steps[len(c.Steps)-1]
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
	case c.End == record.EndSLO:
		say("Goodput was not seen to flatten up to %s, so where the target is full is not known; --beyond goes on after the SLO is broken.", rate(last.Load))
	default:
		say("Goodput was not seen to flatten up to %s, so where the target is full is not known.", rate(last.Load))
	}
	if k := c.Warning; k != nil {
		say("Latency begins to climb at %s (95 %% of draws: %s to %s).", rate(k.At), rate(k.From), rate(k.To))
	}
	switch c.End {
	case record.EndGenerator:
		say("The generator ends here: at %s %s. That says nothing of the target; take a larger machine, or several smaller steps.", rate(last.Asked), last.Why[0])
	case record.EndLimits:
		say("The allowances end here: at %s %s. That says nothing of the target; list more users, so that each asks for less than it may.", rate(last.Asked), last.Why[0])
	case record.EndInterrupted:
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
