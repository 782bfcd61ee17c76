package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/policy"
)

// AddPlans adds those plans that the database does not have; those that it has
// stay as they are.
func (s *Store) AddPlans(ctx context.Context, plans map[string]policy.Plan) error {
	err := s.transaction(ctx, func(ctx context.Context, tx pgx.Tx) error {
		for name, p := range plans {
			text := func(d policy.Dimension) *string {
				if text, ok := p.Entitlements[d]; ok {
					return &text
				}
				return nil
			}
			if _, err := tx.Exec(ctx, `
insert into plan (id, name, operations, requests_per_minute, burst, concurrency)
values ($1, $1, $2, $3, $4, $5) on conflict (id) do nothing`,
				name, p.Operations, text(policy.RequestsPerMinute), text(policy.Burst), text(policy.Concurrency)); err != nil {
				return fmt.Errorf("plan %q: %w", name, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("add plans: %w", err)
	}
	return nil
}

// checkPlan refuses what is no plan on offer: a variant that a user is on is none.
func checkPlan(ctx context.Context, tx pgx.Tx, name string) error {
	var found bool
	err := tx.QueryRow(ctx, `select true from plan where id = $1 and owner is null`, text(name)).Scan(&found)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%w %q", account.ErrUnknownPlan, name)
	}
	return err
}

// begin lets a plan begin at an instant, and nothing after it.
func begin(ctx context.Context, tx pgx.Tx, who subject, from time.Time, plan string) error {
	return execute(ctx, tx,
		stmt(`delete from subscription where user_id = $1 and begins > $2`, who.number, who.at),
		stmt(`
insert into subscription (user_id, begins, plan_id) values ($1, $2, $3)
on conflict (user_id, begins) do update set plan_id = excluded.plan_id`, who.number, from, plan))
}

// SchedulePlan lets a plan take over at the end of the billing period, in place
// of any that was scheduled, and returns that boundary (PLAN-2).
func (s *Store) SchedulePlan(ctx context.Context, user, plan string) (boundary time.Time, err error) {
	err = s.change(ctx, user, func(ctx context.Context, tx pgx.Tx, who subject) error {
		if err := checkPlan(ctx, tx, plan); err != nil {
			return err
		}
		boundary = who.period.End
		return begin(ctx, tx, who, boundary, plan)
	})
	return boundary, err
}

// CancelPlan takes back what was scheduled, if anything was.
func (s *Store) CancelPlan(ctx context.Context, user string) error {
	return s.change(ctx, user, func(ctx context.Context, tx pgx.Tx, who subject) error {
		_, err := tx.Exec(ctx, `delete from subscription where user_id = $1 and begins > $2`, who.number, who.at)
		return err
	})
}

// EndPeriod makes now the boundary: a new billing period begins, with a
// scheduled plan and without any operation used.
func (s *Store) EndPeriod(ctx context.Context, user string) (p account.Period, err error) {
	err = s.change(ctx, user, func(ctx context.Context, tx pgx.Tx, who subject) error {
		var next string
		err := tx.QueryRow(ctx, `
select plan_id from subscription where user_id = $1 and begins > $2 order by begins limit 1`, who.number, who.at).Scan(&next)
		switch {
		case err == nil:
			err = begin(ctx, tx, who, who.at, next)
		case errors.Is(err, pgx.ErrNoRows):
			err = nil
		}
		if err != nil {
			return err
		}
		p, err = endPeriod(ctx, tx, who)
		return err
	})
	return p, err
}

func endPeriod(ctx context.Context, tx pgx.Tx, who subject) (account.Period, error) {
	return account.PeriodAt(who.at, who.at), execute(ctx, tx,
		stmt(`update account set anchor = $2 where id = $1`, who.number, who.at),
		stmt(`
insert into usage (user_id, period) values ($1, $2)
on conflict (user_id, period) do update set granted = null, used = 0`, who.number, who.at))
}

// SetPlan puts a plan in force at once: it is scheduled, and the period ended.
func (s *Store) SetPlan(ctx context.Context, user, plan string) error {
	return s.change(ctx, user, func(ctx context.Context, tx pgx.Tx, who subject) error {
		if err := checkPlan(ctx, tx, plan); err != nil {
			return err
		}
		if err := begin(ctx, tx, who, who.at, plan); err != nil {
			return err
		}
		_, err := endPeriod(ctx, tx, who)
		return err
	})
}

// StoreEntitlement replaces one entitlement of the plan in force, for this user
// alone, by any text: what a broken store would hold (CFG-1).
func (s *Store) StoreEntitlement(ctx context.Context, user string, d policy.Dimension, text string) error {
	if err := account.CheckStored(text); err != nil {
		return err
	}
	return s.alter(ctx, user, d, &text)
}

// RemoveEntitlement takes one entitlement of the plan in force from this user
// alone, as if it had never been stored.
func (s *Store) RemoveEntitlement(ctx context.Context, user string, d policy.Dimension) error {
	return s.alter(ctx, user, d, nil)
}

// alter puts the user on a variant of the plan in force, made anew unless that is
// where the user is.
func (s *Store) alter(ctx context.Context, user string, d policy.Dimension, to *string) error {
	column, ok := map[policy.Dimension]string{
		policy.RequestsPerMinute: "requests_per_minute", policy.Burst: "burst", policy.Concurrency: "concurrency",
	}[d]
	if !ok {
		return fmt.Errorf("%w: %w", account.ErrRefused, d.Check())
	}
	return s.change(ctx, user, func(ctx context.Context, tx pgx.Tx, who subject) error {
		id, name, begins, err := inForce(ctx, tx, who)
		if err != nil {
			return err
		}
		variant := name + "~" + user
		if id != variant {
			if err := execute(ctx, tx,
				stmt(`
insert into plan (id, name, owner, operations, requests_per_minute, burst, concurrency)
select $2, name, $3, operations, requests_per_minute, burst, concurrency from plan where id = $1
on conflict (id) do update set operations = excluded.operations, requests_per_minute = excluded.requests_per_minute,
    burst = excluded.burst, concurrency = excluded.concurrency`, id, variant, who.number),
				stmt(`update subscription set plan_id = $3 where user_id = $1 and begins = $2`, who.number, begins, variant)); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `update plan set `+column+` = $2 where id = $1`, variant, to)
		return err
	})
}

// MendEntitlements puts the user back on the plan itself.
func (s *Store) MendEntitlements(ctx context.Context, user string) error {
	return s.change(ctx, user, func(ctx context.Context, tx pgx.Tx, who subject) error {
		_, name, begins, err := inForce(ctx, tx, who)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `update subscription set plan_id = $3 where user_id = $1 and begins = $2 and plan_id <> $3`, who.number, begins, name)
		return err
	})
}

// inForce is the plan that a user is on, and since when.
func inForce(ctx context.Context, tx pgx.Tx, who subject) (id, name string, begins time.Time, err error) {
	err = tx.QueryRow(ctx, `
select p.id, p.name, s.begins from subscription s join plan p on p.id = s.plan_id
where s.user_id = $1 and s.begins <= $2 order by s.begins desc limit 1`, who.number, who.at).Scan(&id, &name, &begins)
	return id, name, begins, err
}
