package account

import (
	"errors"
	"time"

	"github.com/invoicespec/brimline/reference/policy"
)

// What a store answers, whichever it is.
var (
	ErrUnknownUser = errors.New("unknown user")
	ErrUnknownPlan = errors.New("unknown plan")
	ErrFull        = errors.New("the store holds as much as it may")
	// ErrUnknownKey: the key was never issued or has been revoked, it does not
	// say which.
	ErrUnknownKey = errors.New("unknown API key")
	// ErrRefused: what an operator asked to be written makes no sense; nothing
	// was changed.
	ErrRefused = errors.New("refused")
	// ErrExhausted: every paid operation of the period is charged or reserved.
	ErrExhausted = errors.New("no operation left in this billing period")
	// ErrReserved: a reservation's id is used once.
	ErrReserved = errors.New("an operation is reserved for this request already")
	// ErrUnreserved: there is nothing to charge, or no longer.
	ErrUnreserved = errors.New("no operation is reserved for this request")
)

// Record is all that one lookup of a key finds, so that nothing has to be asked
// a second time in the same request (AUTH-2).
type Record struct {
	User         string
	KeyID        string                 // names the key in an audit; opens nothing
	Plans        map[string]policy.Plan // by id, at least those that Subscription names; read-only
	Subscription policy.Subscription
	Overrides    []policy.Override
}

// PlanAt is the name of the plan in force at now. Several plans can have one
// name: a user may be on a variant of a plan.
func (r Record) PlanAt(now time.Time) string { return r.Plans[r.Subscription.PlanAt(now)].Name }
