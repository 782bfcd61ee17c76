package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/invoicespec/brimline/reference/fault"
	"github.com/invoicespec/brimline/reference/server"
)

// faultFlag is a fault by its name. It refuses the empty name too: a script
// that lost the name must not end up with a server that is right.
type faultFlag struct{ fault.Fault }

func (f *faultFlag) String() string { return f.Name }
func (f *faultFlag) Type() string   { return "string" }

func (f *faultFlag) Set(name string) (err error) {
	if f.Fault, err = fault.ByName(name); err != nil {
		// Where no name is near, the error lists them all: too many for a line.
		problem, _, _ := strings.Cut(err.Error(), ": there are ")
		return fmt.Errorf("%s; --list-faults shows them all", problem)
	}
	return nil
}

// applyFault makes the server that cfg describes a wrong one, if that is asked
// for. Nobody but who started it may meet one.
func (f serveFlags) applyFault(cfg *server.Config) error {
	if f.fault.Apply != nil && cfg.AllowRemote {
		return errors.New("--fault and --allow-remote exclude each other: a server that is wrong on purpose stays on loopback")
	}
	cfg.Alter = f.fault.Apply
	return nil
}

// announceFault says before all else that the server is wrong.
func (f serveFlags) announceFault(w io.Writer) {
	if f.fault.Apply != nil {
		fmt.Fprintf(w, "WRONG ON PURPOSE: %s breaks %s, %s\n", f.fault.Name, f.fault.Clause, f.fault.Wrong)
	}
}

// listFaults prints every fault there is.
func listFaults(w io.Writer) {
	for _, t := range fault.Tables() {
		fmt.Fprintln(w, t.Title)
		for _, f := range t.Faults {
			fmt.Fprintf(w, "  %-26s  %-8s  %s\n", f.Name, f.Clause, f.Wrong)
		}
	}
}
