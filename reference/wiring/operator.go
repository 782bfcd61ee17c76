package wiring

import (
	"context"
	"time"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/policy"
)

// Operator is the operator's side of a store: what is written there about users,
// by somebody who is none of them (OVR-6). Package storetest says what each
// method promises.
type Operator interface {
	Known(ctx context.Context, user string) (bool, error)
	CreateUser(ctx context.Context, plan string, keys int) (string, []account.Key, error)
	AddKey(ctx context.Context, user string) (account.Key, error)
	RevokeKey(ctx context.Context, user string, k account.Key) error
	RevokeKeyNamed(ctx context.Context, user, id string) error
	Keys(ctx context.Context, user string) ([]account.KeyInfo, error)

	SetPlan(ctx context.Context, user, plan string) error
	SchedulePlan(ctx context.Context, user, plan string) (boundary time.Time, err error)
	CancelPlan(ctx context.Context, user string) error
	EndPeriod(ctx context.Context, user string) (account.Period, error)
	SetOperations(ctx context.Context, user string, left int64) error
	Billing(ctx context.Context, user string) (account.Billing, error)

	SetOverride(ctx context.Context, user string, o policy.Override, by account.Note) error
	EndOverride(ctx context.Context, user string, d policy.Dimension, by account.Note) error
	Overrides(ctx context.Context, user string) ([]account.OverrideEntry, error)

	// What a broken store would hold, past every check (CFG-1, CFG-5).
	StoreEntitlement(ctx context.Context, user string, d policy.Dimension, text string) error
	RemoveEntitlement(ctx context.Context, user string, d policy.Dimension) error
	MendEntitlements(ctx context.Context, user string) error
	StoreOverride(ctx context.Context, user string, o policy.Override) error
}
