package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/invoicespec/brimline/reference/clock"
)

// pruneBatch rows are removed at a time, so that no lock is held for long.
const (
	pruneBatch = 1000
	pruneTime  = 30 * time.Second // for one batch
)

// Retention says how long log entries are kept. Every field is required.
type Retention struct {
	Age    time.Duration // entries received longer ago are removed
	Every  time.Duration // how often to look for them
	Clock  clock.Clock
	Logger *slog.Logger
}

// Retain removes old entries at once and then again and again, until ctx ends.
// Several servers may do so on one table.
func (l Log) Retain(ctx context.Context, r Retention) {
	t := time.NewTicker(r.Every)
	defer t.Stop()
	for {
		removed, err := l.Prune(ctx, r.Clock.Now().Add(-r.Age))
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.Logger.Error("old API log entries could not be removed", "error", err)
		case removed > 0:
			r.Logger.Info("old API log entries removed", "entries", removed)
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// pruneEntries leaves to another server the rows that it is removing.
const pruneEntries = `
delete from api_log where ctid = any (array(
    select ctid from api_log where received < $1 order by received limit $2 for update skip locked))`

// Prune removes the entries received before a date, in small batches, and tells
// how many there were.
func (l Log) Prune(ctx context.Context, before time.Time) (removed int64, err error) {
	for {
		n, err := l.pruneBatch(ctx, before)
		removed += n
		if err != nil {
			return removed, fmt.Errorf("remove log entries before %s: %w", before.UTC().Format(time.RFC3339), err)
		}
		if n < pruneBatch {
			return removed, nil
		}
	}
}

func (l Log) pruneBatch(ctx context.Context, before time.Time) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, pruneTime)
	defer cancel()
	tag, err := l.pool.Exec(ctx, pruneEntries, before, pruneBatch)
	return tag.RowsAffected(), err
}
