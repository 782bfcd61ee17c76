package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	wire "github.com/invoicespec/brimline/conformance/contract/control"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reference/fault"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/wiring"
	"github.com/invoicespec/brimline/reports/record"
	"github.com/invoicespec/brimline/reports/render"
)

// embeddedEngineTime is how long the embedded reference lets its engine work:
// the suite waits for timeouts.
const embeddedEngineTime = 300 * time.Millisecond

// openReference starts the reference on loopback, on a frozen clock and with
// control, and opens it as a target. A fault's name makes it wrong.
func openReference(ctx context.Context, name string) (*target.Target, func() error, error) {
	alter := func(p *wiring.Parts) { p.Bounds.Engine = embeddedEngineTime }
	if name != "" {
		wrong, err := fault.ByName(name)
		if err != nil {
			return nil, nil, err
		}
		right := alter
		alter = func(p *wiring.Parts) { right(p); wrong.Apply(p) }
	}
	// What is in flight when ctx ends is ended by the suite, not by the server.
	lasting := context.WithoutCancel(ctx)
	s, err := server.Open(lasting, server.Config{
		Listen: "127.0.0.1:0", Control: "127.0.0.1:0", Clock: wire.ClockFrozen,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), Alter: alter,
	})
	if err != nil {
		return nil, nil, err
	}
	t, err := target.Open(ctx, targetFile(s), target.Options{ControlToken: target.NewSecret(s.ControlToken())})
	if err != nil {
		return nil, nil, errors.Join(err, s.Close(lasting))
	}
	return t, func() error { return errors.Join(t.Close(), s.Close(lasting)) }, nil
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
	st, err := conformance.SelfTest(ctx, faults, openReference, conformance.Options{Clauses: f.clauses, Progress: counter.show})
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
