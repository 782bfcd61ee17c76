package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/invoicespec/brimline/reference/account"
)

func keyID(user string, number int64) string { return user + "/" + strconv.FormatInt(number, 10) }

// CreateUser adds a user of plan with so many keys, and returns both. The keys
// are not kept and cannot be had again.
func (s *Store) CreateUser(ctx context.Context, plan string, keys int) (user string, issued []account.Key, err error) {
	if keys > account.MaxKeys {
		return "", nil, fmt.Errorf("%w: %d keys a user, not %d", account.ErrFull, account.MaxKeys, keys)
	}
	now := s.now()
	err = s.transaction(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := checkPlan(ctx, tx, plan); err != nil {
			return err
		}
		who := subject{at: now, now: now}
		if err := tx.QueryRow(ctx, `insert into account (anchor, created) values ($1, $1) returning id`, now).Scan(&who.number); err != nil {
			return err
		}
		user, issued = userID(who.number), nil
		if err := begin(ctx, tx, who, now, plan); err != nil {
			return err
		}
		for range keys {
			k, err := s.issue(ctx, tx, who, plan)
			if err != nil {
				return err
			}
			issued = append(issued, k)
		}
		return nil
	})
	if err != nil {
		return "", nil, fmt.Errorf("create a user: %w", err)
	}
	return user, issued, nil
}

// Known reports whether there is such a user.
func (s *Store) Known(ctx context.Context, user string) (bool, error) {
	err := s.read(ctx, user, func(context.Context, pgx.Tx, subject) error { return nil })
	if errors.Is(err, account.ErrUnknownUser) {
		return false, nil
	}
	return err == nil, err
}

// AddKey issues one more key of a user.
func (s *Store) AddKey(ctx context.Context, user string) (k account.Key, err error) {
	err = s.change(ctx, user, func(ctx context.Context, tx pgx.Tx, who subject) error {
		_, plan, _, err := inForce(ctx, tx, who)
		if err != nil {
			return err
		}
		k, err = s.issue(ctx, tx, who, plan)
		return err
	})
	return k, err
}

func (s *Store) issue(ctx context.Context, tx pgx.Tx, who subject, plan string) (account.Key, error) {
	k, err := account.NewKey(plan)
	if err != nil {
		return account.Key{}, fmt.Errorf("plan %q: %w", plan, err)
	}
	d := s.digester.Of(k)
	tag, err := tx.Exec(ctx, `
insert into api_key (user_id, number, handle, digest, prefix, created)
select $1, coalesce(max(number), 0) + 1, $2, $3, $4, $5 from api_key where user_id = $1
having count(*) filter (where revoked is null) < $6`,
		who.number, handleOf(d), d[:], k.Prefix(), who.now, account.MaxKeys)
	if err == nil && tag.RowsAffected() == 0 {
		err = fmt.Errorf("%w: %d keys of user %q", account.ErrFull, account.MaxKeys, userID(who.number))
	}
	return k, err
}

// RevokeKey takes a key from a user; requests that come later do not
// authenticate with it.
func (s *Store) RevokeKey(ctx context.Context, user string, k account.Key) error {
	d := s.digester.Of(k)
	return s.change(ctx, user, func(ctx context.Context, tx pgx.Tx, who subject) error {
		tag, err := tx.Exec(ctx, `
update api_key set revoked = $4 where user_id = $1 and handle = $2 and digest = $3 and revoked is null`,
			who.number, handleOf(d), d[:], who.now)
		if err == nil && tag.RowsAffected() == 0 {
			err = fmt.Errorf("user %q: %w", user, account.ErrUnknownKey)
		}
		return err
	})
}

// RevokeKeyNamed is RevokeKey for those who have the key's id, or a prefix that
// no other good key of the user has.
func (s *Store) RevokeKeyNamed(ctx context.Context, user, name string) error {
	return s.change(ctx, user, func(ctx context.Context, tx pgx.Tx, who subject) error {
		keys, err := keysOf(ctx, tx, who)
		if err != nil {
			return err
		}
		var found []int64
		for _, k := range keys {
			if k.info.Revoked.IsZero() && (k.info.ID == name || k.info.Prefix == name) {
				found = append(found, k.number)
			}
		}
		switch len(found) {
		case 0:
			return fmt.Errorf("user %q, key %q: %w", user, account.MaskKeys(name), account.ErrUnknownKey)
		case 1:
			_, err := tx.Exec(ctx, `update api_key set revoked = $3 where user_id = $1 and number = $2`, who.number, found[0], who.now)
			return err
		}
		return fmt.Errorf("%w: %d keys of user %q begin with %q: name one by its id", account.ErrRefused, len(found), user, name)
	})
}

// Keys lists what is known of a user's keys, the oldest first.
func (s *Store) Keys(ctx context.Context, user string) (infos []account.KeyInfo, err error) {
	err = s.read(ctx, user, func(ctx context.Context, tx pgx.Tx, who subject) error {
		keys, err := keysOf(ctx, tx, who)
		for _, k := range keys {
			infos = append(infos, k.info)
		}
		return err
	})
	return infos, err
}

type numberedKey struct {
	number int64
	info   account.KeyInfo
}

func keysOf(ctx context.Context, tx pgx.Tx, who subject) ([]numberedKey, error) {
	rows, err := tx.Query(ctx, `select number, prefix, created, revoked from api_key where user_id = $1 order by number`, who.number)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (numberedKey, error) {
		var k numberedKey
		var revoked *time.Time
		err := row.Scan(&k.number, &k.info.Prefix, &k.info.Created, &revoked)
		k.info.ID = keyID(userID(who.number), k.number)
		k.info.Created, k.info.Revoked = k.info.Created.UTC(), utc(revoked)
		return k, err
	})
}
