// Package storetest is the contract that every store keeps, as tests: AUTH-1,
// AUTH-2, POOL-1, PLAN-1 to PLAN-3, OVR-1 to OVR-4, OVR-7, OVR-8, CFG-1, CFG-2,
// CFG-5, LOG-4 and LOG-7.
//
// A store's own test is one call of [Run]. Time stands still unless a case moves
// it, so that boundaries and expiries are looked at from both sides, to the
// microsecond.
package storetest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/operator"
	"github.com/invoicespec/brimline/reference/policy"
)

// Store is what a server asks of a store, and an operator.
type Store interface {
	httpapi.Accounts
	httpapi.Ledger
	operator.Accounts
	Digest(k account.Key) account.Digest

	Known(ctx context.Context, user string) (bool, error)
	RevokeKey(ctx context.Context, user string, k account.Key) error
	SetPlan(ctx context.Context, user, plan string) error

	StoreEntitlement(ctx context.Context, user string, d policy.Dimension, text string) error
	RemoveEntitlement(ctx context.Context, user string, d policy.Dimension) error
	MendEntitlements(ctx context.Context, user string) error
	StoreOverride(ctx context.Context, user string, o policy.Override) error
}

// Plans is the plans that a store under test has to know.
func Plans() map[string]policy.Plan {
	return map[string]policy.Plan{
		"free": plan("free", 3, "10", "10", "2"),
		"pro":  plan("pro", 5, "300", "100", "20"),
	}
}

func plan(name string, operations int64, rpm, burst, concurrency string) policy.Plan {
	return policy.Plan{Name: name, Operations: operations, Entitlements: map[policy.Dimension]string{
		policy.RequestsPerMinute: rpm, policy.Burst: burst, policy.Concurrency: concurrency,
	}}
}

// Harness is a fresh store without users, and its clock, which stands still.
type Harness struct {
	Store Store
	Clock clock.Movable
}

// Finding is a sentence of the contract that a store does not keep.
type Finding struct {
	Case string // the case of this package that found it
	What string
}

// Run tests the store that open makes, a fresh one for every case.
func Run(t *testing.T, open func(testing.TB) Harness) {
	t.Helper()
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) { c.run(newSession(t, t.Context(), open(t))) })
	}
}

// Check does what Run does and returns what it finds instead of failing t, for
// tests that want a store to be found out.
func Check(t testing.TB, open func(testing.TB) Harness) []Finding {
	t.Helper()
	var findings []Finding
	for _, c := range cases() {
		var r recorder
		h := open(t)
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.run(newSession(&r, t.Context(), h))
		}()
		<-done
		if len(r) > 0 {
			findings = append(findings, Finding{Case: c.name, What: strings.Join(r, "\n")})
		}
	}
	return findings
}

// Cases names the cases in the order they run in.
func Cases() []string {
	var names []string
	for _, c := range cases() {
		names = append(names, c.name)
	}
	return names
}

// recorder stands in for a test and keeps what it says.
type recorder []string

func (r *recorder) Errorf(format string, args ...any) { *r = append(*r, fmt.Sprintf(format, args...)) }
func (r *recorder) FailNow()                          { runtime.Goexit() }

type testCase struct {
	name string
	run  func(*session)
}

func cases() []testCase {
	var all []testCase
	for _, some := range [][]testCase{keyCases(), planCases(), overrideCases(), brokenCases(), ledgerCases()} {
		all = append(all, some...)
	}
	return all
}

// session is a case's view of a store.
type session struct {
	*require.Assertions
	Store
	ctx   context.Context
	clock clock.Movable
}

func newSession(t require.TestingT, ctx context.Context, h Harness) *session {
	return &session{Assertions: require.New(t), Store: h.Store, ctx: ctx, clock: h.Clock}
}

// now is the date as a store keeps it.
func (s *session) now() time.Time { return account.StoredInstant(s.clock.Now()) }

// moveTo moves the clock to so long before a date that a store keeps.
func (s *session) moveTo(date time.Time, before time.Duration) {
	s.clock.Advance(date.Add(-before).Sub(s.now()))
}

// just is the shortest time that a clock can be moved by.
const just = time.Microsecond

// user creates a user with one key.
func (s *session) user(plan string) (string, account.Key) {
	id, keys, err := s.CreateUser(s.ctx, plan, 1)
	s.NoError(err)
	s.Len(keys, 1)
	return id, keys[0]
}

func (s *session) lookup(k account.Key) account.Record {
	rec, err := s.Lookup(s.ctx, s.Digest(k))
	s.NoError(err)
	return rec
}

func (s *session) resolve(k account.Key) (policy.Effective, error) {
	rec := s.lookup(k)
	return policy.Resolve(rec.Plans, rec.Subscription, rec.Overrides, s.clock.Now())
}

// holds requires the plan and the allowance that a key has now.
func (s *session) holds(k account.Key, plan, allowance string) {
	e, err := s.resolve(k)
	s.NoError(err)
	s.Equal(plan, e.Plan)
	s.Equal(allowance, e.Allowance.String())
}

func (s *session) billing(user string) account.Billing {
	b, err := s.Billing(s.ctx, user)
	s.NoError(err)
	return b
}

func note(reason string) account.Note { return account.Note{Author: "ann@example.org", Reason: reason} }

func override(d policy.Dimension, value string) policy.Override {
	return policy.Override{Dimension: d, Value: value}
}
