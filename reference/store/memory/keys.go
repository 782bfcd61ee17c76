package memory

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/invoicespec/brimline/reference/account"
)

// handle is the part of a digest that keys are found by. The rest is compared
// in constant time.
type handle [8]byte

func handleOf(d account.Digest) handle { return handle(d[:len(handle{})]) }

type key struct {
	account.KeyInfo
	digest account.Digest
	user   *holder
}

// AddKey issues one more key of a user.
func (s *Store) AddKey(_ context.Context, user string) (k account.Key, err error) {
	err = s.change(user, func(u *holder, now time.Time) error {
		k, err = s.issue(u, u.record(now).PlanAt(now), now)
		return err
	})
	return k, err
}

// issue requires that s.mu is held.
func (s *Store) issue(u *holder, plan string, now time.Time) (account.Key, error) {
	k, err := account.NewKey(plan)
	if err != nil {
		return account.Key{}, fmt.Errorf("plan %q: %w", plan, err)
	}
	if err := s.take(u, k, now); err != nil {
		return account.Key{}, err
	}
	return k, nil
}

// take makes k one of u's keys; it requires that s.mu is held.
func (s *Store) take(u *holder, k account.Key, now time.Time) error {
	good := 0
	for _, k := range u.keys {
		if k.Revoked.IsZero() {
			good++
		}
	}
	if good >= account.MaxKeys {
		return fmt.Errorf("%w: %d keys of user %q", account.ErrFull, account.MaxKeys, u.id)
	}
	d := s.digester.Of(k)
	if _, taken := s.keys[handleOf(d)]; taken {
		return fmt.Errorf("%w: a key of user %q is there already", account.ErrRefused, u.id)
	}
	kept := &key{
		KeyInfo: account.KeyInfo{ID: u.id + "/" + strconv.Itoa(len(u.keys)+1), Prefix: k.Prefix(), Created: now},
		digest:  d,
		user:    u,
	}
	u.keys = append(u.keys, kept)
	s.keys[handleOf(d)] = kept
	return nil
}

// RevokeKey takes a key from a user; requests that come later do not
// authenticate with it.
func (s *Store) RevokeKey(_ context.Context, user string, k account.Key) error {
	return s.change(user, func(u *holder, now time.Time) error {
		held, ok := s.keys[handleOf(s.digester.Of(k))]
		if !ok || held.user != u {
			return fmt.Errorf("user %q: %w", user, account.ErrUnknownKey)
		}
		s.revoke(held, now)
		return nil
	})
}

// RevokeKeyNamed is RevokeKey for those who have the key's id, or a prefix that
// no other good key of the user has.
func (s *Store) RevokeKeyNamed(_ context.Context, user, name string) error {
	return s.change(user, func(u *holder, now time.Time) error {
		var found []*key
		for _, k := range u.keys {
			if k.Revoked.IsZero() && (k.ID == name || k.Prefix == name) {
				found = append(found, k)
			}
		}
		switch len(found) {
		case 0:
			return fmt.Errorf("user %q, key %q: %w", user, account.MaskKeys(name), account.ErrUnknownKey)
		case 1:
			s.revoke(found[0], now)
			return nil
		}
		return fmt.Errorf("%w: %d keys of user %q begin with %q: name one by its id", account.ErrRefused, len(found), user, name)
	})
}

func (s *Store) revoke(k *key, now time.Time) {
	k.Revoked = now
	delete(s.keys, handleOf(k.digest))
}

// Keys lists what is known of a user's keys, the oldest first.
func (s *Store) Keys(_ context.Context, user string) (infos []account.KeyInfo, err error) {
	err = s.change(user, func(u *holder, _ time.Time) error {
		for _, k := range u.keys {
			infos = append(infos, k.KeyInfo)
		}
		return nil
	})
	return infos, err
}
