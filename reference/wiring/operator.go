package wiring

import (
	"context"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/operator"
	"github.com/invoicespec/brimline/reference/policy"
)

// Operator is the operator's side of a store: what is written there about users,
// by somebody who is none of them (OVR-6). Package storetest says what each
// method promises.
type Operator interface {
	operator.Accounts

	// What only the control protocol asks.
	Known(ctx context.Context, user string) (bool, error)
	RevokeKey(ctx context.Context, user string, k account.Key) error
	SetPlan(ctx context.Context, user, plan string) error

	// What a broken store would hold, past every check (CFG-1, CFG-5).
	StoreEntitlement(ctx context.Context, user string, d policy.Dimension, text string) error
	RemoveEntitlement(ctx context.Context, user string, d policy.Dimension) error
	MendEntitlements(ctx context.Context, user string) error
	StoreOverride(ctx context.Context, user string, o policy.Override) error
}
