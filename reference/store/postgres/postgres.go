// Package postgres keeps users, keys, plans, overrides and operations in a
// PostgreSQL database, and the API log (RESTART-2). It does what package memory
// does, and package storetest holds it to that.
//
// Most callers want [Migrate], once, and [Open]. A key and all that its policy is
// resolved from are one index-only query (AUTH-2), whose answer is kept for
// seconds; whatever changes is seen at once where it was changed, and elsewhere as
// soon as the database has told, see [Config.TTL]. Every instant comes from the
// server's clock. With the database away or hanging no call of the API takes
// longer than [Config.Patience]; one that is busy is given more time, and so is
// what an operator does.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/clock"
)

// Defaults of [Config], and what is no setting.
const (
	DefaultTTL       = 10 * time.Second
	DefaultCacheSize = 100_000
	DefaultPatience  = 150 * time.Millisecond

	operatorPatience = 10 * time.Second
	connectPatience  = 2 * time.Second
	logConnections   = 2 // delivery and retention
)

// Config says which database to use, and how. Pool settings such as
// pool_max_conns are parameters of the URL.
type Config struct {
	URL       string
	Digester  account.Digester // of the secret that the digests in the database were made with
	Clock     clock.Clock
	Logger    *slog.Logger
	TTL       time.Duration // longest that a looked-up policy is used; 0: [DefaultTTL]
	CacheSize int           // most keys whose policies are kept; 0: [DefaultCacheSize]
	Patience  time.Duration // longest that a call of the API waits for a database that answers nobody; 0: [DefaultPatience]

	tracer pgx.QueryTracer
	dial   pgconn.DialFunc // nil: the usual
}

// Why a database cannot be used, beside what is wrong with the configuration.
var (
	ErrAway   = errors.New("the database does not answer")
	ErrSchema = errors.New("the database has no schema, or an older one: migrate it")
)

// urlError is why a URL cannot be read. Of what is none the password would show.
func urlError(url string, err error) error {
	if strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://") {
		return err
	}
	return errors.New("the database URL cannot be read; accepted: postgres://USER:PASSWORD@HOST:PORT/DATABASE")
}

// Store is the store. Make one with [Open].
type Store struct {
	pool     *pgxpool.Pool // of the API and of operators
	logs     *pgxpool.Pool // of the API log, so that it keeps nobody waiting
	clock    clock.Clock
	digester account.Digester
	logger   *slog.Logger
	patience time.Duration
	pulse    *pulse
	cache    *cache
	charges  charges

	stop    context.CancelFunc // ends the listener
	stopped sync.WaitGroup
}

// Open connects to a database whose schema is up to date.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s := &Store{
		clock:    cfg.Clock,
		digester: cfg.Digester,
		logger:   cfg.Logger,
		patience: orElse(cfg.Patience, DefaultPatience),
		pulse:    newPulse(),
		cache:    newCache(orElse(cfg.CacheSize, DefaultCacheSize), orElse(cfg.TTL, DefaultTTL)),
	}
	pool, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, urlError(cfg.URL, err)
	}
	pool.ConnConfig.ConnectTimeout = connectPatience
	if cfg.dial != nil {
		pool.ConnConfig.DialFunc = cfg.dial
	}
	if params := pool.ConnConfig.RuntimeParams; params["application_name"] == "" {
		params["application_name"] = "brimline"
	}
	logs := pool.Copy()
	logs.MaxConns = logConnections
	pool.ConnConfig.Tracer = cfg.tracer
	pool.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		err := prepare(ctx, c)
		if err == nil {
			s.pulse.beat()
		}
		return err
	}
	// A round trip before each use of a connection that was idle would be a second
	// one for the request; a connection that broke is noticed and replaced in use.
	pool.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	if s.pool, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		return nil, err
	}
	if s.logs, err = pgxpool.NewWithConfig(ctx, logs); err != nil {
		s.pool.Close()
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		s.pool.Close()
		s.logs.Close()
		return nil, err
	}
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	listener := pool.ConnConfig.Copy()
	listener.Tracer = nil
	s.stopped.Go(func() { s.listen(ctx, listener) })
	return s, nil
}

// ready reports whether the database answers, has its tables, and was written to
// under the same secret: under another one every key would be unknown. The first
// to open it decides which that is.
func (s *Store) ready(ctx context.Context) error {
	probe := s.digester.Of(account.Key{})
	var same bool
	err := s.transaction(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := upToDate(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `insert into key_secret (probe) values ($1) on conflict do nothing`, probe[:]); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `select probe = $1 from key_secret`, probe[:]).Scan(&same)
	})
	switch {
	case errors.Is(err, ErrSchema):
		return err
	case isCode(err, "42P01", "42703", "42883"): // no such table, column or function: a statement cannot be prepared
		return fmt.Errorf("%w: %w", ErrSchema, err)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrAway, err)
	case !same:
		return errors.New("the key secret is not the one that the keys in this database were made with")
	}
	return nil
}

// Close lets go of the database. Calls that are running end first.
func (s *Store) Close() {
	s.stop()
	s.stopped.Wait()
	s.pool.Close()
	s.logs.Close()
}

// Log is the API log in this database.
func (s *Store) Log() Log { return NewLog(s.logs) }

// Forget drops what is held in memory, as a new process would begin.
func (s *Store) Forget() { s.cache.flush() }

// Digest is the digest of k that [Store.Lookup] asks for.
func (s *Store) Digest(k account.Key) account.Digest { return s.digester.Of(k) }

func (s *Store) now() time.Time { return account.StoredInstant(s.clock.Now()) }

// prepare makes the statements of the API on a connection, so that each use is one
// round trip from the first on.
func prepare(ctx context.Context, c *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	// A plan that was made while a table was small, or anew for each request, would
	// be another one: everything here is found by its key, in an index.
	if _, err := c.Exec(ctx, `select set_config('plan_cache_mode', 'force_generic_plan', false),
		set_config('enable_seqscan', 'off', false), set_config('enable_bitmapscan', 'off', false)`); err != nil {
		return err
	}
	for name, text := range statements() {
		if _, err := c.Prepare(ctx, name, text); err != nil {
			return err
		}
	}
	return nil
}

// isSevered tells a connection that has ended from a database that has answered,
// or cannot be reached.
func isSevered(err error) bool {
	var answer *pgconn.PgError
	var unreachable *pgconn.ConnectError
	switch {
	case err == nil, errors.As(err, &unreachable):
		return false
	case errors.As(err, &answer):
		return strings.HasPrefix(answer.Code, "57P") // an operator's intervention
	}
	var network *net.OpError
	return pgconn.SafeToRetry(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &network) && !network.Timeout()
}

func isCode(err error, codes ...string) bool {
	var answer *pgconn.PgError
	if !errors.As(err, &answer) {
		return false
	}
	for _, c := range codes {
		if answer.Code == c {
			return true
		}
	}
	return false
}

// userPrefix makes a user's id of its number in the database.
const userPrefix = "user-"

func userID(number int64) string { return userPrefix + strconv.FormatInt(number, 10) }

func userNumber(id string) (int64, error) {
	digits, ok := strings.CutPrefix(id, userPrefix)
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || userID(n) != id {
		return 0, unknownUser(id)
	}
	return n, nil
}

func unknownUser(id string) error { return fmt.Errorf("%w %q", account.ErrUnknownUser, id) }

func orElse[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

// utc is an instant that may be missing, as the rest of the reference has it.
func utc(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// orNull is the way back.
func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
