package reassess

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/invoicespec/brimline/reports/record"
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
	name := s.src.names()
	for user, u := range users {
		if u.today > 0 || u.then == 0 {
			continue
		}
		l := loss{user: name(user), rejected: u.then, attempts: u.attempts}
		if of := s.src.people.Boundary; of != nil {
			if _, ok := of(user, time.Time{}); ok {
				l.boundary = func(from time.Time) time.Time {
					at, _ := of(user, from)
					return at
				}
			}
		}
		list = append(list, l)
	}
	slices.SortFunc(list, func(a, b loss) int { return cmp.Or(cmp.Compare(b.rejected, a.rejected), cmp.Compare(a.user, b.user)) })
	return list, nil
}

// names are pseudonyms of a log's users: what the people's register says, or their
// rank by attempts.
func (s *source) names() func(user int) string {
	if s.people.Name != nil {
		return s.people.Name
	}
	attempts := make([]int64, s.traffic.Roster.Users)
	for _, r := range s.was {
		for user := range r.users {
			attempts[user] += r.users[user].attempts + r.own[user].attempts
		}
	}
	order, rank := make([]int, len(attempts)), make([]int, len(attempts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(attempts[b], attempts[a]) })
	for i, user := range order {
		rank[user] = i + 1
	}
	return func(user int) string { return fmt.Sprintf("u%04d", rank[user]) }
}
