package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/invoicespec/brimline/reference/account"
)

// leftovers of requests that never ended are forgotten after two periods.
const leftovers = 62 * 24 * time.Hour

// What is reserved and charged of one user's operations is decided under a lock
// on that user's row. A statement that follows the lock sees all that was
// committed before it; both travel in one round trip and are one transaction.
const (
	// A reservation lapses by itself, so it need not outlive a crash of the
	// database, and nobody waits for a disk before their request is worked on.
	lockStatement = `
select id from account, set_config('synchronous_commit', 'off', true) where id = $1 for no key update of account`

	// reserveStatement first lets go what has lapsed, for good, so that no charge
	// on a clock that is behind can still count on it.
	reserveStatement = `
with lapsed as (
    update reservation set lapses = '-infinity'
    where user_id = $1 and not charged and lapses <= $3 and lapses > '-infinity'),
forgotten as (
    delete from reservation
    where user_id = $1 and (charged and lapses <= $3 or reserved <= $5))
insert into reservation (id, user_id, period, reserved, lapses)
select $2, a.id, b.begins, $3, $4 from account a, billing_period(a.anchor, $3) b
where a.id = $1 and operations_free(a.id, b.begins, $3) > 0
returning id`

	lockOfStatement = `
select id from account where id = (select user_id from reservation where id = $1) for no key update`

	chargeStatement = `
with r as (select user_id, period, lapses, charged from reservation where id = $1),
done as (
    update reservation v set charged = true from r
    where v.id = $1 and not r.charged and (r.lapses > $2 or operations_free(r.user_id, r.period, $2) > 0)
    returning v.user_id, v.period),
booked as (
    insert into usage (user_id, period, used) select user_id, period, 1 from done
    on conflict (user_id, period) do update set used = usage.used + 1)
select r.charged or exists (select from done) from r`

	giveBackStatement = `
with _ as materialized (select set_config('synchronous_commit', 'off', true))
delete from reservation using _ where id = $1 and not charged`

	// undoStatement gives back even what was charged.
	undoStatement = `
with gone as (delete from reservation where id = any($1) returning user_id, period, charged),
uncharged as (select user_id, period, count(*) as n from gone where charged group by user_id, period)
update usage u set used = u.used - c.n from uncharged c where u.user_id = c.user_id and u.period = c.period`
)

// Reserve sets one operation of a user aside for request id, so that requests
// side by side never charge more than there is (LOG-7).
func (s *Store) Reserve(ctx context.Context, user, id string) error {
	number, err := userNumber(user)
	if err != nil {
		return err
	}
	now := s.now()
	owed := s.charges.takeOwed()
	again := false
	err = s.promptly(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		var locked int64
		var reserved string
		if len(owed) > 0 { // by itself, so that it outlives a crash of the database
			if _, err := c.Exec(ctx, undoName, owed); err != nil {
				return err
			}
		}
		b := &pgx.Batch{}
		b.Queue(lockName, number).QueryRow(func(row pgx.Row) error { return asUnknown(row.Scan(&locked), unknownUser(user)) })
		b.Queue(reserveName, number, id, now, now.Add(account.ReservationLapse), now.Add(-leftovers)).
			QueryRow(func(row pgx.Row) error { return asUnknown(row.Scan(&reserved), account.ErrExhausted) })
		err := c.SendBatch(ctx, b).Close()
		if isCode(err, "23505") {
			if again { // the first time had come through
				return nil
			}
			return account.ErrReserved
		}
		again = true
		return err
	})
	if err != nil {
		s.charges.owe(owed...)
	}
	if err != nil && !errors.Is(err, account.ErrExhausted) && !errors.Is(err, account.ErrUnknownUser) {
		err = fmt.Errorf("reserve an operation for %q: %w", id, err)
	}
	return err
}

// asUnknown says what it means that there is no row.
func asUnknown(err, meaning error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return meaning
	}
	return err
}

// Charge charges the operation that request id reserved; a second time changes
// nothing. A reservation that has lapsed is charged if an operation is left.
func (s *Store) Charge(ctx context.Context, id string) error {
	now := s.now()
	err := s.promptly(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		var done bool
		b := &pgx.Batch{}
		b.Queue(lockOfName, id)
		b.Queue(chargeName, id, now).QueryRow(func(row pgx.Row) error { return asUnknown(row.Scan(&done), account.ErrUnreserved) })
		err := c.SendBatch(ctx, b).Close()
		if err == nil && !done {
			return account.ErrExhausted
		}
		return err
	})
	switch {
	case err == nil:
		s.charges.set(id, charged)
	case errors.Is(err, account.ErrExhausted):
	case errors.Is(err, account.ErrUnreserved):
		err = fmt.Errorf("%w: %q", err, id)
	default:
		s.charges.set(id, unclear)
		err = fmt.Errorf("charge the operation of %q: %w", id, err)
	}
	return err
}

// GiveBack ends the reservation of request id: what was not charged is there
// again for others, and so is what this process was not told was charged. After
// a charge it asks the database nothing. If the database cannot be reached the
// reservation lapses by itself.
func (s *Store) GiveBack(ctx context.Context, id string) error {
	state := s.charges.take(id)
	if state == charged {
		return nil
	}
	err := s.promptly(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		if state == unclear {
			_, err := c.Exec(ctx, undoName, []string{id})
			return err
		}
		_, err := c.Exec(ctx, giveBackName, id)
		return err
	})
	if err != nil {
		if state == unclear {
			s.charges.owe(id)
		}
		return fmt.Errorf("give back the operation of %q: %w", id, err)
	}
	return nil
}

// charges is what this process knows of its charges: which were made, and need no
// giving back; and which may or may not have been made, for want of an answer. A
// request of the latter kind was told that it was not charged, so that charge is
// owed back, with a later reservation if it cannot be now.
type charges struct {
	mu     sync.Mutex
	states map[string]state
	owed   map[string]bool
}

type state int

const (
	unknown state = iota
	charged
	unclear
)

// Bounds of what is remembered: beyond the first a charge costs one more round
// trip, beyond the second one may stay in the books.
const (
	mostStates = 100_000
	mostOwed   = 10_000
	owedAtOnce = 100
)

func (c *charges) set(id string, s state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.states == nil || len(c.states) >= mostStates {
		c.states = map[string]state{}
	}
	c.states[id] = s
}

func (c *charges) take(id string) state {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.states[id]
	delete(c.states, id)
	return s
}

func (c *charges) owe(ids ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owed == nil {
		c.owed = map[string]bool{}
	}
	for _, id := range ids {
		if len(c.owed) < mostOwed {
			c.owed[id] = true
		}
	}
}

func (c *charges) takeOwed() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := slices.Collect(maps.Keys(c.owed))
	ids = ids[:min(len(ids), owedAtOnce)]
	for _, id := range ids {
		delete(c.owed, id)
	}
	return ids
}
