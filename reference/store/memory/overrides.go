package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/policy"
)

// active is the overrides that hold at now.
func (u *holder) active(now time.Time) []policy.Override {
	var found []policy.Override
	for _, i := range u.current {
		if o := u.history[i].Override; o.ActiveAt(now) {
			found = append(found, o)
		}
	}
	return found
}

// SetOverride replaces one dimension for a user. A value out of range, or whose
// text is not well-formed, is refused (OVR-3); what it replaces stays in the
// history (OVR-7).
func (s *Store) SetOverride(_ context.Context, user string, o policy.Override, by account.Note) error {
	if err := account.CheckOverride(o, by); err != nil {
		return err
	}
	return s.change(user, func(u *holder, now time.Time) error {
		return u.override(o, by, now)
	})
}

// StoreOverride is SetOverride of any text, as a broken store would hold it
// (CFG-5).
func (s *Store) StoreOverride(_ context.Context, user string, o policy.Override) error {
	if err := o.Dimension.Check(); err != nil {
		return fmt.Errorf("%w: %w", account.ErrRefused, err)
	}
	if err := account.CheckStored(o.Value); err != nil {
		return err
	}
	return s.change(user, func(u *holder, now time.Time) error {
		return u.override(o, account.PastChecks(), now)
	})
}

// EndOverride ends the override of one dimension, if there is one.
func (s *Store) EndOverride(_ context.Context, user string, d policy.Dimension, by account.Note) error {
	if err := d.Check(); err != nil {
		return fmt.Errorf("%w: %w", account.ErrRefused, err)
	}
	if err := by.Check(); err != nil {
		return err
	}
	return s.change(user, func(u *holder, now time.Time) error {
		u.endOverride(d, by, now)
		return nil
	})
}

func (u *holder) override(o policy.Override, by account.Note, now time.Time) error {
	o, err := account.StoredOverride(o, now)
	if err != nil {
		return err
	}
	if len(u.history) >= account.MaxOverrides {
		return fmt.Errorf("%w: %d overrides of user %q", account.ErrFull, account.MaxOverrides, u.id)
	}
	u.endOverride(o.Dimension, by, now)
	u.current = append(u.current, len(u.history))
	u.history = append(u.history, account.OverrideEntry{Override: o, Set: now, By: by})
	return nil
}

func (u *holder) endOverride(d policy.Dimension, by account.Note, now time.Time) {
	u.current = slices.DeleteFunc(u.current, func(i int) bool {
		e := &u.history[i]
		if e.Dimension != d {
			return false
		}
		if e.ActiveAt(now) {
			e.Ended, e.EndBy = now, by
		}
		return true
	})
}

// Overrides is the history of a user's overrides, the oldest first.
func (s *Store) Overrides(_ context.Context, user string) (history []account.OverrideEntry, err error) {
	err = s.change(user, func(u *holder, _ time.Time) error {
		history = slices.Clone(u.history)
		return nil
	})
	return history, err
}
