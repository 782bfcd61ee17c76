package control

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	wire "github.com/invoicespec/brimline/conformance/contract/control"
)

func TestRecorderForgetsTheOldest(t *testing.T) {
	r := newRecorder()
	const more = 100
	for i := range maxRecords + more {
		id := fmt.Sprint("r", i)
		r.lookup(id, "alice")
		r.entry(contract.LogEntry{RequestID: id, User: "alice"})
	}
	require.Len(t, r.records, maxRecords)
	require.Empty(t, requested(r, "r0").Entries)
	require.Empty(t, requested(r, fmt.Sprint("r", more-1)).Entries)
	require.Len(t, requested(r, fmt.Sprint("r", more)).Entries, 1)

	a := r.user("alice")
	require.Len(t, a.Entries, maxEntries)
	require.Equal(t, fmt.Sprint("r", maxRecords+more-1), a.Entries[maxEntries-1].RequestID, "the latest is last")
	require.Equal(t, fmt.Sprint("r", maxRecords+more-maxEntries), a.Entries[0].RequestID)
	require.EqualValues(t, maxRecords+more, a.KeyLookups, "counts are not forgotten")
	require.Empty(t, r.user("bob").Entries)
}

func TestRecorderCountsAChargeOnce(t *testing.T) {
	r := newRecorder()
	r.charge("r1", "alice", "r1")
	r.charge("r1", "alice", "r1")
	require.EqualValues(t, 1, requested(r, "r1").Charges)
	r.charge("r1", "alice", "again under another id")
	require.EqualValues(t, 2, requested(r, "r1").Charges)
	require.EqualValues(t, 2, r.user("alice").Charges)
	r.call("", "")
	require.NotContains(t, r.records, "", "what is outside the chain has no record")
}

// TestGateLetsGo: when it opens, when the client has gone, when the server stops,
// and after the longest hold.
func TestGateLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := make(chan struct{})
		g := &gate{stopped: stopped}
		g.pass(t.Context()) // open: nobody waits

		hold := func() (context.CancelFunc, <-chan time.Time) {
			g.shut()
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan time.Time, 1)
			go func() { g.pass(ctx); done <- time.Now() }()
			synctest.Wait()
			require.Equal(t, 1, g.state().Waiting)
			return cancel, done
		}
		passed := func(done <-chan time.Time) {
			t.Helper()
			synctest.Wait()
			require.Len(t, done, 1)
			require.Zero(t, g.state().Waiting)
		}

		cancel, done := hold()
		g.open()
		passed(done)
		cancel()

		cancel, done = hold()
		cancel()
		passed(done)

		cancel, done = hold()
		began := time.Now()
		require.Equal(t, maxHold, (<-done).Sub(began))
		cancel()

		cancel, done = hold()
		close(stopped)
		passed(done)
		cancel()
		g.pass(t.Context()) // closed, but nobody waits any more
	})
}

// TestGatedWriter: at an open gate it is one write, as if it were not there.
func TestGatedWriter(t *testing.T) {
	g := &gate{stopped: make(chan struct{})}
	rec := httptest.NewRecorder()
	n, err := (&gatedWriter{ResponseWriter: rec, gate: g, ctx: t.Context()}).Write([]byte("body"))
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.False(t, rec.Flushed)

	g.shut()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rec = httptest.NewRecorder()
	n, err = (&gatedWriter{ResponseWriter: rec, gate: g, ctx: ctx}).Write([]byte("body"))
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.True(t, rec.Flushed)
	require.Equal(t, "body", rec.Body.String())
}

func requested(r *recorder, id string) wire.Audit {
	a, _ := r.request(id)
	return a
}
