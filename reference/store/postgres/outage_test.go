package postgres_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/internal/pgtest"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/store/postgres"
	"github.com/invoicespec/brimline/reference/store/storetest"
)

// TestOutages: what is kept is served, nothing else is, no call waits for ever,
// and all is well again by itself.
func TestOutages(t *testing.T) {
	server := pgtest.Start(t)
	database := server.Database(t)
	_, err := postgres.Migrate(t.Context(), database)
	require.NoError(t, err)
	for name, outage := range map[string]struct{ begin, end func(testing.TB) }{
		"stopped": {server.Stop, server.Start},
		"hanging": {server.Pause, server.Resume},
	} {
		t.Run(name, func(t *testing.T) {
			c := clock.NewFrozen(time.Now())
			cfg := config(t, database, c)
			cfg.Patience = 0
			patient := open(t, config(t, database, c))
			require.NoError(t, patient.AddPlans(t.Context(), storetest.Plans()))
			alice, keys, err := patient.CreateUser(t.Context(), "free", 2)
			require.NoError(t, err)
			s := open(t, cfg)
			ctx := t.Context()
			works := func(k account.Key) bool {
				_, err := s.Lookup(ctx, s.Digest(k))
				require.NotErrorIs(t, err, account.ErrUnknownKey)
				return err == nil
			}
			require.Eventually(t, func() bool { return s.Flushes() == 2 }, 30*time.Second, time.Millisecond)
			require.Eventually(t, func() bool { return works(keys[0]) }, 30*time.Second, time.Millisecond)
			outage.begin(t)
			for range 6 { // more than there are connections
				require.True(t, works(keys[0]), "what is kept is served")
				require.False(t, works(keys[1]))
				err := s.Reserve(ctx, alice, "a")
				require.Error(t, err)
				require.NotErrorIs(t, err, account.ErrExhausted)
				require.Error(t, s.Charge(ctx, "a"))
				require.Error(t, s.GiveBack(ctx, "a"))
			}
			c.Advance(postgres.DefaultTTL)
			require.False(t, works(keys[0]), "what was kept is over")
			outage.end(t)
			require.Eventually(t, func() bool { return works(keys[0]) && works(keys[1]) }, time.Minute, time.Millisecond)
			attempt := 0
			require.Eventually(t, func() bool {
				attempt++
				id := fmt.Sprint(name, attempt)
				return s.Reserve(ctx, alice, id) == nil && s.Charge(ctx, id) == nil
			}, time.Minute, time.Millisecond)
			require.Eventually(t, func() bool {
				all, idle := s.Connections()
				return all > 0 && all == idle
			}, time.Minute, time.Millisecond, "no connection is lost")
		})
	}
}

// TestBrokenConnectionsAreReplaced: requests do not notice that connections were
// ended between two of them.
func TestBrokenConnectionsAreReplaced(t *testing.T) {
	f := newFixture(t, func(c *postgres.Config) { c.URL += "0" })
	alice, k := f.user("free")
	for name, do := range map[string]func() error{
		"lookup":  func() error { _, err := f.Lookup(t.Context(), f.Digest(k)); return err },
		"reserve": func() error { return f.Reserve(t.Context(), alice, "a") },
		"charge":  func() error { return f.Charge(t.Context(), "c") },
		"return":  func() error { return f.GiveBack(t.Context(), "r") },
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, f.Reserve(t.Context(), alice, name[:1]+"-"))
			require.NoError(t, f.GiveBack(t.Context(), name[:1]+"-"))
			if name == "charge" || name == "return" {
				require.NoError(t, f.Reserve(t.Context(), alice, name[:1]))
			}
			require.NoError(t, f.Warm(t.Context(), 5))
			execute(t, f.database, `select pg_terminate_backend(pid, 30000) from pg_stat_activity
where pid <> pg_backend_pid() and datname = current_database() and query not like 'listen%'`)
			require.NoError(t, do())
		})
	}
}

// line is a way to the database that can be cut so that what is asked arrives
// there, and the answer does not come back.
type line struct{ cut atomic.Int64 } // how many answers are still to be lost

type lossy struct {
	net.Conn
	line *line
}

func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	return lossy{Conn: c, line: l}, err
}

func (c lossy) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.line.cut.Add(-1) >= 0 && err == nil {
		c.Conn.Close()
		return 0, io.EOF
	}
	return n, err
}

func TestAnAnswerIsLost(t *testing.T) {
	l := &line{}
	f := newFixture(t, func(c *postgres.Config) { *c = c.Dialing(l.dial) })
	alice, _ := f.user("free")
	uses := func(used, left int64) {
		t.Helper()
		b, err := f.Billing(t.Context(), alice)
		require.NoError(t, err)
		require.Equal(t, []int64{used, left}, []int64{b.Used, b.Left})
	}

	l.cut.Store(1)
	require.NoError(t, f.Reserve(t.Context(), alice, "a"), "it is asked again, and had been done")
	l.cut.Store(1)
	require.NoError(t, f.Charge(t.Context(), "a"))
	uses(1, 2)
	require.NoError(t, f.GiveBack(t.Context(), "a"))

	// Whoever is not told that it was charged is not charged.
	const all = 1 << 40
	require.NoError(t, f.Reserve(t.Context(), alice, "b"))
	l.cut.Store(all)
	require.Error(t, f.Charge(t.Context(), "b"))
	l.cut.Store(0)
	uses(2, 1)
	require.NoError(t, f.GiveBack(t.Context(), "b"))
	uses(1, 2)

	// Nor if the database is still out of reach when the request ends.
	require.NoError(t, f.Reserve(t.Context(), alice, "c"))
	l.cut.Store(all)
	require.Error(t, f.Charge(t.Context(), "c"))
	require.Error(t, f.GiveBack(t.Context(), "c"))
	l.cut.Store(0)
	uses(2, 1)
	require.NoError(t, f.Reserve(t.Context(), alice, "d"))
	uses(1, 2)
	require.NoError(t, f.Charge(t.Context(), "d"))
	require.NoError(t, f.GiveBack(t.Context(), "d"))
	uses(2, 1)
}

func TestAClientThatLeavesIsChargedForWhatWasDone(t *testing.T) {
	f := newFixture(t, asItIs)
	alice, _ := f.user("free")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, f.Reserve(gone, alice, "a"))
	require.NoError(t, f.Charge(gone, "a"))
	require.NoError(t, f.GiveBack(gone, "a"))
	b, err := f.Billing(t.Context(), alice)
	require.NoError(t, err)
	require.Equal(t, int64(1), b.Used)
}
