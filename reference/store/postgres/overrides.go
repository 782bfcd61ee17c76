package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/policy"
)

// SetOverride replaces one dimension for a user. A value out of range, or whose
// text is not well-formed, is refused (OVR-3); what it replaces stays in the
// history (OVR-7).
func (s *Store) SetOverride(ctx context.Context, user string, o policy.Override, by account.Note) error {
	if err := account.CheckOverride(o, by); err != nil {
		return err
	}
	return s.change(ctx, user, func(ctx context.Context, tx pgx.Tx, who subject) error {
		return replace(ctx, tx, who, o, by)
	})
}

// StoreOverride is SetOverride of any text, as a broken store would hold it
// (CFG-5). It gets past the constraint as whoever restores a table would: the
// constraint is put aside and back in one transaction, unvalidated, and goes on
// holding for everybody else.
func (s *Store) StoreOverride(ctx context.Context, user string, o policy.Override) error {
	if err := o.Dimension.Check(); err != nil {
		return fmt.Errorf("%w: %w", account.ErrRefused, err)
	}
	if err := account.CheckStored(o.Value); err != nil {
		return err
	}
	return s.change(ctx, user, func(ctx context.Context, tx pgx.Tx, who subject) error {
		var constraint string
		if err := tx.QueryRow(ctx, `
select pg_get_constraintdef(oid) from pg_constraint
where conrelid = 'rate_override'::regclass and conname = 'override_value'`).Scan(&constraint); err != nil {
			return err
		}
		if err := execute(ctx, tx,
			stmt(`set local lock_timeout = '1s'`), // lookups queue behind whoever waits for this lock
			stmt(`alter table rate_override drop constraint override_value`)); err != nil {
			return err
		}
		if err := replace(ctx, tx, who, o, account.PastChecks()); err != nil {
			return err
		}
		return execute(ctx, tx, stmt(`alter table rate_override add constraint override_value `+
			strings.TrimSuffix(constraint, " NOT VALID")+` not valid`))
	})
}

// EndOverride ends the override of one dimension, if there is one.
func (s *Store) EndOverride(ctx context.Context, user string, d policy.Dimension, by account.Note) error {
	if err := d.Check(); err != nil {
		return fmt.Errorf("%w: %w", account.ErrRefused, err)
	}
	if err := by.Check(); err != nil {
		return err
	}
	return s.change(ctx, user, func(ctx context.Context, tx pgx.Tx, who subject) error {
		return execute(ctx, tx, end(who, d, by))
	})
}

// end ends the last override of a dimension. One that has expired has ended by
// itself, then, and by nobody.
func end(who subject, d policy.Dimension, by account.Note) statement {
	return stmt(`
update rate_override set ended_at = least(expires, $3),
    ended_by = case when expires <= $3 then null else $4 end,
    ended_reason = case when expires <= $3 then null else $5 end
where user_id = $1 and dimension = $2 and ended_at is null`, who.number, d, who.now, by.Author, by.Reason)
}

func replace(ctx context.Context, tx pgx.Tx, who subject, o policy.Override, by account.Note) error {
	o, err := account.StoredOverride(o, who.now)
	if err != nil {
		return err
	}
	var had int
	if err := tx.QueryRow(ctx, `select count(*) from rate_override where user_id = $1`, who.number).Scan(&had); err != nil {
		return err
	}
	if had >= account.MaxOverrides {
		return fmt.Errorf("%w: %d overrides", account.ErrFull, account.MaxOverrides)
	}
	return execute(ctx, tx,
		end(who, o.Dimension, by),
		stmt(`insert into rate_override (user_id, dimension, value, expires, set_at, author, reason) values ($1, $2, $3, $4, $5, $6, $7)`,
			who.number, o.Dimension, o.Value, orNull(o.Expires), who.now, by.Author, by.Reason))
}

// Overrides is the history of a user's overrides, the oldest first.
func (s *Store) Overrides(ctx context.Context, user string) (history []account.OverrideEntry, err error) {
	err = s.read(ctx, user, func(ctx context.Context, tx pgx.Tx, who subject) error {
		rows, err := tx.Query(ctx, `
select dimension, value, expires, set_at, author, reason,
       case when ended_by is not null then ended_at end, coalesce(ended_by, ''), coalesce(ended_reason, '')
from rate_override where user_id = $1 order by id`, who.number)
		if err != nil {
			return err
		}
		history, err = pgx.CollectRows(rows, scanOverride)
		return err
	})
	return history, err
}

func scanOverride(row pgx.CollectableRow) (account.OverrideEntry, error) {
	var e account.OverrideEntry
	var expires, ended *time.Time
	err := row.Scan(&e.Dimension, &e.Value, &expires, &e.Set, &e.By.Author, &e.By.Reason, &ended, &e.EndBy.Author, &e.EndBy.Reason)
	e.Expires, e.Set, e.Ended = utc(expires), e.Set.UTC(), utc(ended)
	return e, err
}
