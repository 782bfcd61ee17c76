package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrate brings the schema of a database up to date and returns how many steps
// that took. Replicas may do so at once: one does the work, the others wait for it.
func Migrate(ctx context.Context, databaseURL string) (steps int, err error) {
	cfg, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return 0, urlError(databaseURL, err)
	}
	db := stdlib.OpenDB(*cfg)
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.PingContext(ctx); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrAway, err)
	}
	p, err := provider(db)
	if err != nil {
		return 0, err
	}
	done, err := p.Up(ctx)
	if err != nil {
		return len(done), fmt.Errorf("migrate: %w", err)
	}
	return len(done), nil
}

func provider(db *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	session, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 120), lock.WithUnlockTimeout(1, 5))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithSessionLocker(session), goose.WithDisableGlobalRegistry(true))
}

// upToDate is [ErrSchema] where a step of this program's schema is missing.
func upToDate(ctx context.Context, tx pgx.Tx) error {
	files, err := migrations.ReadDir("migrations")
	if err != nil {
		return err
	}
	want, err := goose.NumericComponent(files[len(files)-1].Name())
	if err != nil {
		return err
	}
	var has int64
	err = tx.QueryRow(ctx, `select coalesce(max(version_id), 0) from goose_db_version where is_applied`).Scan(&has)
	if err == nil && has < want {
		return fmt.Errorf("%w: it is at step %d of %d", ErrSchema, has, want)
	}
	return err
}
