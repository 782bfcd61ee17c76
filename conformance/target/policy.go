package target

import (
	"context"
	"time"

	"github.com/invoicespec/brimline/conformance/contract/control"
)

// Dimension is one of the three numbers of an allowance, by the name that the
// control protocol uses.
type Dimension string

// The dimensions.
const (
	RequestsPerMinute Dimension = "requests-per-minute"
	Burst             Dimension = "burst"
	Concurrency       Dimension = "concurrency"
)

// ControlError is a refusal by the control server.
type ControlError struct {
	Request string // method and path
	Status  int
	Code    string
	Message string
}

func (e *ControlError) Error() string { return e.Request + ": " + e.Message }

// SetPlan puts u on another plan and its bucket's oracle along with it.
func (t *Target) SetPlan(ctx context.Context, u *User, plan string) error { return nil }

// SetOverride sets one dimension for u; a zero time never expires.
func (t *Target) SetOverride(ctx context.Context, u *User, d Dimension, value int64, expires time.Time) error {
	return nil
}

// EndOverride ends the override of a dimension.
func (t *Target) EndOverride(ctx context.Context, u *User, d Dimension) error { return nil }

// SetOperations says how many operations u has left.
func (t *Target) SetOperations(ctx context.Context, u *User, remaining int64) error { return nil }

// SetEngine says how the engine treats u's calls.
func (t *Target) SetEngine(ctx context.Context, u *User, b control.Behaviour) error { return nil }

// AddKey gives u one more key.
func (t *Target) AddKey(ctx context.Context, u *User) error { return nil }

// RevokeKey revokes one of u's keys; it keeps its number, so that it can still be sent.
func (t *Target) RevokeKey(ctx context.Context, u *User, key int) error { return nil }

// Audit reads what was logged and charged for a request, again and again until
// it is as expected or a bounded number of tries is over, since an entry may be
// written a moment after the answer. It returns what it read last.
func (t *Target) Audit(ctx context.Context, requestID string, expected func(control.Audit) bool) (control.Audit, error) {
	return control.Audit{}, nil
}

// UserAudit is Audit for all requests of a user.
func (t *Target) UserAudit(ctx context.Context, u *User, expected func(control.Audit) bool) (control.Audit, error) {
	return control.Audit{}, nil
}
