package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
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

// proxiesOnLoopback are whom the embedded reference takes for its proxies.
const proxiesOnLoopback = "127.0.9.0/24"

// embedded is an executable whose reference can be opened as a target: on
// loopback, on a frozen clock and with control. A fault's name makes it wrong.
func embedded(executable string) conformance.OpenFault {
	return func(ctx context.Context, name string) (*target.Target, func() error, error) {
		return openReference(ctx, executable, name, server.DefaultPlans())
	}
}

func openReference(ctx context.Context, executable, name string, plans map[string]policy.Plan) (*target.Target, func() error, error) {
	alter := func(p *wiring.Parts) { p.Bounds.Engine = embeddedEngineTime }
	var process *target.Process
	if executable != "" {
		process = startable(executable)
	}
	if name != "" {
		wrong, err := fault.ByName(name)
		if err != nil {
			return nil, nil, err
		}
		right := alter
		alter = func(p *wiring.Parts) { right(p); wrong.Apply(p) }
		if process != nil && !startsServers(wrong.Clause) {
			process = nil // nothing to be seen there that is not seen here, and it takes seconds
		} else if process != nil {
			process.Command = append(process.Command, "--fault", name)
		}
	}
	// What is in flight when ctx ends is ended by the suite, not by the server.
	lasting := context.WithoutCancel(ctx)
	cfg := server.Config{
		Listen: "127.0.0.1:0", Control: "127.0.0.1:0", Metrics: "127.0.0.1:0", Clock: wire.ClockFrozen, Users: 2, Plans: plans,
		Transport: server.Transport{H2C: true},
		Addresses: clientip.Config{Trusted: []netip.Prefix{netip.MustParsePrefix(proxiesOnLoopback)}},
		Logger:    slog.New(slog.NewTextHandler(io.Discard, nil)), Alter: alter,
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
	counter := newCounter(w.stderr, "faults")
	st, err := conformance.SelfTest(ctx, faults, embedded(w.executable), conformance.Options{Clauses: f.clauses, Progress: counter.show})
	counter.clear()
	if err != nil {
		return checkError(err)
	}
	if f.asJSON {
		err = printJSON(w.stdout, st)
	} else {
		err = render.SelfTest(w.stdout, st)
	}
	switch {
	case err != nil || st.Result == record.ResultSuccess:
		return err
	case st.Result == record.ResultPartial:
		return exitWith(exitCannotTell, nil)
	}
	return exitWith(exitFails, nil)
}
