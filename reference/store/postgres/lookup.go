package postgres

import (
	"context"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/policy"
)

// entitled is what a policy is resolved from, of the account a at the instant
// $2: the plan in force and the next, and the active overrides. What an operator
// has put in force is not undone by a clock that is set back: no plan is looked
// for before the anchor.
const (
	entitledColumns = `
       a.id, p.id, p.name, p.operations, p.requests_per_minute, p.burst, p.concurrency,
       n.begins, q.id, q.name, q.operations, q.requests_per_minute, q.burst, q.concurrency,
       o.dimensions, o.values, o.expiries`
	entitledJoins = `
left join lateral (
    select plan_id from subscription
    where user_id = a.id and begins <= greatest(a.anchor, $2) order by begins desc limit 1) s on true
left join plan p on p.id = s.plan_id
left join lateral (
    select plan_id, begins from subscription
    where user_id = a.id and begins > greatest(a.anchor, $2) order by begins limit 1) n on true
left join plan q on q.id = n.plan_id
cross join lateral (
    select array_agg(dimension) as dimensions, array_agg(value) as values, array_agg(expires) as expiries
    from rate_override where user_id = a.id and ended_at is null and (expires is null or expires > $2)) o`
)

// lookupStatement finds the good key with a handle. It reads indexes alone.
const lookupStatement = `
select k.digest, k.number,` + entitledColumns + `
from api_key k
join account a on a.id = k.user_id` + entitledJoins + `
where k.handle = $1 and k.revoked is null`

// Lookup finds the owner of a key and all that its policy is resolved from, in
// one round trip or from what an earlier one has found. Nothing about keys that
// are not good is kept.
func (s *Store) Lookup(ctx context.Context, d account.Digest) (account.Record, error) {
	return s.cache.lookup(ctx, d, s.now, func() (account.Record, error) {
		rec, err := s.find(ctx, d)
		if err != nil && !errors.Is(err, account.ErrUnknownKey) {
			err = fmt.Errorf("look up a key: %w", err)
		}
		return rec, err
	})
}

func (s *Store) find(ctx context.Context, d account.Digest) (rec account.Record, err error) {
	err = s.promptly(ctx, func(ctx context.Context, c *pgxpool.Conn) error {
		var digest []byte
		var number int64
		e := entitled{}
		err := c.QueryRow(ctx, lookupName, handleOf(d), s.now()).Scan(append([]any{&digest, &number}, e.targets()...)...)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && subtle.ConstantTimeCompare(digest, d[:]) != 1 {
			rec = account.Record{}
			return account.ErrUnknownKey
		}
		if err == nil {
			rec = e.record()
			rec.KeyID = keyID(rec.User, number)
		}
		return err
	})
	return rec, err
}

// handleOf is the part of a digest that keys are found by. The rest is compared
// in constant time.
func handleOf(d account.Digest) int64 { return int64(binary.BigEndian.Uint64(d[:8])) }

// entitled is where the columns of the same name are read to.
type entitled struct {
	user       int64
	plan, next planRow
	begins     *time.Time
	dimensions []policy.Dimension
	values     []string
	expiries   []*time.Time
}

// planRow is a plan, or that there is none.
type planRow struct {
	id, name                *string
	operations              *int64
	rate, burst, concurrent *string
}

func (p *planRow) targets() []any {
	return []any{&p.id, &p.name, &p.operations, &p.rate, &p.burst, &p.concurrent}
}

func (e *entitled) targets() []any {
	all := append([]any{&e.user}, e.plan.targets()...)
	all = append(append(all, &e.begins), e.next.targets()...)
	return append(all, &e.dimensions, &e.values, &e.expiries)
}

func (e *entitled) record() account.Record {
	rec := account.Record{User: userID(e.user), Plans: map[string]policy.Plan{}}
	if e.plan.id != nil {
		rec.Subscription.Plan = *e.plan.id
		rec.Plans[*e.plan.id] = e.plan.plan()
	}
	if e.next.id != nil {
		rec.Subscription.Scheduled, rec.Subscription.Boundary = *e.next.id, utc(e.begins)
		rec.Plans[*e.next.id] = e.next.plan()
	}
	for i, d := range e.dimensions {
		rec.Overrides = append(rec.Overrides, policy.Override{Dimension: d, Value: e.values[i], Expires: utc(e.expiries[i])})
	}
	return rec
}

func (p *planRow) plan() policy.Plan {
	plan := policy.Plan{Name: *p.name, Operations: *p.operations, Entitlements: map[policy.Dimension]string{}}
	for d, text := range map[policy.Dimension]*string{
		policy.RequestsPerMinute: p.rate, policy.Burst: p.burst, policy.Concurrency: p.concurrent,
	} {
		if text != nil {
			plan.Entitlements[d] = *text
		}
	}
	return plan
}
