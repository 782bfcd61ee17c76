package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/invoicespec/brimline/reference/account"
)

const billingStatement = `
select b.begins, b.ends, coalesce(u.used, 0), greatest(coalesce(operations_left(a.id, b.begins), 0), 0),` + entitledColumns + `
from account a
cross join billing_period(a.anchor, $2) b
left join usage u on u.user_id = a.id and u.period = b.begins` + entitledJoins + `
where a.id = $1`

// Billing is what a user is entitled to and has used.
func (s *Store) Billing(ctx context.Context, user string) (account.Billing, error) {
	number, err := userNumber(user)
	if err != nil {
		return account.Billing{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, operatorPatience)
	defer cancel()
	var b account.Billing
	var e entitled
	err = s.pool.QueryRow(ctx, billingStatement, number, s.now()).
		Scan(append([]any{&b.Period.Start, &b.Period.End, &b.Used, &b.Left}, e.targets()...)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return account.Billing{}, unknownUser(user)
	}
	if err != nil {
		return account.Billing{}, fmt.Errorf("billing of user %q: %w", user, err)
	}
	b.Period.Start, b.Period.End = b.Period.Start.UTC(), b.Period.End.UTC()
	b.Record = e.record()
	return b, nil
}

// SetOperations sets the operations that a user has left of the period.
func (s *Store) SetOperations(ctx context.Context, user string, left int64) error {
	if left < 0 {
		return fmt.Errorf("%w: %d operations: want 0 or more", account.ErrRefused, left)
	}
	return s.change(ctx, user, func(ctx context.Context, tx pgx.Tx, who subject) error {
		return execute(ctx, tx, stmt(`
insert into usage (user_id, period, granted) values ($1, $2, $3)
on conflict (user_id, period) do update set granted = usage.used + excluded.granted`, who.number, who.period.Start, left))
	})
}
