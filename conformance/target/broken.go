package target

import (
	"context"
	"time"

	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/oracle"
)

// BreakEntitlement stores any text as one entitlement of u alone. Until it is
// mended u's requests must not touch its bucket: send them with
// [Target.SendApart].
func (t *Target) BreakEntitlement(ctx context.Context, u *User, d Dimension, text string) error {
	u.changes.broken = true
	return t.set(ctx, ofDimension(storeEntitlement, u, d).saying(control.Stored{Text: text}))
}

// RemoveEntitlement is BreakEntitlement for one that is missing.
func (t *Target) RemoveEntitlement(ctx context.Context, u *User, d Dimension) error {
	u.changes.broken = true
	return t.set(ctx, ofDimension(removeEntitlement, u, d))
}

// MendEntitlements puts back the entitlements of u's plan.
func (t *Target) MendEntitlements(ctx context.Context, u *User) error {
	if err := t.set(ctx, ofUser(mendEntitlements, u.ID)); err != nil {
		return err
	}
	u.changes.broken = false
	return nil
}

// StoreOverride stores any text as the override of a dimension, past the operator
// boundary; EndOverride, or its expiry, mends that.
func (t *Target) StoreOverride(ctx context.Context, u *User, d Dimension, text string, expires time.Time) error {
	ends, err := t.expiry(ctx, expires)
	if err != nil {
		return err
	}
	body := control.Stored{Text: text, Expires: dateText(expires)}
	if err := t.set(ctx, ofDimension(storeOverride, u, d).saying(body)); err != nil {
		return err
	}
	u.changes.override(d, override{ends: ends})
	return nil
}

// Restart lets the server drop what it holds in memory, as a new process would
// begin. Nothing is known of any bucket afterwards. It is everybody's: call it
// while nobody else asks for anything.
func (t *Target) Restart(ctx context.Context, u *User) error {
	if err := t.set(ctx, call{action: restart}); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range append(t.users, u) {
		*one.Bucket = *oracle.NewUnknown(one.Bucket.Allowance(), t.time.atMost())
	}
	return nil
}
