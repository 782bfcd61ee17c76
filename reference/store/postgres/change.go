package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/invoicespec/brimline/reference/account"
)

// subject is the user that an operator does something about, at one instant.
type subject struct {
	number int64
	now    time.Time // by the clock
	at     time.Time // the same, but never before what an operator has put in force
	period account.Period
}

// change does something about one user, whole or not at all. The next request to
// this process sees it.
func (s *Store) change(ctx context.Context, user string, do func(context.Context, pgx.Tx, subject) error) error {
	defer s.cache.flushUser(user)
	return s.about(ctx, user, selectSubject+" for no key update of a", do)
}

// read finds something out about one user.
func (s *Store) read(ctx context.Context, user string, do func(context.Context, pgx.Tx, subject) error) error {
	return s.about(ctx, user, selectSubject, do)
}

const selectSubject = `
select greatest(a.anchor, $2), b.begins, b.ends from account a, billing_period(a.anchor, $2) b
where a.id = $1`

func (s *Store) about(ctx context.Context, user, find string, do func(context.Context, pgx.Tx, subject) error) error {
	who := subject{now: s.now()}
	var err error
	if who.number, err = userNumber(user); err != nil {
		return err
	}
	err = s.transaction(ctx, func(ctx context.Context, tx pgx.Tx) error {
		err := tx.QueryRow(ctx, find, who.number, who.now).Scan(&who.at, &who.period.Start, &who.period.End)
		if errors.Is(err, pgx.ErrNoRows) {
			return unknownUser(user)
		}
		if err != nil {
			return err
		}
		who.at, who.period.Start, who.period.End = who.at.UTC(), who.period.Start.UTC(), who.period.End.UTC()
		return do(ctx, tx, who)
	})
	if err != nil && !errors.Is(err, account.ErrUnknownUser) {
		err = fmt.Errorf("user %q: %w", user, err)
	}
	return err
}

func (s *Store) transaction(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, operatorPatience)
	defer cancel()
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return do(ctx, tx) })
}

// execute runs statements one after the other, each with its arguments.
func execute(ctx context.Context, tx pgx.Tx, statements ...statement) error {
	for _, st := range statements {
		if _, err := tx.Exec(ctx, st.text, st.args...); err != nil {
			return err
		}
	}
	return nil
}

type statement struct {
	text string
	args []any
}

func stmt(text string, args ...any) statement { return statement{text: text, args: args} }
