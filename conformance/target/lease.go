package target

import (
	"context"

	"github.com/invoicespec/brimline/conformance/oracle"
)

// User is a leased user: nobody else in this run uses it until it is returned.
type User struct {
	ID     string
	Plan   string
	Bucket *oracle.Bucket // what is known of its bucket; kept up to date by Send, Hold and the setters of policy
}

// Keys is how many keys the user has.
func (u *User) Keys() int { return 0 }

// Secret is one of the user's keys, for looking whether something shows it.
func (u *User) Secret(key int) Secret { return Secret{} }

// Lease lends out a user on a plan with so many keys: a fresh one where the
// target can make users, whose bucket is known to be full, else the one of the
// keys file whose bucket is known to be fullest. Its error wraps [ErrNoUser] and
// says what is missing.
func (t *Target) Lease(ctx context.Context, plan string, keys int) (*User, error) {
	return nil, ErrNoUser
}

// Return ends a lease: requests still held are dropped, gates opened, and what
// was changed by control is put back.
func (t *Target) Return(ctx context.Context, u *User) error { return nil }

// Rest makes the user's bucket certainly full. Where its level is not known it
// sends one valid request to learn it; then it waits as long as it takes. The
// exchange is that request's; zero if none was sent.
func (t *Target) Rest(ctx context.Context, u *User) (Exchange, error) { return Exchange{}, nil }
