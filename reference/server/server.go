// Package server starts the reference server: configuration to parts to
// listeners. [Open] returns a server that takes requests, [Server.Close] drains
// it. Package wiring says what it is made of.
//
// Nothing listens beyond loopback unless [Config.AllowRemote] says so, and the
// control protocol never does.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/internal/build"
	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/admission"
	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/clientip"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/control"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/invoice"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/telemetry"
	"github.com/invoicespec/brimline/reference/wiring"
)

// KeysPerUser is how many keys each user that a server starts with has.
const KeysPerUser = 2

// Config says what to start. Its zero value, with an address, is a server on
// the real clock with the default plans, no users, no log and no control.
type Config struct {
	Listen      string                 // address; required
	Control     string                 // address of the control protocol; empty: none
	Metrics     string                 // address of the page of metrics; empty: none
	AllowRemote bool                   // Listen and Metrics may be beyond loopback; Control, which has no TLS, never
	Clock       wire.ClockMode         // empty: real
	Users       int                    // to start with, per plan
	Known       []User                 // to start with beside them, with names and keys from another process; not with Database
	Plans       map[string]policy.Plan // nil: [DefaultPlans]
	Database    *Database              // nil: everything is kept in memory
	Lasting     bool                   // what is kept in memory outlives a restart that the control protocol asks for, as a database does
	APILog      string                 // file that log entries are appended to; empty: none. Not with Database

	Transport Transport // how connections are taken and let go

	Replicas  int64            // processes that share the limits; 0: 1
	Storage   string           // where buckets and permits are kept; empty: [StorageLocal]
	Limits    limiter.Config   // how much the limiter remembers
	Addresses clientip.Config  // whose request it is
	Anonymous anonymous.Config // what one address may try without a good key, at the API and at the billing page's sign-in

	OperatorToken string // opens /internal/billing; empty: nobody does
	CapacityToken string // opens /internal/capacity; empty: nobody does
	SessionSecret []byte // of the billing page's sessions; nil: they end with the process

	Engine httpapi.Engine      // nil: [invoice.Engine]
	Alter  func(*wiring.Parts) // makes another server of it; may be nil
	Logger *slog.Logger        // nil: nothing is logged
}

// User is a user that a server started with.
type User struct {
	ID   string
	Plan string
	Keys []account.Key
}

// Server is a running server.
type Server struct {
	api         *listening
	ctl, page   *listening // nil without control, and without metrics
	control     *control.Control
	certificate *certificate // nil: no TLS
	users       []User
	plans       map[string]policy.Plan
	backing     backing
	drain       time.Duration // for requests in flight to end
	delay       time.Duration // before that, while readiness fails
	draining    atomic.Bool
	serving     bool
	abandon     context.CancelFunc // ends the context of every request
	handlers    atomic.Int64       // running now
	failed      chan error
	closeOnce   sync.Once
	closeErr    error
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
	s := &Server{plans: cfg.Plans, failed: make(chan error, 3)}
	if s.plans == nil {
		s.plans = DefaultPlans()
	}
	if s.backing, err = open(ctx, cfg, c, s.plans, logger); err != nil {
		return nil, err
	}
	parts, err := s.parts(cfg, c, logger)
	if err == nil {
		err = s.backing.addKnown(ctx, cfg.Known)
	}
	if err == nil {
		s.users, err = createUsers(ctx, s.backing, s.plans, cfg.Users)
		s.users = append(slices.Clone(cfg.Known), s.users...)
	}
	if err != nil {
		return nil, errors.Join(err, s.backing.close(ctx))
	}
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

func open(ctx context.Context, cfg Config, c clock.Clock, plans map[string]policy.Plan, logger *slog.Logger) (backing, error) {
	switch {
	case cfg.Database == nil:
		return openMemory(cfg, c, plans)
	case cfg.APILog != "":
		return backing{}, errors.New("the API log goes into the database, or into a file: not both")
	}
	return openDatabase(ctx, cfg, c, plans, logger)
}

// parts are those of a server that keeps the contract, metered.
func (s *Server) parts(cfg Config, c clock.Clock, logger *slog.Logger) (*wiring.Parts, error) {
	clients, err := clientip.New(cfg.Addresses)
	if err != nil {
		return nil, err
	}
	limits := renewableLimits{newRenewable(func() *limiter.Local { return limiter.NewLocal(c, cfg.Limits) })}
	parts := wiring.Default(wiring.Needs{
		Clock:    c,
		Plans:    s.plans,
		Digest:   s.backing.Digest,
		Accounts: s.backing,
		Ledger:   s.backing,
		Limiter:  limits,
		Engine:   cmp.Or[httpapi.Engine](cfg.Engine, invoice.Engine{}),
		Log:      s.backing.log,
		Logger:   logger,
		Operator: s.backing,
	})
	var m *telemetry.Meters
	cfg.Anonymous.Observe = func(o admission.Outcome, took time.Duration) { m.AnonymousDecided(o, took) }
	gate := renewableGate{newRenewable(func() *anonymous.Gate { return anonymous.New(c, cfg.Anonymous) })}
	parts.Clients, parts.Gate = clients, gate
	parts.Logged = s.backing.logged
	meters := telemetry.Config{Limiter: limits, Gate: gate, Logger: logger}
	if s.backing.spool != nil {
		meters.Log = s.backing.spool
	}
	m = telemetry.New(meters)
	parts.Meters, parts.Metrics = m, m.Handler()
	parts.Guards = append(parts.Guards, guards(cfg.Storage, cfg.Replicas)...)
	if s.backing.forget != nil {
		parts.Restart = func(context.Context) error {
			s.backing.forget()
			limits.renew()
			gate.renew()
			return nil
		}
	}
	return parts, mount(cfg, parts)
}

// start opens every listener before any request is served.
func (s *Server) start(ctx context.Context, cfg Config, parts *wiring.Parts, logger *slog.Logger) error {
	if err := parts.Guarded(); err != nil {
		return err
	}
	ctx, s.abandon = context.WithCancel(ctx)
	s.drain, s.delay = cmp.Or(cfg.Transport.DrainTimeout, parts.Bounds.Stopped), cfg.Transport.DrainDelay
	if h, ok := parts.Outside[httpapi.ReadyPath]; ok {
		parts.Outside[httpapi.ReadyPath] = ready(&s.draining, h)
	}
	api := newHTTPServer(ctx, s.counted(front(&s.draining, parts.Handler())), parts.Bounds, logger)
	var err error
	if s.certificate, err = cfg.Transport.secure(api, logger); err != nil {
		return err
	}
	open := cfg.Transport.connections()
	if s.api, err = listen(cfg.Listen, cfg.AllowRemote, open, api); err != nil {
		return err
	}
	if s.control != nil {
		bounds := parts.Bounds
		bounds.Write = 10 * time.Second
		h := newHTTPServer(ctx, s.counted(s.control.Handler()), bounds, logger)
		h.ReadTimeout = 10 * time.Second
		if s.ctl, err = listen(cfg.Control, false, open, h); err != nil {
			return fmt.Errorf("control: %w", err)
		}
		s.ctl.serve(s.failed)
	}
	if cfg.Metrics != "" {
		if s.page, err = listen(cfg.Metrics, cfg.AllowRemote, open, newHTTPServer(ctx, s.counted(parts.Metrics), parts.Bounds, logger)); err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
		s.page.serve(s.failed)
	}
	if s.certificate != nil {
		s.certificate.say()
	}
	s.api.serve(s.failed)
	s.serving = true
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

func createUsers(ctx context.Context, store store, plans map[string]policy.Plan, perPlan int) ([]User, error) {
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

// MetricsURL is the base URL of the page of metrics, or empty.
func (s *Server) MetricsURL() string {
	if s.page == nil {
		return ""
	}
	return s.page.url()
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
