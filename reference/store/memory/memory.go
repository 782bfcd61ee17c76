// Package memory keeps users, keys, plans, overrides and operations in the
// memory of one process. It is the store behind a server without a database;
// what it holds ends with the process.
//
// The API asks it through [Store.Lookup] (AUTH-2) and the three calls of the
// ledger (LOG-4, LOG-7); an operator writes to it through the rest (OVR-3,
// OVR-6 to OVR-8, PLAN-2). Package storetest says what all of them promise.
package memory

import (
	"context"
	"crypto/subtle"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/policy"
)

// MaxUsers bounds what is kept.
const MaxUsers = 100_000

// Store is the store. Make one with [New].
type Store struct {
	plans    map[string]policy.Plan // never written to
	clock    clock.Clock
	digester account.Digester

	mu       sync.Mutex
	users    map[string]*holder
	keys     map[handle]*key // the good ones
	reserved map[string]*reservation
}

type holder struct {
	id            string
	keys          []*key // ever issued
	plans         map[string]policy.Plan
	subscriptions []subscription // by their start
	anchor        time.Time      // where billing periods are counted from, and nothing is before
	usage         map[int64]*usage
	reserved      map[string]*reservation
	history       []account.OverrideEntry
	current       []int // of history: the last of each dimension that was not ended
}

// New returns a store without users that knows plans.
func New(plans map[string]policy.Plan, c clock.Clock) *Store {
	return &Store{
		plans:    plans,
		clock:    c,
		digester: account.NewDigester(),
		users:    map[string]*holder{},
		keys:     map[handle]*key{},
		reserved: map[string]*reservation{},
	}
}

// Digest is the digest of k that [Store.Lookup] asks for.
func (s *Store) Digest(k account.Key) account.Digest { return s.digester.Of(k) }

func (s *Store) now() time.Time { return account.StoredInstant(s.clock.Now()) }

// Lookup finds the owner of a key and all that its policy is resolved from.
func (s *Store) Lookup(_ context.Context, d account.Digest) (account.Record, error) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.keys[handleOf(d)]
	if !ok || subtle.ConstantTimeCompare(k.digest[:], d[:]) != 1 {
		return account.Record{}, account.ErrUnknownKey
	}
	rec := k.user.record(now)
	rec.KeyID = k.ID
	return rec, nil
}

// record is all that a user's policy is resolved from.
func (u *holder) record(now time.Time) account.Record {
	return account.Record{User: u.id, Plans: u.plans, Subscription: u.subscription(now), Overrides: u.active(now)}
}

// CreateUser adds a user of plan with so many keys, and returns both. The keys
// are not kept and cannot be had again.
func (s *Store) CreateUser(_ context.Context, plan string, keys int) (string, []account.Key, error) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.users) + 1 // users are never removed, but some came with their names
	for s.users["user-"+strconv.Itoa(n)] != nil {
		n++
	}
	u, err := s.newHolder("user-"+strconv.Itoa(n), plan, now)
	switch {
	case err != nil:
		return "", nil, err
	case keys > account.MaxKeys:
		return "", nil, fmt.Errorf("%w: %d keys a user, not %d", account.ErrFull, account.MaxKeys, keys)
	}
	var issued []account.Key
	for range keys {
		k, err := s.issue(u, plan, now)
		if err != nil {
			return "", nil, err
		}
		issued = append(issued, k)
	}
	s.users[u.id] = u
	return u.id, issued, nil
}

// AddUser adds a user who has a name and keys already, from another process.
func (s *Store) AddUser(_ context.Context, id, plan string, keys []account.Key) error {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.newHolder(id, plan, now)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if err := s.take(u, k, now); err != nil {
			return err
		}
	}
	s.users[u.id] = u
	return nil
}

// newHolder is a user without keys who is not in the store yet; it requires that
// s.mu is held.
func (s *Store) newHolder(id, plan string, now time.Time) (*holder, error) {
	switch err := s.checkPlan(plan); {
	case err != nil:
		return nil, err
	case len(s.users) >= MaxUsers:
		return nil, fmt.Errorf("%w: %d users", account.ErrFull, MaxUsers)
	case s.users[id] != nil:
		return nil, fmt.Errorf("%w: user %q is there already", account.ErrRefused, id)
	}
	return &holder{
		id:            id,
		plans:         s.plans,
		subscriptions: []subscription{{from: now, plan: plan}},
		anchor:        now,
		usage:         map[int64]*usage{},
		reserved:      map[string]*reservation{},
	}, nil
}

// Known reports whether there is such a user.
func (s *Store) Known(_ context.Context, user string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.users[user]
	return ok, nil
}

// change does something to one user at one instant.
func (s *Store) change(id string, do func(u *holder, now time.Time) error) error {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.users[id]
	if !ok {
		return fmt.Errorf("%w %q", account.ErrUnknownUser, id)
	}
	return do(u, now)
}
