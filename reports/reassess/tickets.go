package reassess

import (
	"fmt"
	"time"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// S11, support evidence: what customers wrote, held against what the replay of
// today's allowance shows for that user and hour.

// Complaint is one ticket and what the traffic shows at that time.
type complaint struct {
	id, symptom string
	at          time.Time
	hour        bool   // the ticket names an hour and not only a day
	user        string // pseudonym; empty: not in the traffic
	plan        string
	replayed    bool // today's allowance is known
	attempts    int64
	rejected    int64
}

// support is S11; given: somebody looked for tickets.
func support(list []complaint, given bool) record.ReportSupport {
	s := record.ReportSupport{Tickets: []record.ReportTicket{}, Given: given, Missing: []string{}}
	if !given {
		s.Missing = append(s.Missing, "reports of customers: --tickets FILE gives them, and an empty one says that there are none")
	}
	for _, c := range list {
		t := record.ReportTicket{ID: c.id, User: c.user, Plan: c.plan, Date: c.at.UTC().Format(time.DateOnly), Symptom: c.symptom, Attempts: c.attempts, Rejected: c.rejected}
		when := "day"
		if c.hour {
			t.Date, when = c.at.UTC().Format("2006-01-02 15:04"), "hour"
		}
		switch {
		case c.user == "":
			t.Shows = "the user is not in the traffic"
		case c.attempts == 0:
			t.Shows = fmt.Sprintf("no request of the user in that %s", when)
		case !c.replayed:
			t.Shows = fmt.Sprintf("%s in that %s; today's allowance is unknown", figure.Count(c.attempts, "request"), when)
		case c.rejected == 0:
			t.Shows = fmt.Sprintf("%s in that %s, and the limiter refuses none: it was not the allowance", figure.Count(c.attempts, "request"), when)
		default:
			t.Shows = fmt.Sprintf("the limiter refuses %s of %s in that %s", figure.Grouped(c.rejected), figure.Count(c.attempts, "request"), when)
		}
		s.Tickets = append(s.Tickets, t)
	}
	return s
}

// complained is what tickets say of a plan for the sixth kind of evidence.
func complained(s record.ReportSupport, plan string) (found []string) {
	if !s.Given {
		return nil
	}
	n, shown := int64(0), int64(0)
	for _, t := range s.Tickets {
		if t.Plan == plan {
			n++
			if t.Rejected > 0 {
				shown++
			}
		}
	}
	if n == 0 {
		return []string{"none"}
	}
	return []string{fmt.Sprintf("%s, of which the replay bears %s out.", figure.Count(n, "report of a customer"), figure.Grouped(shown))}
}
