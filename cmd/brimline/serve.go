package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/invoicespec/brimline/conformance/contract"
	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/internal/settings"
	"github.com/invoicespec/brimline/reference/dashboard"
	"github.com/invoicespec/brimline/reference/operator"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/server"
)

// maxUsersPerPlan keeps a mistyped --users from filling the memory.
const maxUsersPerPlan = 10_000

// sampleInvoice is a valid operation: for the curl line and for target files.
const sampleInvoice = `{"currency":"EUR","lines":[{"description":"Consulting","quantity":"2.5","unitPrice":"120.00","taxRate":"19"}]}`

const serveHelp = `Serve starts the reference server: the invoice API with the limits of the
contract, in memory, on loopback. It prints where it listens and a curl line
that is ready to paste; that line, and the files of --write-target, are the only
places where an API key is shown.

It stops on Ctrl-C or SIGTERM: /ready says 503 and connections end with their
next answer while --drain-delay lasts, then none is accepted any more, and what
is in flight may end within --drain-timeout. Behind a load balancer the delay
should be longer than that takes to notice. A second signal ends it at once.

With --control it also speaks the control protocol, by which a test changes
plans, moves the clock and holds requests. Its token goes into a file:
--write-target leaves one beside the target file, --control-token-file anywhere;
with neither it is brimline-control.token in the working directory.

With --fault the server is wrong on purpose, in the one way that is named, to
test a suite or a client against; --list-faults shows which ways there are. Such
a server says so in its first line and stays on loopback.

A plan table for --plans looks like this:

  plans:
    free: { requests-per-minute: 10, burst: 10, concurrency: 2, operations: 100 }`

// defaultTokenFile takes the control token where no other file was named.
const defaultTokenFile = "brimline-control.token"

// serveFlags are what serve was asked for.
type serveFlags struct {
	config, control, clock string
	users                  count
	keysFile, plans        string
	writeTarget, tokenFile string
	fault                  faultFlag
	listFaults             bool
	printConfig            bool
}

func serveVerb(w world) *cobra.Command {
	f := serveFlags{users: count{n: 20, most: maxUsersPerPlan}}
	configured := defaultSettings()
	names := settings.Of(configured)
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the reference server",
		Long:  serveHelp,
		Args:  noArguments("a file with settings goes behind --config"),
		RunE: func(c *cobra.Command, _ []string) error {
			if f.listFaults {
				listFaults(w.stdout)
				return nil
			}
			if err := loadSettings(c, names, f.config, f.fault.Reads(w.getenv)); err != nil {
				return err
			}
			if f.printConfig {
				return names.Print(w.stdout)
			}
			cfg, err := configured.config(names)
			if err != nil {
				return err
			}
			f.plans = configured.Brimline.Plans
			if err := f.startingUsers(&cfg, c.Flags().Changed("users")); err != nil {
				return err
			}
			if err := f.complete(&cfg); err != nil {
				return err
			}
			return serve(c.Context(), f, cfg, w)
		},
	}
	addSettings(c, names)
	flags := c.Flags()
	flags.StringVar(&f.config, "config", "", "read settings from `FILE` (YAML)")
	flags.BoolVar(&f.printConfig, "print-config", false, "print every setting and where it came from, and stop")
	flags.StringVar(&f.control, "control", "", "`ADDR`ess of the control protocol (default: none)")
	flags.StringVar(&f.clock, "clock", string(wire.ClockReal), "`KIND` of clock: real, shifted (control moves it) or frozen (only control moves it)")
	flags.Var(&f.users, "users", "`N`umber of users per plan to start with, each with two keys")
	flags.StringVar(&f.keysFile, "keys-file", "", "start with the users and keys in `FILE`, as --write-target leaves it, instead of new ones")
	flags.StringVar(&f.writeTarget, "write-target", "", "write a target file for the other verbs to `FILE`, and keys and token beside it")
	flags.StringVar(&f.tokenFile, "control-token-file", "", "write the control token to `FILE`, readable by its owner alone")
	flags.Var(&f.fault, "fault", "be wrong on purpose, in the way called `NAME`")
	flags.BoolVar(&f.listFaults, "list-faults", false, "list what --fault accepts and stop")
	return c
}

// serve runs until ctx is done.
func serve(ctx context.Context, f serveFlags, cfg server.Config, w world) error {
	if f.control != "" && f.writeTarget == "" && f.tokenFile == "" {
		f.tokenFile = defaultTokenFile
	}
	logger := slog.New(slog.NewTextHandler(w.stderr, nil))
	cfg.Logger = logger
	// Requests outlive the signal: they may end while the server drains.
	s, err := server.Open(context.WithoutCancel(ctx), cfg)
	if errors.Is(err, server.ErrRemote) {
		return fmt.Errorf("%w: other machines could reach it (--allow-remote lets them, for --listen and --metrics; only --listen can have TLS)", err)
	}
	if err != nil {
		return databaseError(err)
	}
	defer func() {
		if err := s.Close(context.WithoutCancel(ctx)); err != nil {
			logger.Error("stopping", "error", err)
		}
	}()
	trusted, err := trust(s, cfg.Transport.Certificate)
	if err != nil {
		return err
	}
	if err := f.leaveFiles(s, cfg, trusted, w.executable); err != nil {
		return err
	}
	f.announceFault(w.stdout)
	f.announce(s, cfg, trusted, w)
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.Failed():
		return exitWith(exitCannotTell, err)
	}
}

// complete checks the flags and adds what they say to the settings.
func (f serveFlags) complete(cfg *server.Config) error {
	cfg.Control, cfg.Clock = f.control, wire.ClockMode(f.clock)
	switch {
	case f.control == "" && f.tokenFile != "":
		return errors.New("--control-token-file needs --control")
	case cfg.Users == 0 && len(cfg.Known) == 0 && f.writeTarget != "" && f.control == "":
		return errors.New("--write-target needs users or --control: a target without either cannot be asked anything")
	}
	return f.applyFault(cfg)
}

// leaveFiles writes what was asked for. The token file comes first, so that
// whoever waits for the target file finds all of it.
func (f serveFlags) leaveFiles(s *server.Server, cfg server.Config, trusted *target.TLS, executable string) error {
	if f.tokenFile != "" {
		if err := writeSecret(f.tokenFile, s.ControlToken()); err != nil {
			return fmt.Errorf("write the control token: %w", err)
		}
	}
	if f.writeTarget == "" {
		return nil
	}
	file := targetFile(s, cfg)
	file.TLS = trusted
	if err := f.offer(&file, s, cfg, executable); err != nil {
		return err
	}
	return target.Write(f.writeTarget, file, keysOf(s), target.NewSecret(s.ControlToken()))
}

// internalRoutes are requests that no user's key may carry out.
func internalRoutes() []target.Route {
	const user, note = operator.Prefix + "/billing/users/{user}", `"reason":"mine","author":"me"}`
	return []target.Route{
		{Method: http.MethodPut, Path: user + "/overrides/{dimension}", Body: `{"value":50,` + note},
		{Method: http.MethodDelete, Path: user + "/overrides/{dimension}", Body: `{` + note},
		{Method: http.MethodPut, Path: user + "/scheduled-plan", Body: `{"plan":"enterprise"}`},
		{Method: http.MethodPost, Path: user + "/period/end"},
		{Method: http.MethodPut, Path: user + "/operations", Body: `{"left":1000}`},
		{Method: http.MethodGet, Path: user},
		{Method: http.MethodPost, Path: operator.Prefix + "/capacity/reservations", Body: `{"user":"{user}","id":"mine"}`},
	}
}

// targetFile describes a server to the verbs that judge one.
func targetFile(s *server.Server, cfg server.Config) target.File {
	post := func(body string) target.Operation {
		return target.Operation{Method: http.MethodPost, Path: contract.ScopePrefix + "/calculate", Body: body}
	}
	invalid := post("{}")
	f := target.File{
		BaseURLs:       []string{s.URL()},
		Credential:     target.Credential{Header: "Authorization", Template: "Bearer {key}"},
		Operations:     target.Operations{Valid: post(sampleInvoice), Invalid: &invalid},
		OutsideQuotas:  []string{"/health", "/ready", "/openapi.json"},
		InternalRoutes: internalRoutes(),
		Allowances:     map[string]target.Allowance{},
		Can: target.Can{StalledUpload: true, HTTP2: s.HTTP2(), Page: &target.Page{
			Path: dashboard.BillingPath, SignIn: dashboard.SignInPath, Field: dashboard.KeyField, Negotiated: "negotiated",
		}},
	}
	if url := s.ControlURL(); url != "" {
		f.Can.Control = &target.ControlAddress{URL: url}
	}
	for name := range s.Plans() {
		// The server has started, so every plan resolves.
		eff, _ := policy.Resolve(s.Plans(), policy.Subscription{Plan: name}, nil, time.Time{})
		f.Allowances[name] = target.Allowance{
			RequestsPerMinute: eff.Allowance.RequestsPerMinute(),
			Burst:             eff.Allowance.Burst(),
			Concurrency:       eff.Allowance.Concurrency(),
		}
	}
	addressesOf(&f, s, cfg)
	return f
}

// announce says where the server is and how to try it.
func (f serveFlags) announce(s *server.Server, cfg server.Config, trusted *target.TLS, w world) {
	fmt.Fprintf(w.stdout, "listening on %s (%d users on %d plans, clock: %s)\n", s.URL(), len(s.Users()), len(s.Plans()), cfg.Clock)
	if url := s.ControlURL(); url != "" {
		fmt.Fprintf(w.stdout, "control on %s%s\n", url, wire.Prefix)
	}
	if f.tokenFile != "" {
		fmt.Fprintf(w.stdout, "control token in %s\n", f.tokenFile)
	}
	users := s.Users()
	if len(users) == 0 {
		return
	}
	// A small plan shows the limits soonest.
	u := users[max(0, slices.IndexFunc(users, func(u server.User) bool { return u.Plan == "free" }))]
	options, base := curl(s, trusted)
	fmt.Fprintf(w.stdout, "try it as %s, plan %s:\n  curl -i%s %s%s/calculate -H 'Authorization: Bearer %s' -d '%s'\n",
		u.ID, u.Plan, options, base, contract.ScopePrefix, u.Keys[0].Reveal(), sampleInvoice)
}
