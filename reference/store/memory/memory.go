// Package memory keeps users, keys, plans, overrides and operations in the
// memory of one process. It is the store behind a server without a database;
// what it holds ends with the process.
//
// The API asks it through [Store.Lookup] (AUTH-2) and the three calls of the
// ledger (LOG-4, LOG-7); an operator writes to it through the rest (OVR-6).
package memory

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/policy"
)

// Bounds of what is kept.
const (
	MaxUsers       = 100_000
	MaxKeysPerUser = 64
)

// Store is the store. Make one with [New].
type Store struct {
	plans    map[string]policy.Plan // never written to
	digester account.Digester

	mu       sync.Mutex
	users    map[string]*user
	keys     map[handle]key
	reserved map[string]*reservation
}

// handle is the part of a digest that keys are found by. The rest is compared
// in constant time.
type handle [8]byte

type key struct {
	digest account.Digest
	id     string
	user   *user
}

type user struct {
	id           string
	keys         int // ever issued
	subscription policy.Subscription
	overrides    []policy.Override // replaced, never written to: lookups share it
	remaining    int64             // operations not charged yet
	pending      int64             // of those, reserved by requests in flight
}

// New returns a store without users that knows plans.
func New(plans map[string]policy.Plan) *Store {
	return &Store{
		plans:    plans,
		digester: account.NewDigester(),
		users:    map[string]*user{},
		keys:     map[handle]key{},
		reserved: map[string]*reservation{},
	}
}

// Digest is the digest of k that [Store.Lookup] asks for.
func (s *Store) Digest(k account.Key) account.Digest { return s.digester.Of(k) }

// Lookup finds the owner of a key and all that its policy is resolved from.
func (s *Store) Lookup(_ context.Context, d account.Digest) (account.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.keys[handleOf(d)]
	if !ok || subtle.ConstantTimeCompare(k.digest[:], d[:]) != 1 {
		return account.Record{}, account.ErrUnknownKey
	}
	return account.Record{
		User:         k.user.id,
		KeyID:        k.id,
		Plans:        s.plans,
		Subscription: k.user.subscription,
		Overrides:    k.user.overrides,
	}, nil
}

// CreateUser adds a user of plan with so many keys, and returns both. The keys
// are not kept and cannot be had again.
func (s *Store) CreateUser(plan string, keys int) (string, []account.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.plans[plan]
	if !ok {
		return "", nil, fmt.Errorf("%w %q", account.ErrUnknownPlan, plan)
	}
	switch {
	case len(s.users) >= MaxUsers:
		return "", nil, fmt.Errorf("%w: %d users", account.ErrFull, MaxUsers)
	case keys > MaxKeysPerUser:
		return "", nil, fmt.Errorf("%w: %d keys a user, not %d", account.ErrFull, MaxKeysPerUser, keys)
	}
	u := &user{
		id:           "user-" + strconv.Itoa(len(s.users)+1), // users are never removed
		subscription: policy.Subscription{Plan: plan},
		remaining:    p.Operations,
	}
	var issued []account.Key
	for range keys {
		k, err := s.issue(u)
		if err != nil {
			return "", nil, err
		}
		issued = append(issued, k)
	}
	s.users[u.id] = u
	return u.id, issued, nil
}

// AddKey issues one more key of a user.
func (s *Store) AddKey(user string) (account.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.user(user)
	if err != nil {
		return account.Key{}, err
	}
	return s.issue(u)
}

// issue requires that s.mu is held.
func (s *Store) issue(u *user) (account.Key, error) {
	if u.keys >= MaxKeysPerUser {
		return account.Key{}, fmt.Errorf("%w: %d keys of user %q", account.ErrFull, MaxKeysPerUser, u.id)
	}
	k, err := account.NewKey(u.subscription.Plan)
	if err != nil {
		return account.Key{}, fmt.Errorf("plan %q: %w", u.subscription.Plan, err)
	}
	d := s.digester.Of(k)
	if _, taken := s.keys[handleOf(d)]; taken {
		return account.Key{}, errors.New("two keys with one handle: the random source is broken")
	}
	u.keys++
	s.keys[handleOf(d)] = key{digest: d, id: u.id + "/" + strconv.Itoa(u.keys), user: u}
	return k, nil
}

// RevokeKey takes a key from a user; requests that come later do not
// authenticate with it.
func (s *Store) RevokeKey(user string, k account.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.user(user)
	if err != nil {
		return err
	}
	h := handleOf(s.digester.Of(k))
	if held, ok := s.keys[h]; !ok || held.user != u {
		return fmt.Errorf("user %q: %w", user, account.ErrUnknownKey)
	}
	delete(s.keys, h)
	return nil
}

// SetPlan puts a plan in force, as at a billing-period boundary: the operations
// of the new period are there.
func (s *Store) SetPlan(user, plan string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.user(user)
	if err != nil {
		return err
	}
	p, ok := s.plans[plan]
	if !ok {
		return fmt.Errorf("%w %q", account.ErrUnknownPlan, plan)
	}
	u.subscription = policy.Subscription{Plan: plan}
	u.remaining = p.Operations
	return nil
}

// SetOverride replaces the override of one dimension (OVR-7). A zero time never
// expires. A value out of range changes nothing (OVR-3).
func (s *Store) SetOverride(user string, d policy.Dimension, value int64, expires time.Time) error {
	text := strconv.FormatInt(value, 10)
	if _, err := policy.ParseValue(d, text); err != nil {
		return err
	}
	return s.replaceOverride(user, d, policy.Override{Dimension: d, Value: text, Expires: expires})
}

// EndOverride ends the override of one dimension, if there is one.
func (s *Store) EndOverride(user string, d policy.Dimension) error {
	return s.replaceOverride(user, d)
}

func (s *Store) replaceOverride(user string, d policy.Dimension, by ...policy.Override) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.user(user)
	if err != nil {
		return err
	}
	for _, o := range u.overrides {
		if o.Dimension != d {
			by = append(by, o)
		}
	}
	u.overrides = by
	return nil
}

// SetOperations sets the operations a user has left.
func (s *Store) SetOperations(user string, remaining int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, err := s.user(user)
	if err != nil {
		return err
	}
	if remaining < 0 {
		return fmt.Errorf("%d operations: want 0 or more", remaining)
	}
	u.remaining = remaining
	return nil
}

// Known reports whether there is such a user.
func (s *Store) Known(user string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.users[user]
	return ok
}

// user requires that s.mu is held.
func (s *Store) user(id string) (*user, error) {
	u, ok := s.users[id]
	if !ok {
		return nil, fmt.Errorf("%w %q", account.ErrUnknownUser, id)
	}
	return u, nil
}

func handleOf(d account.Digest) handle { return handle(d[:len(handle{})]) }
