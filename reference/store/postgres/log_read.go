package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/invoicespec/brimline/conformance/contract"
)

// A long reading holds one snapshot and takes rows in portions, none of which may
// keep the database busy for long.
const (
	portion     = 5000
	portionTime = 60 * time.Second
)

// OpenLog opens a database for its log alone, which needs no key secret. Close
// lets go of it.
func OpenLog(ctx context.Context, url string) (l Log, closed func(), err error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return Log{}, nil, urlError(url, err)
	}
	cfg.ConnConfig.ConnectTimeout = connectPatience
	cfg.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return Log{}, nil, err
	}
	err = pool.Ping(ctx)
	if err == nil {
		_, err = pool.Exec(ctx, selectEntries+"limit 0")
	}
	switch {
	case err == nil:
		return NewLog(pool), pool.Close, nil
	case isCode(err, "42P01", "42703"): // no such table or column
		err = fmt.Errorf("%w: %w", ErrSchema, err)
	default:
		err = fmt.Errorf("%w: %w", ErrAway, err)
	}
	pool.Close()
	return Log{}, nil, err
}

// inOrder is in order of arrival; decisions of one instant as they were taken.
const inOrder = `
declare entries no scroll cursor for ` + selectEntries + `
where ($1::timestamptz is null or received >= $1) and ($2::timestamptz is null or received < $2)
order by received, decision_order, request_id`

// Entries yields the entries received from since on and before until, in order of
// arrival, as they are at the beginning; a zero time is no bound. An error is the
// last thing that is yielded. Nothing is changed, and memory does not grow with
// the log.
func (l Log) Entries(ctx context.Context, since, until time.Time) iter.Seq2[contract.LogEntry, error] {
	return func(yield func(contract.LogEntry, error) bool) {
		errEnough := errors.New("nobody wants more")
		err := pgx.BeginTxFunc(ctx, l.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			limit := fmt.Sprintf("%dms", portionTime.Milliseconds())
			if _, err := tx.Exec(ctx, `select set_config('statement_timeout', $1, true)`, limit); err != nil {
				return err
			}
			// A cursor takes no parameters from outside unless they are sent in place.
			if _, err := tx.Exec(ctx, inOrder, pgx.QueryExecModeSimpleProtocol, orNull(since), orNull(until)); err != nil {
				return err
			}
			for {
				rows, err := tx.Query(ctx, fmt.Sprintf("fetch %d from entries", portion))
				if err != nil {
					return err
				}
				some, err := pgx.CollectRows(rows, scanEntry)
				if err != nil {
					return err
				}
				for _, e := range some {
					if !yield(e, nil) {
						return errEnough
					}
				}
				if len(some) < portion {
					return nil
				}
			}
		})
		if err != nil && !errors.Is(err, errEnough) {
			yield(contract.LogEntry{}, fmt.Errorf("read the API log: %w", err))
		}
	}
}
