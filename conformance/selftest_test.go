package conformance_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/reference/fault"
	"github.com/invoicespec/brimline/reference/wiring"
	"github.com/invoicespec/brimline/reports/record"
)

// known is every fault there is, or those of a clause.
func known(clauses ...string) []conformance.Fault {
	var all []conformance.Fault
	for _, f := range fault.All() {
		if len(clauses) == 0 || slices.Contains(clauses, f.Clause) {
			all = append(all, conformance.Fault{Name: f.Name, Clause: f.Clause})
		}
	}
	return all
}

// Every fault is caught by a scenario of the clause it breaks, and the correct
// server by none. A fault that only shows where requests meet may need a second
// look, with nobody beside it.
func TestSelfTestCatchesEveryFault(t *testing.T) {
	t.Parallel()
	st, err := conformance.SelfTest(t.Context(), known(), openFault, conformance.ItsClause, conformance.Options{})
	require.NoError(t, err)
	require.Empty(t, st.Correct)
	var missed []conformance.Fault
	for _, f := range st.Faults {
		if !f.Caught {
			t.Logf("%s is not caught at first: %s %v", f.Name, f.Reason, f.By)
			missed = append(missed, conformance.Fault{Name: f.Name, Clause: f.Clause})
		}
	}
	if len(missed) == 0 {
		return
	}
	require.Less(t, len(missed), 5)
	untilTold(t, func() bool {
		again, err := conformance.SelfTest(t.Context(), missed, openFault, conformance.ItsClause, conformance.Options{Workers: 1})
		require.NoError(t, err)
		return again.Caught == len(missed)
	})
}

func TestInterruptedSelfTestKeepsWhatItHas(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	st, err := conformance.SelfTest(ctx, known("HDR-5"), openFault, conformance.ItsClause, conformance.Options{
		Clauses: []string{"HDR-5"}, Workers: 1, Progress: func(conformance.Event) { cancel() },
	})
	require.NoError(t, err)
	require.Equal(t, record.ResultPartial, st.Result)
	require.Equal(t, "interrupted", st.Aborted)
	require.Equal(t, 1, st.Caught)
	require.Equal(t, "not run: interrupted", st.Faults[len(st.Faults)-1].Reason)
}

// openFault opens the reference with a fault.
func openFault(ctx context.Context, name string) (*target.Target, func() error, error) {
	var alter func(*wiring.Parts)
	if name != "" {
		f, err := fault.ByName(name)
		if err != nil {
			return nil, nil, err
		}
		alter = f.Apply
	}
	r, err := newReference(control.ClockFrozen, nil, alter)
	if err != nil {
		return nil, nil, err
	}
	if name != "" {
		r.file.Can.Process.Command = append(r.file.Can.Process.Command, "--fault", name)
	}
	tgt, err := r.dial(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, r.Close(ctx))
	}
	return tgt, func() error { return errors.Join(tgt.Close(), r.Close(context.WithoutCancel(ctx))) }, nil
}
