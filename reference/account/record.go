package account

import (
	"errors"

	"github.com/invoicespec/brimline/reference/policy"
)

// ErrUnknownKey is a lookup's answer for a key that was never issued or has
// been revoked; it does not say which.
var ErrUnknownKey = errors.New("unknown API key")

// Record is all that one lookup of a key finds, so that nothing has to be asked
// a second time in the same request (AUTH-2).
type Record struct {
	User         string
	KeyID        string                 // names the key in an audit; opens nothing
	Plans        map[string]policy.Plan // those that Subscription names; read-only
	Subscription policy.Subscription
	Overrides    []policy.Override
}
