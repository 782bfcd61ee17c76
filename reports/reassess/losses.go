package reassess

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/roster"
)

// losses is whom a smaller allowance would newly refuse, who loses most first.
// Nobody is listed where the plan is surely not paid, since no notice is owed.
func (w *weighing) losses(ctx context.Context, c claim, s *subject, v record.ReportVerdict) (list []loss, err error) {
	if v.LookAt == nil || c.unpaid {
		return nil, nil
	}
	pairs := make([]*[2]record.ReportAllowance, len(s.src.traffic.Roster.Plans))
	pairs[s.at] = &[2]record.ReportAllowance{*s.told(), {RequestsPerMinute: v.LookAt.Rate, Burst: v.LookAt.Burst, Concurrency: v.LookAt.Concurrency}}
	days, err := s.src.traffic.Paired(ctx, pairs)
	if err != nil {
		return nil, err
	}
	type sums struct{ attempts, today, then int64 }
	users := map[int]sums{}
	for _, d := range days[s.at] {
		u := users[d.User]
		users[d.User] = sums{u.attempts + d.Attempts, u.today + d.Rejected[0], u.then + d.Rejected[1]}
	}
	for user, u := range users {
		if u.today > 0 || u.then == 0 {
			continue
		}
		l := loss{user: s.src.names[user], rejected: u.then, attempts: u.attempts}
		if days := s.src.traffic.Roster.Billing; user < len(days) && days[user] > 0 {
			l.boundary = func(from time.Time) time.Time { return boundary(from, days[user]) }
		}
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b loss) int { return cmp.Or(cmp.Compare(b.rejected, a.rejected), cmp.Compare(a.user, b.user)) })
	return list, nil
}

// boundary is the first day not before from on which a billing period begins: a day
// of the month, or its last where it has no such day.
func boundary(from time.Time, day int) time.Time {
	for month := 0; ; month++ {
		first := time.Date(from.Year(), from.Month()+time.Month(month), 1, 0, 0, 0, 0, time.UTC)
		last := first.AddDate(0, 1, -1).Day()
		if at := first.AddDate(0, 0, min(day, last)-1); !at.Before(from) {
			return at
		}
	}
}

// call gives the log's users their pseudonyms.
func (s *source) call(key *roster.Key) error {
	r := s.traffic.Roster
	attempts := make([]int64, r.Users)
	for _, was := range s.was {
		for user := range was.users {
			attempts[user] += was.users[user].attempts
		}
		for user, n := range was.own {
			attempts[user] += n
		}
	}
	s.userOf = make(map[string]int, len(r.IDs))
	for user, id := range r.IDs {
		s.userOf[id] = user
	}
	p := roster.Ranks(attempts)
	if key != nil && r.IDs != nil {
		var err error
		if p, err = key.Pseudonyms(r.IDs); err != nil {
			return err
		}
	}
	s.names = p.Names
	if r.Coverage != nil {
		r.Coverage.Pseudonyms = p.How
	}
	return nil
}
