package server

import (
	"context"
	"errors"
	"fmt"
)

// addKnown gives a server users that another process has had: the same names on
// the same plans, with the same keys.
func (b backing) addKnown(ctx context.Context, users []User) error {
	if b.known == nil && len(users) > 0 {
		return errors.New("users with keys of their own are for a server without a database: that has its own")
	}
	for _, u := range users {
		if err := b.known(ctx, u.ID, u.Plan, u.Keys); err != nil {
			return fmt.Errorf("user %q: %w", u.ID, err)
		}
	}
	return nil
}
