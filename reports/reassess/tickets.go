package reassess

import (
	"context"
	"fmt"
	"time"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/replay"
	"github.com/invoicespec/brimline/reports/roster"
	"github.com/invoicespec/brimline/reports/timeline"
)

// S11, support evidence: what customers wrote, held against what the replay of
// today's allowance shows for that user and hour.

// mostTold bounds the attempts of users with tickets that are kept at a time.
const mostTold = 5_000_000

// support replays what the users of tickets met at that time.
func (w *weighing) support(ctx context.Context, sources []*source) (*record.ReportSupport, error) {
	list := make([]complaint, len(w.opt.Tickets))
	for i, t := range w.opt.Tickets {
		list[i] = complaint{id: t.ID, symptom: t.Symptom, at: t.At, hour: t.Hour}
		for _, src := range sources {
			user, ok := src.userOf[t.User]
			if !ok || src.described.Refused != "" {
				continue
			}
			if err := src.show(ctx, user, &list[i]); err != nil {
				return nil, err
			}
			break
		}
	}
	w.tickets = support(list, w.opt.Asked)
	return &w.tickets, nil
}

// show fills in what a log has of a ticket's user in that hour, or on that day.
func (s *source) show(ctx context.Context, user int, c *complaint) error {
	phases := s.traffic.Roster.Phases[user]
	from, to := c.at.UTC().Truncate(24*time.Hour), 24*time.Hour
	if c.hour {
		from, to = c.at.UTC().Truncate(time.Hour), time.Hour
	}
	begin, end := from.UnixMicro(), from.Add(to).UnixMicro()
	plan := s.traffic.Roster.Plans[phaseAt(phases, begin).Plan]
	c.user, c.plan, c.replayed = s.names[user], plan.Name, plan.Today != nil
	var before, until []timeline.Attempt
	for batch, err := range s.traffic.Attempts.Batches(ctx) {
		if err != nil {
			return err
		}
		for _, a := range batch {
			if s.traffic.Roster.UserOf[a.Pool] != int32(user) || a.At >= end {
				continue
			}
			a.Pool = 0
			if until = append(until, a); a.At < begin {
				before = append(before, a)
			}
			if len(until) > mostTold {
				return fmt.Errorf("ticket %q: its user made more than %d attempts until then", c.id, mostTold)
			}
		}
		if batch[len(batch)-1].At >= end {
			break
		}
	}
	c.attempts = int64(len(until) - len(before))
	alone := &roster.Roster{Plans: s.traffic.Roster.Plans, Users: 1, UserOf: []int32{0}, Phases: [][]roster.Phase{phases}, Restarts: s.traffic.Roster.Restarts}
	for sign, list := range map[int64][]timeline.Attempt{1: until, -1: before} {
		today, err := replay.Traffic{Attempts: timeline.Of(list...), Roster: alone, Durations: s.traffic.Durations}.Today(ctx)
		if err != nil {
			return err
		}
		for _, p := range today.Plans {
			c.rejected += sign * p.Anatomy.Rejected
		}
		for _, o := range today.Overrides {
			c.rejected += sign * o.Rejected
		}
	}
	return nil
}

// complaint is one ticket and what the traffic shows at that time.
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
	return []string{fmt.Sprintf("%s, of which the replay bears %s out.", figure.Count(n, "ticket"), figure.Grouped(shown))}
}
