package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/apilog"
)

// ErrNoEntry: the log has no entry of the request, or has it no longer.
var ErrNoEntry = errors.New("no log entry")

// mostEntries bounds what is read of the log at once.
const mostEntries = 1000

// Log is the table of the API log (LOG-1 to LOG-3). It is the sink of an
// [apilog.Spool], and what an audit reads. The time of an entry is kept to the
// microsecond.
type Log struct{ pool *pgxpool.Pool }

// NewLog is the log in the database of pool. Delivery takes one connection at a
// time, and retention another.
func NewLog(pool *pgxpool.Pool) Log { return Log{pool: pool} }

// insertEntries keeps an entry once, however often it is delivered (LOG-6).
const insertEntries = `
insert into api_log (request_id, schema, received, duration_us, method, path, status, error_code,
       outcome, user_id, plan, charged, decision_order, decision_instant_us, decision_outcome,
       requests_per_minute, burst, concurrency, in_flight, level, client, correlation_id)
select request_id, schema, received, duration_us, method, path, status, nullif(error_code, ''),
       outcome, nullif(user_id, ''), nullif(plan, ''), charged, decision_order, decision_instant_us,
       decision_outcome, requests_per_minute, burst, concurrency, in_flight, level,
       nullif(client, ''), nullif(correlation_id, '')
from unnest($1::text[], $2::bigint[], $3::timestamptz[], $4::bigint[], $5::text[], $6::text[],
       $7::bigint[], $8::text[], $9::text[], $10::text[], $11::text[], $12::bigint[], $13::bigint[],
       $14::bigint[], $15::text[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[],
       $21::text[], $22::text[])
     as e (request_id, schema, received, duration_us, method, path, status, error_code, outcome,
       user_id, plan, charged, decision_order, decision_instant_us, decision_outcome,
       requests_per_minute, burst, concurrency, in_flight, level, client, correlation_id)
on conflict (request_id) do nothing`

// Insert keeps all entries or none. Its error wraps [apilog.ErrRefused] where
// one of the entries is to blame, not the state of the database.
func (l Log) Insert(ctx context.Context, entries []contract.LogEntry) error {
	type (
		entry    = *contract.LogEntry
		decision = *contract.LogDecision
	)
	_, err := l.pool.Exec(ctx, insertEntries,
		column(entries, func(e entry) string { return text(e.RequestID) }),
		column(entries, func(e entry) int64 { return int64(e.Schema) }),
		column(entries, func(e entry) time.Time { return e.Received }),
		column(entries, func(e entry) int64 { return e.Duration }),
		column(entries, func(e entry) string { return text(e.Method) }),
		column(entries, func(e entry) string { return text(e.Path) }),
		column(entries, func(e entry) int64 { return int64(e.Status) }),
		column(entries, func(e entry) string { return text(e.ErrorCode) }),
		column(entries, func(e entry) string { return text(e.Outcome) }),
		column(entries, func(e entry) string { return text(e.User) }),
		column(entries, func(e entry) string { return text(e.Plan) }),
		column(entries, func(e entry) int64 { return e.Charged }),
		decided(entries, func(d decision) int64 { return int64(d.Order) }),
		decided(entries, func(d decision) int64 { return d.Instant }),
		decided(entries, func(d decision) string { return text(d.Outcome) }),
		decided(entries, func(d decision) int64 { return d.RequestsPerMinute }),
		decided(entries, func(d decision) int64 { return d.Burst }),
		decided(entries, func(d decision) int64 { return d.Concurrency }),
		decided(entries, func(d decision) int64 { return d.InFlight }),
		decided(entries, func(d decision) int64 { return d.Level }),
		column(entries, func(e entry) string { return text(e.Client) }),
		column(entries, func(e entry) string { return text(e.Correlation) }),
	)
	var server *pgconn.PgError
	if errors.As(err, &server) && faulty(server.Code) {
		err = fmt.Errorf("%w: %w", apilog.ErrRefused, err)
	}
	if err != nil {
		return fmt.Errorf("insert %d log entries: %w", len(entries), err)
	}
	return nil
}

// faulty tells the classes of errors that data brings about by itself: data
// exception, integrity constraint violation, program limit exceeded.
func faulty(code string) bool {
	return strings.HasPrefix(code, "22") || strings.HasPrefix(code, "23") || strings.HasPrefix(code, "54")
}

// text is s in so far as PostgreSQL can hold it.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func column[T any](entries []contract.LogEntry, of func(*contract.LogEntry) T) []T {
	all := make([]T, len(entries))
	for i := range entries {
		all[i] = of(&entries[i])
	}
	return all
}

// decided is a column that is null where the limiter was not asked.
func decided[T any](entries []contract.LogEntry, of func(*contract.LogDecision) T) []*T {
	return column(entries, func(e *contract.LogEntry) *T {
		if e.Decision == nil {
			return nil
		}
		return new(of(e.Decision))
	})
}

const selectEntries = `
select request_id, schema, received, duration_us, method, path, status, coalesce(error_code, ''),
       outcome, coalesce(user_id, ''), coalesce(plan, ''), charged, decision_order is not null,
       coalesce(decision_order, 0), coalesce(decision_instant_us, 0), coalesce(decision_outcome, ''),
       coalesce(requests_per_minute, 0), coalesce(burst, 0), coalesce(concurrency, 0),
       coalesce(in_flight, 0), coalesce(level, 0), coalesce(client, ''), coalesce(correlation_id, '')
from api_log `

// Entry is the entry of one request; [ErrNoEntry] if there is none.
func (l Log) Entry(ctx context.Context, requestID string) (contract.LogEntry, error) {
	found, err := l.entries(ctx, "where request_id = $1", text(requestID))
	if err == nil && len(found) == 0 {
		err = ErrNoEntry
	}
	if err != nil {
		return contract.LogEntry{}, fmt.Errorf("request %q: %w", requestID, err)
	}
	return found[0], nil
}

// Find is Entry for those who do not know whether there is one.
func (l Log) Find(ctx context.Context, requestID string) ([]contract.LogEntry, error) {
	e, err := l.Entry(ctx, requestID)
	if errors.Is(err, ErrNoEntry) {
		return nil, nil
	}
	return []contract.LogEntry{e}, err
}

// UserEntries is the last entries of a user, the newest first: at most so many,
// and never more than 1,000.
func (l Log) UserEntries(ctx context.Context, user string, most int) ([]contract.LogEntry, error) {
	found, err := l.entries(ctx, "where user_id = $1 order by received desc, request_id limit $2",
		text(user), min(max(most, 0), mostEntries))
	if err != nil {
		return nil, fmt.Errorf("log entries of user %q: %w", user, err)
	}
	return found, nil
}

func (l Log) entries(ctx context.Context, which string, args ...any) ([]contract.LogEntry, error) {
	rows, err := l.pool.Query(ctx, selectEntries+which, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanEntry)
}

func scanEntry(row pgx.CollectableRow) (contract.LogEntry, error) {
	var e contract.LogEntry
	var d contract.LogDecision
	var asked bool
	var order int64
	err := row.Scan(&e.RequestID, &e.Schema, &e.Received, &e.Duration, &e.Method, &e.Path, &e.Status, &e.ErrorCode,
		&e.Outcome, &e.User, &e.Plan, &e.Charged, &asked, &order, &d.Instant, &d.Outcome,
		&d.RequestsPerMinute, &d.Burst, &d.Concurrency, &d.InFlight, &d.Level,
		&e.Client, &e.Correlation)
	e.Received = e.Received.UTC()
	if d.Order = uint64(order); asked {
		e.Decision = &d
	}
	return e, err
}
