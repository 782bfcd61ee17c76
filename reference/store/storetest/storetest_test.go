package storetest_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/store/memory"
	"github.com/invoicespec/brimline/reference/store/storetest"
)

// wrong is a right store, but for what some of its calls do.
type wrong struct {
	*memory.Store
	lookup   func(account.Record) account.Record
	reserve  func(ctx context.Context, user, id string) error
	charge   func(ctx context.Context, id string) error
	giveBack func(ctx context.Context, id string) error
	schedule func(ctx context.Context, user, plan string) (time.Time, error)
	cancel   func(ctx context.Context, user string) error
	end      func(ctx context.Context, user string) (account.Period, error)
	set      func(ctx context.Context, user string, o policy.Override, by account.Note) error
	history  func([]account.OverrideEntry) []account.OverrideEntry
	revoke   func(ctx context.Context, user string, k account.Key) error
	keys     func([]account.KeyInfo) []account.KeyInfo
	billing  func(account.Billing) account.Billing
	known    func(user string) bool
	store    func(ctx context.Context, user string, d policy.Dimension, text string) error
	mend     func(ctx context.Context, user string) error
	stored   func(ctx context.Context, user string, o policy.Override) error
}

func (w *wrong) Lookup(ctx context.Context, d account.Digest) (account.Record, error) {
	rec, err := w.Store.Lookup(ctx, d)
	if err == nil && w.lookup != nil {
		rec = w.lookup(rec)
	}
	return rec, err
}

func (w *wrong) Reserve(ctx context.Context, user, id string) error { return w.reserve(ctx, user, id) }
func (w *wrong) Charge(ctx context.Context, id string) error        { return w.charge(ctx, id) }
func (w *wrong) GiveBack(ctx context.Context, id string) error      { return w.giveBack(ctx, id) }
func (w *wrong) CancelPlan(ctx context.Context, user string) error  { return w.cancel(ctx, user) }
func (w *wrong) SchedulePlan(ctx context.Context, user, plan string) (time.Time, error) {
	return w.schedule(ctx, user, plan)
}
func (w *wrong) EndPeriod(ctx context.Context, user string) (account.Period, error) {
	return w.end(ctx, user)
}
func (w *wrong) SetOverride(ctx context.Context, user string, o policy.Override, by account.Note) error {
	return w.set(ctx, user, o, by)
}
func (w *wrong) RevokeKey(ctx context.Context, user string, k account.Key) error {
	return w.revoke(ctx, user, k)
}
func (w *wrong) StoreEntitlement(ctx context.Context, user string, d policy.Dimension, text string) error {
	return w.store(ctx, user, d, text)
}
func (w *wrong) MendEntitlements(ctx context.Context, user string) error { return w.mend(ctx, user) }
func (w *wrong) StoreOverride(ctx context.Context, user string, o policy.Override) error {
	return w.stored(ctx, user, o)
}

func (w *wrong) Overrides(ctx context.Context, user string) ([]account.OverrideEntry, error) {
	all, err := w.Store.Overrides(ctx, user)
	return w.history(all), err
}

func (w *wrong) Keys(ctx context.Context, user string) ([]account.KeyInfo, error) {
	all, err := w.Store.Keys(ctx, user)
	return w.keys(all), err
}

func (w *wrong) Billing(ctx context.Context, user string) (account.Billing, error) {
	b, err := w.Store.Billing(ctx, user)
	return w.billing(b), err
}

func (w *wrong) Known(ctx context.Context, user string) (bool, error) {
	known, err := w.Store.Known(ctx, user)
	return known || w.known(user), err
}

func same[T any](v T) T { return v }

func open(change func(*wrong)) func(testing.TB) storetest.Harness {
	return func(testing.TB) storetest.Harness {
		c := clock.NewFrozen(time.Now())
		s := memory.New(storetest.Plans(), c)
		w := &wrong{
			Store: s, reserve: s.Reserve, charge: s.Charge, giveBack: s.GiveBack,
			schedule: s.SchedulePlan, cancel: s.CancelPlan, end: s.EndPeriod, set: s.SetOverride, revoke: s.RevokeKey,
			store: s.StoreEntitlement, mend: s.MendEntitlements, stored: s.StoreOverride,
			history: same[[]account.OverrideEntry], keys: same[[]account.KeyInfo], billing: same[account.Billing],
			known: func(string) bool { return false },
		}
		change(w)
		return storetest.Harness{Store: w, Clock: c}
	}
}

func TestARightStorePasses(t *testing.T) {
	storetest.Run(t, open(func(*wrong) {}))
	require.Empty(t, storetest.Check(t, open(func(*wrong) {})))
}

// A test that has never failed may be unable to: every wrong store is found out
// by the case that is about its fault.
func TestWrongStoresAreFoundOut(t *testing.T) {
	for name, c := range map[string]struct {
		by     string
		change func(*wrong)
	}{
		"every key has one id": {"POOL-1 every key of a user finds that user", func(w *wrong) {
			w.lookup = func(r account.Record) account.Record { r.KeyID = r.User; return r }
		}},
		"a revoked key is good": {"AUTH-1 an unknown key and a revoked one look alike", func(w *wrong) {
			w.revoke = func(context.Context, string, account.Key) error { return nil }
		}},
		"every name is a user": {"a user is known from its creation on", func(w *wrong) {
			w.known = func(string) bool { return true }
		}},
		"revocations are not listed": {"a store knows of a key what its owner needs, and not the key", func(w *wrong) {
			w.keys = func(all []account.KeyInfo) []account.KeyInfo {
				for i := range all {
					all[i].Revoked = time.Time{}
				}
				return all
			}
		}},
		"a scheduled plan is in force at once": {"PLAN-2 a scheduled plan holds from the boundary on, not before", func(w *wrong) {
			w.schedule = func(ctx context.Context, user, plan string) (time.Time, error) {
				b, _ := w.Store.Billing(ctx, user)
				return b.Period.End, w.Store.SetPlan(ctx, user, plan)
			}
		}},
		"a scheduled plan is forgotten": {"PLAN-2 a lookup before the boundary is good beyond it", func(w *wrong) {
			w.lookup = func(r account.Record) account.Record { r.Subscription.Scheduled = ""; return r }
		}},
		"a schedule cannot be taken back": {"PLAN-2 one plan is scheduled at a time, and can be taken back", func(w *wrong) {
			w.cancel = func(context.Context, string) error { return nil }
		}},
		"a period that is ended goes on": {"PLAN-2 where the period is ended, the boundary is now", func(w *wrong) {
			w.end = func(ctx context.Context, user string) (account.Period, error) {
				b, err := w.Store.Billing(ctx, user)
				return b.Period, err
			}
		}},
		"an override is ignored": {"OVR-1 an override replaces its one dimension for its one user", func(w *wrong) {
			w.lookup = func(r account.Record) account.Record { r.Overrides = nil; return r }
		}},
		"an override of any value": {"OVR-3 a value that is no whole number in range is refused", func(w *wrong) {
			w.set = func(ctx context.Context, user string, o policy.Override, by account.Note) error {
				if o.Value == "0" {
					return w.Store.StoreOverride(ctx, user, o)
				}
				return w.Store.SetOverride(ctx, user, o, by)
			}
		}},
		"nobody has to say why": {"OVR-3 an override without reason and author is refused", func(w *wrong) {
			w.set = func(ctx context.Context, user string, o policy.Override, by account.Note) error {
				if by.Reason == "" {
					by.Reason = "none"
				}
				return w.Store.SetOverride(ctx, user, o, by)
			}
		}},
		"an override never expires": {"OVR-4 at its expiry an override is over by itself", func(w *wrong) {
			w.set = func(ctx context.Context, user string, o policy.Override, by account.Note) error {
				o.Expires = time.Time{}
				return w.Store.SetOverride(ctx, user, o, by)
			}
		}},
		"a replaced override is gone": {"OVR-7 one override is active, the replaced ones are kept", func(w *wrong) {
			w.history = func(all []account.OverrideEntry) []account.OverrideEntry {
				return slices.DeleteFunc(all, func(e account.OverrideEntry) bool { return !e.Ended.IsZero() })
			}
		}},
		"a malformed override is no override": {"CFG-5 a malformed override makes the policy unresolvable until it is over", func(w *wrong) {
			w.stored = func(ctx context.Context, user string, o policy.Override) error {
				return w.Store.EndOverride(ctx, user, o.Dimension, account.PastChecks())
			}
		}},
		"a broken entitlement is the plan's": {"CFG-1 a broken entitlement of any kind resolves to nothing", func(w *wrong) {
			w.store = func(context.Context, string, policy.Dimension, string) error { return nil }
		}},
		"a broken entitlement stays broken": {"CFG-1 a missing entitlement resolves to nothing", func(w *wrong) {
			w.mend = func(context.Context, string) error { return nil }
		}},
		"nothing is reserved": {"LOG-7 requests side by side never charge more than there is", func(w *wrong) {
			w.reserve = func(ctx context.Context, user, id string) error {
				if err := w.Store.Reserve(ctx, user, id); err != account.ErrExhausted {
					return err
				}
				if err := w.Store.SetOperations(ctx, user, 1); err != nil {
					return err
				}
				return w.Store.Reserve(ctx, user, id)
			}
		}},
		"a charge is not booked": {"LOG-4 charging and giving back a second time changes nothing", func(w *wrong) {
			w.charge = func(context.Context, string) error { return nil }
		}},
		"nothing is given back": {"LOG-7 an operation is reserved, charged or given back", func(w *wrong) {
			w.giveBack = func(context.Context, string) error { return nil }
		}},
		"a lapsed reservation is charged whatever is left": {"LOG-7 a lapsed reservation is charged only if an operation is left", func(w *wrong) {
			w.charge = func(ctx context.Context, id string) error {
				if err := w.Store.Charge(ctx, id); err != account.ErrExhausted {
					return err
				}
				return nil
			}
		}},
		"operations are used up for good": {"operations are there again with the next period, by itself", func(w *wrong) {
			used := int64(0)
			w.billing = func(b account.Billing) account.Billing {
				used = max(used, b.Used)
				b.Used = used
				return b
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			found := map[string]string{}
			for _, f := range storetest.Check(t, open(c.change)) {
				found[f.Case] = f.What
			}
			require.Contains(t, storetest.Cases(), c.by)
			require.Contains(t, found, c.by)
		})
	}
}
