// Package server starts the reference server: configuration to parts to
// listeners. [Open] returns a server that takes requests, [Server.Close] drains
// it. Package wiring says what it is made of.
//
// Nothing listens beyond loopback unless [Config.AllowRemote] says so, and the
// control protocol never does.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/internal/build"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/apilog"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/control"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/invoice"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/store/memory"
	"github.com/invoicespec/brimline/reference/wiring"
)

// KeysPerUser is how many keys each user that a server starts with has.
const KeysPerUser = 2

// Config says what to start. Its zero value, with an address, is a server on
// the real clock with the default plans, no users, no log and no control.
type Config struct {
	Listen      string                 // address; required
	Control     string                 // address of the control protocol; empty: none
	AllowRemote bool                   // Listen may be beyond loopback; Control, which has no TLS, never
	Clock       wire.ClockMode         // empty: real
	Users       int                    // to start with, per plan
	APILog      string                 // file that log entries are appended to; empty: none
	Plans       map[string]policy.Plan // nil: [DefaultPlans]
	Alter       func(*wiring.Parts)    // makes another server of it; may be nil
	Logger      *slog.Logger           // nil: nothing is logged
}

// User is a user that a server started with.
type User struct {
	ID   string
	Plan string
	Keys []account.Key
}

// Server is a running server.
type Server struct {
	api, ctl  *listening // ctl is nil without control
	control   *control.Control
	users     []User
	plans     map[string]policy.Plan
	logFile   *apilog.File
	drain     time.Duration
	abandon   context.CancelFunc // ends the context of every request
	handlers  atomic.Int64       // running now
	failed    chan error
	closeOnce sync.Once
	closeErr  error
}

// Open starts a server. When it returns, connections are accepted; ctx is the
// ancestor of every request's context and of nothing else.
func Open(ctx context.Context, cfg Config) (*Server, error) {
	logger := cfg.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	c, err := newClock(&cfg.Clock)
	if err != nil {
		return nil, err
	}
	s := &Server{plans: cfg.Plans, failed: make(chan error, 2)}
	if s.plans == nil {
		s.plans = DefaultPlans()
	}
	store := memory.New(s.plans, c)
	if s.users, err = createUsers(ctx, store, s.plans, cfg.Users); err != nil {
		return nil, err
	}
	var log httpapi.Log = apilog.Discard{}
	if cfg.APILog != "" {
		if s.logFile, err = apilog.OpenFile(cfg.APILog); err != nil {
			return nil, err
		}
		log = s.logFile
	}
	parts := wiring.Default(wiring.Needs{
		Clock:    c,
		Plans:    s.plans,
		Digest:   store.Digest,
		Accounts: store,
		Ledger:   store,
		Limiter:  limiter.NewLocal(c, limiter.Config{}),
		Engine:   invoice.Engine{},
		Log:      log,
		Logger:   logger,
		Operator: store,
	})
	if cfg.Control != "" {
		s.control = control.New(control.Config{Server: "brimline " + build.Version(), Clock: c, Mode: cfg.Clock})
		s.control.Attach(parts)
	}
	if cfg.Alter != nil {
		cfg.Alter(parts)
	}
	if err := s.start(ctx, cfg, parts, logger); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

// start opens every listener before any request is served.
func (s *Server) start(ctx context.Context, cfg Config, parts *wiring.Parts, logger *slog.Logger) error {
	if err := parts.Guarded(); err != nil {
		return err
	}
	ctx, s.abandon = context.WithCancel(ctx)
	s.drain = parts.Bounds.Stopped
	var err error
	if s.api, err = listen(cfg.Listen, cfg.AllowRemote, newHTTPServer(ctx, s.counted(parts.Handler()), parts.Bounds, logger)); err != nil {
		return err
	}
	if s.control != nil {
		bounds := parts.Bounds
		bounds.Write = 10 * time.Second
		h := newHTTPServer(ctx, s.counted(s.control.Handler()), bounds, logger)
		h.ReadTimeout = 10 * time.Second
		if s.ctl, err = listen(cfg.Control, false, h); err != nil {
			return fmt.Errorf("control: %w", err)
		}
		s.ctl.serve(s.failed)
	}
	s.api.serve(s.failed)
	return nil
}

// counted lets Close wait for handlers whose connections it has cut.
func (s *Server) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.handlers.Add(1)
		defer s.handlers.Add(-1)
		h.ServeHTTP(w, r)
	})
}

func newClock(mode *wire.ClockMode) (clock.Clock, error) {
	switch *mode {
	case "", wire.ClockReal:
		*mode = wire.ClockReal
		return clock.NewReal(), nil
	case wire.ClockShifted:
		return clock.NewShifted(clock.NewReal()), nil
	case wire.ClockFrozen:
		return clock.NewFrozen(time.Now()), nil
	}
	return nil, fmt.Errorf("clock %q: want %s, %s or %s", *mode, wire.ClockReal, wire.ClockShifted, wire.ClockFrozen)
}

func createUsers(ctx context.Context, store *memory.Store, plans map[string]policy.Plan, perPlan int) ([]User, error) {
	var users []User
	for _, plan := range sortedNames(plans) {
		for range perPlan {
			id, keys, err := store.CreateUser(ctx, plan, KeysPerUser)
			if err != nil {
				return nil, err
			}
			users = append(users, User{ID: id, Plan: plan, Keys: keys})
		}
	}
	return users, nil
}

// Users are the users that the server started with, by plan.
func (s *Server) Users() []User { return s.users }

// Plans is the plan table.
func (s *Server) Plans() map[string]policy.Plan { return s.plans }

// URL is the base URL of the API.
func (s *Server) URL() string { return s.api.url() }

// Addr is the address that the API listens on.
func (s *Server) Addr() net.Addr { return s.api.listener.Addr() }

// ControlURL is the base URL of the control protocol, or empty.
func (s *Server) ControlURL() string {
	if s.ctl == nil {
		return ""
	}
	return s.ctl.url()
}

// ControlToken is the token of the control protocol, or empty. It opens all.
func (s *Server) ControlToken() string {
	if s.control == nil {
		return ""
	}
	return s.control.Token()
}

// Failed receives an error when a listener fails while the server runs.
func (s *Server) Failed() <-chan error { return s.failed }
