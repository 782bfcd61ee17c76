package target

import (
	"context"
	"time"

	"github.com/invoicespec/brimline/conformance/contract/control"
)

// Audit reads what was logged and charged for a request, again and again until
// it is as expected or a bounded number of tries is over, since an entry may be
// written a moment after the answer. It returns what it read last.
func (t *Target) Audit(ctx context.Context, requestID string, expected func(control.Audit) bool) (control.Audit, error) {
	return t.audit(ctx, call{action: readAudit}.with("request", requestID), expected)
}

// UserAudit is Audit for all requests of a user.
func (t *Target) UserAudit(ctx context.Context, u *User, expected func(control.Audit) bool) (control.Audit, error) {
	return t.audit(ctx, ofUser(readUserAudit, u.ID), expected)
}

func (t *Target) audit(ctx context.Context, c call, expected func(control.Audit) bool) (control.Audit, error) {
	var got control.Audit
	err := t.poll(ctx, func() (bool, error) {
		got = control.Audit{}
		err := t.ask(ctx, c, &got)
		return expected(got), err
	})
	return got, err
}

// poll looks until it sees what it is after, or has looked often enough.
func (t *Target) poll(ctx context.Context, seen func() (bool, error)) error {
	pauses := t.patience.looks()
	for {
		ok, err := seen()
		if err != nil || ok || len(pauses) == 0 {
			return err
		}
		if err := pause(ctx, pauses[0]); err != nil {
			return err
		}
		pauses = pauses[1:]
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
