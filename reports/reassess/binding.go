package reassess

import (
	"fmt"
	"time"

	"github.com/invoicespec/brimline/reports/record"
)

// S7, which limit binds: the first that each user meets, and how soon the paid
// operations are used up at full rate.

// mostly is the share of users out of operations from which on the rate limit is
// not what holds a plan.
const mostly = 0.5

// binding completes what the replay found of the first limits with the paid
// operations of the plan.
func binding(b record.ReportBinding, today *record.ReportAllowance, operations *int64, recorded bool) record.ReportBinding {
	b.Missing = []string{}
	if operations == nil {
		b.Missing = append(b.Missing, "the plan's paid operations: the plan map or --prices names them")
	} else if today != nil {
		b.HoursToExhaust = ratio(float64(*operations), 60*float64(today.RequestsPerMinute))
	}
	switch {
	case b.Users == 0:
		b.Missing = append(b.Missing, "which limit users meet first: it takes recorded traffic and today's allowance")
	case !recorded:
		b.Missing = append(b.Missing, "who is out of operations: --operations FILE says so, and brimline's API log does")
	default:
		b.ExhaustedFirst = ratio(float64(b.Operations), float64(b.Users))
		b.NotTheRateLimit = *b.ExhaustedFirst >= mostly
	}
	return b
}

// usedUp counts users who were out of operations, by a table of what was used, and
// whom no other limit ever refused. Of one whom both met it is not known which came
// first, so it stays with the other.
func (s *subject) usedUp(first map[string]time.Time) {
	ids := s.src.traffic.Roster.IDs
	for _, u := range s.each {
		if u.User < len(ids) && u.Rejected[0] == 0 && s.today.Binding.None > 0 {
			if _, out := first[ids[u.User]]; out {
				s.today.Binding.Operations++
				s.today.Binding.None--
			}
		}
	}
}

// exhaustion is what it says of the fifth kind of evidence.
func exhaustion(b *record.ReportBinding) (found []string) {
	if b == nil || b.ExhaustedFirst == nil {
		return nil
	}
	text := fmt.Sprintf("%d of %d users ran out of paid operations before any other limit.", b.Operations, b.Users)
	if b.HoursToExhaust != nil {
		text += fmt.Sprintf(" At full rate they last %.3g hours.", *b.HoursToExhaust)
	}
	return []string{text}
}
