package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/invoicespec/brimline/conformance/contract/control"
)

// queries carries out actions by reading in the deployment's PostgreSQL. No type
// of the driver leaves this file.
type queries struct {
	file SQL
	pool *pgxpool.Pool
}

const (
	maxConnections = 2 // queries that run at a time
	connectTime    = 10 * time.Second
)

// openSQL prepares to ask; nothing is sent before the first question.
func (f File) openSQL(lookup func(string) (string, bool)) (*queries, error) {
	s := *f.Can.SQL
	at := "can.sql.dsn-variable"
	dsn, _ := lookup(s.DSNVariable)
	if s.DSNFile != "" {
		at = "can.sql.dsn-file"
		data, err := readSecret(f.in(s.DSNFile), maxTokenFile)
		if err != nil {
			return nil, f.at(at, err)
		}
		dsn = strings.TrimSpace(string(data))
	} else if dsn == "" {
		return nil, f.at(at, fmt.Errorf("the variable %s is empty; accepted: the connection string in it", s.DSNVariable))
	}
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil || dsn == "" { // an error may show parts of it
		return nil, f.at(at, errors.New("no connection string; accepted: one such as postgres://reader@db.example/billing"))
	}
	cfg.MaxConns = maxConnections
	cfg.ConnConfig.ConnectTimeout = connectTime
	cfg.ConnConfig.RuntimeParams["application_name"] = "brimline"
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		return nil, f.at(at, errors.New("no connection string; accepted: one such as postgres://reader@db.example/billing"))
	}
	return &queries{file: s, pool: pool}, nil
}

// secrets are what must not be shown of how the database is reached.
func (q *queries) secrets() []Secret {
	c := q.pool.Config().ConnConfig
	return []Secret{NewSecret(c.ConnString()), NewSecret(c.Password)}
}

func (q *queries) can(a action) bool { return q.file.can(a) }

func (q *queries) name(a action) string {
	return map[action]string{readAudit: "can.sql.request", readUserAudit: "can.sql.user", readOperations: "can.sql.operations"}[a]
}

func (q *queries) close() { q.pool.Close() }

func (q *queries) do(ctx context.Context, x call, answer any) error {
	within, cancel := context.WithTimeout(ctx, connectTime+5*q.file.timeout())
	defer cancel()
	err := pgx.BeginTxFunc(within, q.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(within, "set local statement_timeout = "+strconv.FormatInt(q.file.timeout().Milliseconds(), 10)); err != nil {
			return err
		}
		switch x.action {
		case readOperations:
			return readUsage(within, tx, q.file.Operations, x.in["user"], answer.(*control.Usage))
		case readUserAudit:
			return readAll(within, tx, "can.sql.user", *q.file.User, x.in["user"], answer.(*control.Audit))
		}
		return readAll(within, tx, "can.sql.request", *q.file.Request, x.in["request"], answer.(*control.Audit))
	})
	var refusal *ControlError
	var told sayError
	switch {
	case err == nil, ctx.Err() != nil, errors.Is(err, ErrUntrue), errors.As(err, &refusal), errors.As(err, &told):
		return err
	}
	return asked("can.sql", err)
}

// told is what the server said, or that it said nothing: how it was reached, and
// as whom, is nobody's business.
func told(err error) string {
	if pe := (*pgconn.PgError)(nil); errors.As(err, &pe) {
		return pe.Message
	}
	if errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) {
		return "PostgreSQL did not answer in time"
	}
	return "PostgreSQL could not be reached"
}

// readAll reads what a request or a user has left behind, all of it at one moment.
func readAll(ctx context.Context, tx pgx.Tx, key string, q Queries, id string, to *control.Audit) error {
	var err error
	if to.Entries, err = readEntries(ctx, tx, key+".entries", q.Entries, id); err != nil {
		return err
	}
	to.KeyLookups = lookupsUnknown
	for _, c := range []struct {
		key, text string
		to        *int64
	}{{".engine-calls", q.EngineCalls, &to.EngineCalls}, {".charges", q.Charges, &to.Charges}, {".key-lookups", q.KeyLookups, &to.KeyLookups}} {
		if c.text == "" {
			continue
		}
		if err := one(ctx, tx, key+c.key, c.text, id, []string{"count"}, c.to); err != nil {
			return err
		}
	}
	return nil
}

func readEntries(ctx context.Context, tx pgx.Tx, key, text, id string) ([]control.Entry, error) {
	rows, err := ask(ctx, tx, key, text, id, []string{"request_id", "user_id", "status", "rejected", "error_code", "raw"})
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := []control.Entry{}
	for rows.Next() {
		if len(all) == maxEntries {
			return nil, fmt.Errorf("%w: %s: more than %d rows", ErrUntrue, key, maxEntries)
		}
		var e control.Entry
		var user, code pgtype.Text
		if err := rows.Scan(&e.RequestID, &user, &e.Status, &e.Rejected, &code, &e.Raw); err != nil {
			return nil, wrongValue(key, err)
		}
		e.User, e.ErrorCode = user.String, code.String
		if len(e.Raw) > maxRaw || e.RequestID == "" || e.Raw == "" {
			return nil, fmt.Errorf("%w: %s: an entry without request_id or raw, or of more than %d bytes", ErrUntrue, key, maxRaw)
		}
		all = append(all, e)
	}
	return all, asked(key, rows.Err())
}

func readUsage(ctx context.Context, tx pgx.Tx, text, user string, to *control.Usage) error {
	const key = "can.sql.operations"
	err := one(ctx, tx, key, text, user, []string{"left", "used"}, &to.Left, &to.Used)
	if errors.Is(err, pgx.ErrNoRows) {
		return &ControlError{Request: key, Code: "no row", Message: "nothing is known of that user"}
	}
	return err
}

// one reads the only row of a query's answer.
func one(ctx context.Context, tx pgx.Tx, key, text, id string, columns []string, to ...any) error {
	rows, err := ask(ctx, tx, key, text, id, columns)
	if err != nil {
		return err
	}
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return asked(key, err)
		}
		return fmt.Errorf("%w: %s: %w, want one", ErrUntrue, key, pgx.ErrNoRows)
	}
	if err := rows.Scan(to...); err != nil {
		return wrongValue(key, err)
	}
	if rows.Next() {
		return fmt.Errorf("%w: %s: more than one row", ErrUntrue, key)
	}
	return asked(key, rows.Err())
}

// ask asks about an id, and makes sure of the columns.
func ask(ctx context.Context, tx pgx.Tx, key, text, id string, columns []string) (pgx.Rows, error) {
	rows, err := tx.Query(ctx, text, id)
	if err == nil {
		err = rows.Err()
	}
	if err != nil {
		return nil, asked(key, err)
	}
	var got []string
	for _, c := range rows.FieldDescriptions() {
		got = append(got, c.Name)
	}
	if !slices.Equal(got, columns) {
		rows.Close()
		if err := rows.Err(); err != nil { // it did not come to columns
			return nil, asked(key, err)
		}
		return nil, fmt.Errorf("%w: %s: columns %s; accepted: %s", ErrUntrue, key, strings.Join(got, ", "), strings.Join(columns, ", "))
	}
	return rows, nil
}

// asked is what an error says about a query: that it is none, or that the server
// was out of reach, which it may be for a moment.
func asked(key string, err error) error {
	if err == nil {
		return nil
	}
	if pe := (*pgconn.PgError)(nil); errors.As(err, &pe) && !slices.Contains([]string{"08", "53", "57"}, pe.Code[:2]) {
		return fmt.Errorf("%w: %s: %s", ErrUntrue, key, pe.Message)
	}
	return sayError(key + ": " + told(err))
}

// sayError is an error in words of our own, whose cause may show too much.
type sayError string

func (e sayError) Error() string { return string(e) }

// wrongValue is a value that is none of the kind that a column has.
func wrongValue(key string, err error) error {
	column := "a value"
	if se := (pgx.ScanArgError{}); errors.As(err, &se) {
		column = se.FieldName
	}
	return fmt.Errorf("%w: %s: %s holds what does not belong there", ErrUntrue, key, column)
}
