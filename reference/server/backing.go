package server

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/apilog"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/store/memory"
	"github.com/invoicespec/brimline/reference/store/postgres"
	"github.com/invoicespec/brimline/reference/wiring"
)

// Database says which PostgreSQL a server keeps its users, plans and API log in.
type Database struct {
	URL       string
	KeySecret []byte        // what keys are digested with: at least [account.MinSecret] bytes, the same for all who use the database
	Migrate   bool          // bring the schema up to date first
	TTL       time.Duration // longest that a looked-up policy is used; 0: the store's default
	Spool     string        // directory where log entries wait for the database; required
	SpoolSize int64         // bytes that may wait; 0: the spool's default
	Retention time.Duration // how long log entries are kept; 0: for ever
}

// retentionEvery is how often old log entries are looked for.
const retentionEvery = time.Minute

// store is what a server asks of its store, whichever it is.
type store interface {
	httpapi.Accounts
	httpapi.Ledger
	wiring.Operator
	Digest(k account.Key) account.Digest
}

// backing is what a server keeps its users and its log in.
type backing struct {
	store
	log    httpapi.Log
	logged func(ctx context.Context, requestID string) ([]contract.LogEntry, error) // reads it; nil: nobody can
	spool  *apilog.Spool                                                            // nil: the log is no spool
	known  func(ctx context.Context, id, plan string, keys []account.Key) error     // adds a user of another process; nil: the database has its own
	forget func()                                                                   // drops what is held in memory of what is stored; nil: nothing outlives a restart
	close  func(ctx context.Context) error                                          // after the last request
}

// openMemory keeps everything in this process, and the log in a file if there is
// to be one.
func openMemory(cfg Config, c clock.Clock, plans map[string]policy.Plan) (backing, error) {
	users := memory.New(plans, c)
	b := backing{store: users, known: users.AddUser, log: apilog.Discard{}, close: func(context.Context) error { return nil }}
	if cfg.Lasting {
		b.forget = func() {}
	}
	if cfg.APILog != "" {
		f, err := apilog.OpenFile(cfg.APILog)
		if err != nil {
			return backing{}, err
		}
		b.log, b.close = f, func(context.Context) error { return f.Close() }
		b.logged = func(_ context.Context, id string) ([]contract.LogEntry, error) { return f.Find(id) }
	}
	return b, nil
}

// openDatabase keeps everything in PostgreSQL. Plans that it does not have are
// added; those that it has stay as they are.
func openDatabase(ctx context.Context, cfg Config, c clock.Clock, plans map[string]policy.Plan, logger *slog.Logger) (_ backing, err error) {
	d := cfg.Database
	digester, err := account.DigesterFrom(d.KeySecret)
	if err != nil {
		return backing{}, err
	}
	if d.Migrate {
		if _, err := postgres.Migrate(ctx, d.URL); err != nil {
			return backing{}, err
		}
	}
	s, err := postgres.Open(ctx, postgres.Config{URL: d.URL, Digester: digester, Clock: c, Logger: logger, TTL: d.TTL})
	if err != nil {
		return backing{}, err
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if err := s.AddPlans(ctx, plans); err != nil {
		return backing{}, err
	}
	spool, err := apilog.OpenSpool(apilog.SpoolConfig{Dir: d.Spool, Size: d.SpoolSize, Sink: s.Log(), Logger: logger})
	if err != nil {
		return backing{}, fmt.Errorf("API log spool: %w", err)
	}
	retaining, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	if d.Retention > 0 {
		wg.Go(func() {
			s.Log().Retain(retaining, postgres.Retention{Age: d.Retention, Every: retentionEvery, Clock: c, Logger: logger})
		})
	}
	return backing{store: s, log: spool, spool: spool, logged: s.Log().Find, forget: s.Forget, close: func(ctx context.Context) error {
		stop()
		wg.Wait()
		err := spool.Close(ctx)
		s.Close()
		return err
	}}, nil
}
