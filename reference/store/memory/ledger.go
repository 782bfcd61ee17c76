package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/invoicespec/brimline/reference/account"
)

// usage is what a user has used of one billing period.
type usage struct {
	granted *int64 // operations of the period; nil: what the plan says
	used    int64
}

// reservation is one operation of a request in flight.
type reservation struct {
	user    *holder
	period  time.Time // the start of the period that it is charged to
	lapses  time.Time
	lapsed  bool // was seen to have lapsed: whatever the clock says later, others may have taken the operation
	charged bool
}

// leftovers of requests that never ended are forgotten after two periods.
const leftovers = 62 * 24 * time.Hour

func (r *reservation) holds(now time.Time) bool {
	r.lapsed = r.lapsed || !now.Before(r.lapses)
	return !r.charged && !r.lapsed
}

// Reserve sets one operation of a user aside for request id, so that requests
// side by side never charge more than there is (LOG-7).
func (s *Store) Reserve(_ context.Context, user, id string) error {
	return s.change(user, func(u *holder, now time.Time) error {
		if _, ok := s.reserved[id]; ok {
			return fmt.Errorf("%w: %q", account.ErrReserved, id)
		}
		period := account.PeriodAt(u.anchor, now).Start
		if s.room(u, period, now) <= 0 {
			return account.ErrExhausted
		}
		r := &reservation{user: u, period: period, lapses: now.Add(account.ReservationLapse)}
		s.reserved[id], u.reserved[id] = r, r
		return nil
	})
}

// room is the operations of a period that are neither charged nor reserved.
func (s *Store) room(u *holder, period, now time.Time) int64 {
	n := u.left(period)
	for id, r := range u.reserved {
		if r.holds(now) && r.period.Equal(period) {
			n--
		}
		if r.charged && !now.Before(r.lapses) || r.lapsed && now.Sub(r.lapses) > leftovers {
			s.forget(id, r)
		}
	}
	return n
}

// left is the operations of a period that are not charged. There are less than
// none if they were set to less while a request held one.
func (u *holder) left(period time.Time) int64 {
	granted := u.plans[u.subscriptions[u.startedBy(period)].plan].Operations
	use := u.use(period)
	if use.granted != nil {
		granted = *use.granted
	}
	return granted - use.used
}

func (u *holder) use(period time.Time) *usage {
	at := period.UnixMicro()
	if u.usage[at] == nil {
		u.usage[at] = &usage{}
	}
	return u.usage[at]
}

// Charge charges the operation that request id reserved; a second time changes
// nothing. A reservation that has lapsed is charged if an operation is left.
func (s *Store) Charge(_ context.Context, id string) error {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.reserved[id]
	switch {
	case !ok:
		return fmt.Errorf("%w: %q", account.ErrUnreserved, id)
	case r.charged:
		return nil
	case !r.holds(now) && s.room(r.user, r.period, now) <= 0:
		return account.ErrExhausted
	}
	r.charged = true
	r.user.use(r.period).used++
	return nil
}

// GiveBack ends the reservation of request id: what was not charged is there
// again for others. It is called once a request has ended, however it did.
func (s *Store) GiveBack(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.reserved[id]; ok {
		s.forget(id, r)
	}
	return nil
}

func (s *Store) forget(id string, r *reservation) {
	delete(s.reserved, id)
	delete(r.user.reserved, id)
}

// SetOperations sets the operations that a user has left of the period.
func (s *Store) SetOperations(_ context.Context, user string, left int64) error {
	if left < 0 {
		return fmt.Errorf("%w: %d operations: want 0 or more", account.ErrRefused, left)
	}
	return s.change(user, func(u *holder, now time.Time) error {
		use := u.use(account.PeriodAt(u.anchor, now).Start)
		use.granted = new(use.used + left)
		return nil
	})
}

// Billing is what a user is entitled to and has used.
func (s *Store) Billing(_ context.Context, user string) (b account.Billing, err error) {
	err = s.change(user, func(u *holder, now time.Time) error {
		period := account.PeriodAt(u.anchor, now)
		b = account.Billing{
			Record: u.record(now),
			Period: period,
			Used:   u.use(period.Start).used,
			Left:   max(0, u.left(period.Start)),
		}
		return nil
	})
	return b, err
}
