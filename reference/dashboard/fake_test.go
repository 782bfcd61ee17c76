package dashboard_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/clientip"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/dashboard"
	"github.com/invoicespec/brimline/reference/policy"
)

var (
	today    = time.Date(2026, 11, 30, 9, 30, 0, 0, time.UTC)
	period   = account.Period{Start: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), End: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)}
	errStore = errors.New("the store is out of reach")
)

func plans() map[string]policy.Plan {
	table := map[string]policy.Plan{}
	for name, n := range map[string][4]int64{"free": {10, 10, 2, 100}, "pro": {300, 100, 20, 20_000}, "enterprise": {300, 100, 20, 100_000}} {
		p := policy.Plan{Name: name, Entitlements: map[policy.Dimension]string{}, Operations: n[3]}
		for i, d := range policy.Dimensions() {
			p.Entitlements[d] = strconv.FormatInt(n[i], 10)
		}
		table[name] = p
	}
	return table
}

// site is a billing page over a store that tests reach into.
type site struct {
	http.Handler
	clock    *clock.Shifted
	digester account.Digester
	logged   *lines

	mu      sync.Mutex
	users   map[string]account.Billing
	keys    map[account.Digest]string
	away    error
	lookups int
}

// newSite returns a site; secret replaces the one that sessions are made with.
func newSite(t *testing.T, secret ...byte) *site {
	t.Helper()
	if len(secret) == 0 {
		secret = []byte("a secret of tests, of 32 bytes and more")
	}
	s := &site{
		clock: clock.NewFrozen(today), digester: account.NewDigester(), logged: &lines{},
		users: map[string]account.Billing{}, keys: map[account.Digest]string{},
	}
	s.Handler = handler(t, dashboard.Ports{Clock: s.clock, Accounts: s, Digest: s.digester.Of, Secret: secret}, s.logged)
	return s
}

// handler is the page of p, with what tests have no choice in.
func handler(t *testing.T, p dashboard.Ports, log io.Writer) http.Handler {
	t.Helper()
	p.Gate = anonymous.New(p.Clock, anonymous.Config{})
	p.Pool = func(r *http.Request) string { return clientip.Peer(r).String() }
	p.Logger = slog.New(slog.NewTextHandler(log, nil))
	p.Resolve = func(r account.Record, now time.Time) (policy.Effective, error) {
		return policy.Resolve(r.Plans, r.Subscription, r.Overrides, now)
	}
	h, err := dashboard.New(p)
	require.NoError(t, err)
	return h
}

// add makes a user with a key of its own; change may alter what it is entitled to.
func (s *site) add(t *testing.T, user, plan string, change ...func(*account.Billing)) account.Key {
	t.Helper()
	k, err := account.NewKey(plan)
	require.NoError(t, err)
	b := account.Billing{
		Record: account.Record{User: user, Plans: plans(), Subscription: policy.Subscription{Plan: plan, Boundary: period.End}},
		Period: period, Used: 40, Left: plans()[plan].Operations - 40,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range change {
		c(&b)
	}
	s.users[user] = b
	s.keys[s.digester.Of(k)] = user
	return k
}

func (s *site) revoke(k account.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.keys, s.digester.Of(k))
}

// fail makes the store fail from now on, or no longer with nil.
func (s *site) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = err
}

func (s *site) Lookup(_ context.Context, d account.Digest) (account.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookups++
	if s.away != nil {
		return account.Record{}, s.away
	}
	user, ok := s.keys[d]
	if !ok {
		return account.Record{}, account.ErrUnknownKey
	}
	return s.users[user].Record, nil
}

func (s *site) Billing(_ context.Context, user string) (account.Billing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.users[user]
	if !ok {
		return account.Billing{}, account.ErrUnknownUser
	}
	return b, nil
}

// asked is how often the store was asked for a key.
func (s *site) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lookups
}

func override(d policy.Dimension, value string, expires time.Time) func(*account.Billing) {
	return func(b *account.Billing) {
		b.Overrides = append(b.Overrides, policy.Override{Dimension: d, Value: value, Expires: expires})
	}
}

func scheduled(plan string) func(*account.Billing) {
	return func(b *account.Billing) { b.Subscription.Scheduled = plan }
}

func used(used, left int64) func(*account.Billing) {
	return func(b *account.Billing) { b.Used, b.Left = used, left }
}

// broken takes an entitlement away from the user's plan.
func broken(b *account.Billing) { delete(b.Plans[b.Subscription.Plan].Entitlements, policy.Burst) }

// lines keeps what was logged.
type lines struct {
	mu   sync.Mutex
	text []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	return len(p), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
