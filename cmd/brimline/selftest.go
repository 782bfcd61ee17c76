package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract"
	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reference/clientip"
	"github.com/invoicespec/brimline/reference/fault"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/telemetry"
	"github.com/invoicespec/brimline/reference/wiring"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

// embeddedEngineTime is how long the embedded reference lets its engine work:
// the suite waits for timeouts.
const embeddedEngineTime = 300 * time.Millisecond

// usersOfPlain is how many users a plan has where none can be made.
const usersOfPlain = 20

// proxiesOnLoopback are whom the embedded reference takes for its proxies.
const proxiesOnLoopback = "127.0.9.0/24"

// embedded is an executable whose reference can be opened as a target of some
// kind, on loopback. A fault's name makes it wrong.
func embedded(executable string, kind record.Setting) conformance.OpenFault {
	return func(ctx context.Context, name string) (*target.Target, func() error, error) {
		var wrong fault.Fault
		if name != "" {
			var err error
			if wrong, err = fault.ByName(name); err != nil {
				return nil, nil, err
			}
		}
		return openReference(ctx, kind, server.DefaultPlans(), wrong, processFor(executable, wrong))
	}
}

// processFor is how the suite starts servers of its own with a fault; nil: it
// cannot, or there is nothing to be seen there that is not seen here, and it
// takes seconds.
func processFor(executable string, wrong fault.Fault) *target.Process {
	switch {
	case executable == "":
		return nil
	case wrong.Name == "":
		return startable(executable)
	case startsServers(wrong.Clause):
		return startable(executable, "--fault", wrong.Name)
	}
	return nil
}

func openReference(ctx context.Context, kind record.Setting, plans map[string]policy.Plan, wrong fault.Fault, process *target.Process) (*target.Target, func() error, error) {
	// What is in flight when ctx ends is ended by the suite, not by the server.
	lasting := context.WithoutCancel(ctx)
	cfg := server.Config{
		Listen: "127.0.0.1:0", Metrics: "127.0.0.1:0", Plans: plans, Lasting: true,
		Transport: server.Transport{H2C: true},
		Addresses: clientip.Config{Trusted: []netip.Prefix{netip.MustParsePrefix(proxiesOnLoopback)}},
		Logger:    slog.New(slog.DiscardHandler),
		Alter: func(p *wiring.Parts) {
			p.Bounds.Engine = embeddedEngineTime
			if wrong.Apply != nil {
				wrong.Apply(p)
			}
		},
	}
	switch kind {
	case record.MovedClock:
		cfg.Control, cfg.Clock, cfg.Users = "127.0.0.1:0", wire.ClockFrozen, 2
	case record.RealClock:
		cfg.Control, cfg.Clock, cfg.Users = "127.0.0.1:0", wire.ClockReal, 2
	case record.PlainHTTP:
		cfg.Clock, cfg.Users = wire.ClockReal, usersOfPlain
	}
	s, err := server.Open(lasting, cfg)
	if err != nil {
		return nil, nil, err
	}
	file := targetFile(s, cfg)
	file.Can.Metrics = &target.MetricsAddress{URL: s.MetricsURL() + telemetry.Path}
	file.Can.Process = process
	t, err := target.Open(ctx, file, target.Options{ControlToken: target.NewSecret(s.ControlToken()), Keys: keysOf(s), Vouched: seenTo()})
	if err != nil {
		return nil, nil, errors.Join(err, s.Close(lasting))
	}
	return t, func() error { return errors.Join(t.Close(), s.Close(lasting)) }, nil
}

// seenTo lists what a server that was opened here is known to have: where it shows
// nothing of that, the server is wrong.
func seenTo() []contract.Need {
	return []contract.Need{contract.NeedProxy, contract.NeedMetrics, contract.NeedProcess}
}

// startsServers reports whether a clause is judged by servers that are started.
func startsServers(clause string) bool {
	c, _ := contract.FindClause(clause)
	return slices.Contains(c.Needs, contract.NeedProcess)
}

// runSelfTest runs the suite against every fault of the selected clauses.
func (f checkFlags) runSelfTest(ctx context.Context, w world) error {
	var faults []conformance.Fault
	for _, x := range fault.All() {
		if f.selected(x.Clause) {
			faults = append(faults, conformance.Fault{Name: x.Name, Clause: x.Clause})
		}
	}
	if len(faults) == 0 {
		return fmt.Errorf("--self-test: no fault breaks %s", strings.Join(f.clauses, ", "))
	}
	kind := record.Setting(f.on)
	if !slices.Contains(record.Settings(), kind) {
		return fmt.Errorf("--on: got %q; accepted: %s", f.on, kinds())
	}
	meets := conformance.ItsClause
	if f.whole {
		meets = conformance.EveryClause
	}
	counter := newCounter(w.stderr, "faults")
	st, err := conformance.SelfTest(ctx, faults, embedded(w.executable, kind), meets, conformance.Options{Clauses: f.clauses, Progress: counter.show})
	counter.clear()
	if err != nil {
		return checkError(err)
	}
	if err := f.reportSelfTest(st, w); err != nil {
		return err
	}
	switch st.Result {
	case record.ResultSuccess:
		return nil
	case record.ResultPartial:
		return exitWith(exitCannotTell, nil)
	}
	return exitWith(exitFails, nil)
}

// kinds lists the kinds of target for people.
func kinds() string {
	var all []string
	for _, k := range record.Settings() {
		all = append(all, string(k))
	}
	return strings.Join(all, ", ")
}

// reportSelfTest prints a kill table and leaves its files.
func (f checkFlags) reportSelfTest(st record.SelfTest, w world) error {
	if f.out != "" {
		var page, data bytes.Buffer
		if err := errors.Join(render.SelfTestMarkdown(&page, st), printJSON(&data, st)); err != nil {
			return err
		}
		for name, file := range map[string]bytes.Buffer{"selftest.json": data, "selftest.md": page} {
			if err := os.WriteFile(filepath.Join(f.out, name), file.Bytes(), 0o644); err != nil {
				return fmt.Errorf("--out: %w", err)
			}
		}
	}
	if f.asJSON {
		return printJSON(w.stdout, st)
	}
	if err := render.SelfTest(w.stdout, st); err != nil {
		return err
	}
	if f.out != "" {
		fmt.Fprintf(w.stdout, "report: %s  %s\n", filepath.Join(f.out, "selftest.json"), filepath.Join(f.out, "selftest.md"))
	}
	return nil
}
