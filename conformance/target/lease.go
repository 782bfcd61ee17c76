package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/oracle"
)

// User is a leased user: nobody else in this run uses it until it is returned.
type User struct {
	ID     string
	Plan   string
	Bucket *oracle.Bucket // what is known of its bucket; kept up to date by Send, Hold and the setters of policy

	keys    []Secret
	from    []string // where keys are, as far as that has a name
	place   int      // among the users of the keys file
	leased  bool
	lent    bool        // now or before
	gone    int64       // when the target was gone: see [Target.sinceGone]
	fresh   bool        // made for this lease
	several atomic.Bool // more than one of its keys was used in this lease
	flights flights
	changes changes

	changing sync.Mutex // while the oracle catches up with what changed by itself
}

// Keys is how many keys the user has.
func (u *User) Keys() int { return len(u.keys) }

// Used reports whether somebody may have asked as this user before it was lent.
func (u *User) Used() bool { return !u.fresh }

// whose names one of the user's keys, never showing it.
func (u *User) whose(key int) string {
	if key < len(u.from) && u.from[key] != "" {
		return fmt.Sprintf("user %s's key (%s)", u.ID, u.from[key])
	}
	return fmt.Sprintf("user %s's key", u.ID)
}

// Secret is one of the user's keys, for looking whether something shows it.
func (u *User) Secret(key int) Secret { return u.keys[key] }

// Lease lends out a user on a plan with at least so many keys: a fresh one where
// the target can make users, whose bucket is known to be full, else one of the
// keys file: one whose bucket is known to be full, or may be, before the fullest. Its error wraps [ErrNoUser]
// and says what is missing.
func (t *Target) Lease(ctx context.Context, plan string, keys int) (*User, error) {
	a, ok := t.Allowance(plan)
	if !ok {
		return nil, fmt.Errorf("%w: plan %q has no allowance", ErrNoUser, plan)
	}
	if t.process != nil { // users who are still there when it starts anew
		if u := t.borrow(plan, keys); u != nil {
			return u, nil
		}
	}
	if t.behind.has(control.FeatureUsers) {
		u, err := t.create(ctx, plan, keys, a)
		if err == nil || !refused(err) {
			return u, err
		}
		if u := t.borrow(plan, keys); u != nil {
			return u, nil
		}
		return nil, fmt.Errorf("%w: %w", ErrNoUser, err)
	}
	if u := t.borrow(plan, keys); u != nil {
		return u, nil
	}
	return nil, fmt.Errorf("%w: none on plan %q with %d keys is free", ErrNoUser, plan, keys)
}

func (t *Target) create(ctx context.Context, plan string, keys int, a oracle.Allowance) (*User, error) {
	var made control.User
	if err := t.behind.do(ctx, call{action: makeUser}.saying(control.NewUser{Plan: plan, Keys: keys}), &made); err != nil {
		return nil, err
	}
	if made.ID == "" || len(made.Keys) < keys {
		return nil, fmt.Errorf("control: asked for a user with %d keys, got user %q with %d", keys, made.ID, len(made.Keys))
	}
	u := &User{ID: made.ID, Plan: plan, Bucket: oracle.NewFull(a), leased: true, fresh: true, gone: t.gone.Load()}
	for _, k := range made.Keys {
		u.addKey(t, NewSecret(k))
	}
	return u, nil
}

func (u *User) addKey(t *Target, s Secret) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u.keys, t.known = append(u.keys, s), append(t.known, s)
	t.secrets.add(s)
}

// shelf is where users of a kind are.
type shelf struct {
	plan string
	keys int
}

// borrow takes a user of the keys file; nil: there is none. Of those who were
// never lent the first is as good as any, so no more of them are looked at: a load
// borrows a hundred thousand.
func (t *Target) borrow(plan string, keys int) *User {
	t.mu.Lock()
	defer t.mu.Unlock()
	fits := func(u *User) bool { return u.Plan == plan && len(u.keys) >= keys && !u.leased }
	var free []*User
	for _, u := range t.returned {
		if fits(u) {
			free = append(free, u)
		}
	}
	if t.unlent == nil {
		t.unlent = map[shelf]int{}
	}
	at := t.unlent[shelf{plan, keys}]
	for at < len(t.users) && (t.users[at].lent || !fits(t.users[at])) {
		at++
	}
	t.unlent[shelf{plan, keys}] = at
	if at < len(t.users) {
		free = append(free, t.users[at])
	}
	if len(free) == 0 {
		return nil
	}
	// First those that are full, then those of whom nothing is known, which may be,
	// then the fullest.
	now := t.time.atLeast()
	promise := func(u *User) int64 {
		lo, hi := u.Bucket.LevelAt(now)
		full := u.Bucket.Allowance().Burst * oracle.Token
		if lo < full && lo == 0 && hi == full {
			return full - 1
		}
		return lo
	}
	fullest := slices.MaxFunc(free, func(a, b *User) int {
		return cmp.Or(cmp.Compare(promise(a), promise(b)), cmp.Compare(b.place, a.place))
	})
	fullest.leased, fullest.lent = true, true
	t.returned = slices.DeleteFunc(t.returned, func(u *User) bool { return u == fullest })
	fullest.Bucket.Alone() // whoever had it before has let go of everything
	return fullest
}

// nobodyHasAsked says that this is a server that has just begun: every bucket of
// its users is full, and nobody will be lent a user a second time.
func (t *Target) nobodyHasAsked() {
	for _, u := range t.users {
		u.Bucket, u.fresh, u.gone = oracle.NewFull(u.Bucket.Allowance()), true, t.gone.Load()
	}
}

// SeveralKeys reports whether more than one of the user's keys was used in this
// lease.
func (u *User) SeveralKeys() bool { return u.several.Load() }

// Return ends a lease: requests still held are dropped, gates opened, and what
// was changed by control is put back. A user that cannot be put back is not lent
// out again.
func (t *Target) Return(ctx context.Context, u *User) error {
	if u == nil {
		return nil
	}
	t.dropAll(u)
	err := t.openGates(ctx, u)
	if !u.fresh {
		err = errors.Join(err, t.putBack(ctx, u))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if u.several.Swap(false) { // that they drew on one bucket is for POOL-1 to say, and not for whoever is next
		u.Bucket = oracle.NewUnknown(u.Bucket.Allowance(), t.time.atMost())
	}
	if err == nil && !u.fresh && !u.changes.spoiled {
		t.takeBack(u)
	}
	return err
}

// takeBack lets a user be lent again. The caller has the lock.
func (t *Target) takeBack(u *User) {
	u.leased = false
	t.returned = append(t.returned, u)
}

// Retire keeps a user from being lent out again.
func (t *Target) Retire(u *User) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u.changes.spoiled = true
}

// Rest makes the user's bucket certainly full: see [Target.Ready].
func (t *Target) Rest(ctx context.Context, u *User) (Exchange, error) {
	return t.Ready(ctx, u, u.Bucket.Allowance().Burst)
}

// Ready makes sure of so many tokens in the user's bucket, or of the whole burst
// if that is less. Where its level is not known it sends one valid request to
// learn it; then it waits as long as it takes. The exchange is that request's;
// its Method is empty if none was sent.
func (t *Target) Ready(ctx context.Context, u *User, tokens int64) (Exchange, error) {
	asked, err := t.Learn(ctx, u, tokens)
	for wait := t.ReadyIn(u, tokens); err == nil && wait > 0; wait = t.ReadyIn(u, tokens) {
		err = t.Wait(ctx, wait)
	}
	return asked, err
}

// Learn sends one valid request where so many tokens are not certain and too
// little is known of the user's bucket to say when they will be. The exchange's
// Method is empty if none was sent.
func (t *Target) Learn(ctx context.Context, u *User, tokens int64) (Exchange, error) {
	if t.ReadyIn(u, tokens) <= 0 || u.Bucket.Width() < oracle.Token {
		return Exchange{}, nil
	}
	asked := t.Send(ctx, u, t.Valid())
	return asked, asked.Err
}

// ReadyIn is how long it takes until so many tokens, or the whole burst if that
// is less, are certainly in the user's bucket; not positive: they are.
func (t *Target) ReadyIn(u *User, tokens int64) time.Duration {
	return time.Duration(u.Bucket.ReadyAt(tokens)-t.time.atLeast()) * time.Microsecond
}
