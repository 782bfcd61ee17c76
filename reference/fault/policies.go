package fault

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/wiring"
)

// What the faults of plans, overrides and entitlements are written with: each
// lies to the resolver about what the store holds, or changes what it found.

// records resolves another record than the one that was found.
func records(change func(rec account.Record, now time.Time) account.Record) alteration {
	return resolves(func(resolve resolver, rec account.Record, now time.Time) (policy.Effective, error) {
		return resolve(change(rec, now), now)
	})
}

type resolver = func(account.Record, time.Time) (policy.Effective, error)

// resolves exchanges how a record is resolved.
func resolves(how func(resolve resolver, rec account.Record, now time.Time) (policy.Effective, error)) alteration {
	return func(p *wiring.Parts) {
		resolve := p.Resolve
		p.Resolve = func(rec account.Record, now time.Time) (policy.Effective, error) { return how(resolve, rec, now) }
	}
}

// overridden changes a user's overrides, one by one: some become others, some none.
func overridden(change func(o policy.Override, plan policy.Plan, now time.Time) []policy.Override) alteration {
	return records(func(rec account.Record, now time.Time) account.Record {
		var all []policy.Override
		for _, o := range rec.Overrides {
			all = append(all, change(o, planOf(rec, now), now)...)
		}
		rec.Overrides = all
		return rec
	})
}

// keep keeps the overrides of one kind.
func keep(which func(o policy.Override, plan policy.Plan) bool) alteration {
	return overridden(func(o policy.Override, plan policy.Plan, _ time.Time) []policy.Override {
		if which(o, plan) {
			return []policy.Override{o}
		}
		return nil
	})
}

// planOf is the plan in force.
func planOf(rec account.Record, now time.Time) policy.Plan {
	return rec.Plans[rec.Subscription.PlanAt(now)]
}

// raises reports whether an override is more than the plan has.
func raises(o policy.Override, plan policy.Plan) bool {
	value, _ := policy.ParseValue(o.Dimension, o.Value)
	was, _ := policy.ParseValue(o.Dimension, plan.Entitlements[o.Dimension])
	return value > was
}

// withExpired tells of the overrides that were seen in force and have expired: a
// lookup finds them no more.
func withExpired(change func(rec account.Record, expired []policy.Override) account.Record) alteration {
	seen := newNotes[map[policy.Dimension]policy.Override]()
	return records(func(rec account.Record, now time.Time) account.Record {
		var expired []policy.Override
		seen.change(rec.User, func(old map[policy.Dimension]policy.Override) map[policy.Dimension]policy.Override {
			now, then := map[policy.Dimension]policy.Override{}, now
			for _, o := range rec.Overrides {
				now[o.Dimension] = o
			}
			for d, o := range old {
				// One that is gone before it expired was ended.
				if _, replaced := now[d]; !replaced && !o.ActiveAt(then) {
					now[d], expired = o, append(expired, o)
				}
			}
			return now
		})
		rec.Overrides = slices.Clone(rec.Overrides)
		return change(rec, expired)
	})
}

// entitled changes the texts of the entitlements of the plan in force.
func entitled(change func(d policy.Dimension, text string, there bool) (string, bool)) alteration {
	return records(func(rec account.Record, now time.Time) account.Record {
		id := rec.Subscription.PlanAt(now)
		plan, ok := rec.Plans[id]
		if !ok {
			return rec
		}
		entitlements := map[policy.Dimension]string{}
		for _, d := range policy.Dimensions() {
			text, there := plan.Entitlements[d]
			if text, there = change(d, text, there); there {
				entitlements[d] = text
			}
		}
		plan.Entitlements = entitlements
		rec.Plans = maps.Clone(rec.Plans)
		rec.Plans[id] = plan
		return rec
	})
}

// rewritten changes the text of each entitlement that is there and not well-formed.
func rewritten(change func(d policy.Dimension, text string) string) alteration {
	return entitled(func(d policy.Dimension, text string, there bool) (string, bool) {
		if _, err := policy.ParseValue(d, text); there && err != nil {
			text = change(d, text)
		}
		return text, there
	})
}

// notes is something remembered of each user.
type notes[T any] struct {
	mu sync.Mutex
	of map[string]T
}

func newNotes[T any]() *notes[T] { return &notes[T]{of: map[string]T{}} }

// count is how many users something is remembered of.
func (n *notes[T]) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.of)
}

// change replaces what is remembered of a user and returns what was before.
func (n *notes[T]) change(user string, to func(old T) T) (old T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old = n.of[user]
	n.of[user] = to(old)
	return old
}
