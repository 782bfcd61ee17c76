package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/internal/pgtest"
	"github.com/invoicespec/brimline/reference/store/postgres"
)

func TestLogIsReadInOrder(t *testing.T) {
	l, pool := newLog(t)
	const n = 12_000 // three portions
	entries := make([]contract.LogEntry, n)
	for i := range entries {
		e := logEntry(fmt.Sprintf("r%05d", i))
		e.Received = received.Add(time.Duration(n-i) / 2 * time.Millisecond) // two of each instant, the latest first
		e.Decision.Order = uint64(n - i)
		entries[i] = e
	}
	require.NoError(t, l.Insert(t.Context(), entries))
	last := uint64(0)
	for e, err := range l.Entries(t.Context(), time.Time{}, time.Time{}) {
		require.NoError(t, err)
		require.Equal(t, last+1, e.Decision.Order)
		last++
	}
	require.EqualValues(t, n, last)

	count := func(since, until time.Time) (found int) {
		for e, err := range l.Entries(t.Context(), since, until) {
			require.NoError(t, err)
			require.False(t, e.Received.Before(since))
			found++
		}
		return found
	}
	at := received.Add(time.Second)
	require.Equal(t, n, count(time.Time{}, at)+count(at, time.Time{}), "each side of an instant, and none twice")
	require.Equal(t, 2, count(at, at.Add(time.Millisecond)))

	for range l.Entries(t.Context(), time.Time{}, time.Time{}) {
		break
	}
	require.Zero(t, pool.Stat().AcquiredConns(), "who has enough gives the connection back")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range l.Entries(ctx, time.Time{}, time.Time{}) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

func TestOpenLog(t *testing.T) {
	database := pgtest.Database(t)
	_, _, err := postgres.OpenLog(t.Context(), database)
	require.ErrorIs(t, err, postgres.ErrSchema)
	_, err = postgres.Migrate(t.Context(), database)
	require.NoError(t, err)
	l, closed, err := postgres.OpenLog(t.Context(), database)
	require.NoError(t, err)
	defer closed()
	for range l.Entries(t.Context(), time.Time{}, time.Time{}) {
		require.Fail(t, "nothing was logged")
	}
	_, _, err = postgres.OpenLog(t.Context(), "postgres://u:secret@127.0.0.1:1/none")
	require.ErrorIs(t, err, postgres.ErrAway)
	require.NotContains(t, err.Error(), "secret")
	_, _, err = postgres.OpenLog(t.Context(), "secret")
	require.ErrorContains(t, err, "accepted: postgres://USER:PASSWORD@HOST:PORT/DATABASE")
	require.NotContains(t, err.Error(), "secret")
}
