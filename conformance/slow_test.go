package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/internal/proxytest"
	"github.com/invoicespec/brimline/internal/slownet"
	"github.com/invoicespec/brimline/reference/fault"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/invoice"
	"github.com/invoicespec/brimline/reference/wiring"
	"github.com/invoicespec/brimline/reports/record"
)

// slowly lets an engine take its time over one kind of invoice.
type slowly struct {
	httpapi.Engine
	takes time.Duration
}

const slowLine = "A big drawing"

func (e slowly) Calculate(ctx context.Context, in invoice.Invoice) (invoice.Result, error) {
	if in.Lines[0].Description == slowLine {
		timer := time.NewTimer(e.takes)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return invoice.Result{}, ctx.Err()
		}
	}
	return e.Engine.Calculate(ctx, in)
}

// slowReference is the reference over plain HTTP with an operation that takes its
// time, which is all that keeps a request in flight.
func slowReference(takes time.Duration, alter func(*wiring.Parts)) (reference, error) {
	r, err := newReference("", nil, func(p *wiring.Parts) {
		p.Engine, p.Bounds.Engine = slowly{p.Engine, takes}, time.Minute
		if alter != nil {
			alter(p)
		}
	})
	if err != nil {
		return r, err
	}
	can := &r.file.Can
	can.StalledUpload, can.HTTP2, can.Process = false, false, nil
	slow := r.file.Operations.Valid
	slow.Body = strings.Replace(slow.Body, "Consulting", slowLine, 1)
	r.file.Operations.Slow = &target.Slow{Operation: slow, Takes: takes}
	return r, nil
}

// heldSlowly are the clauses that a slow operation reaches over plain HTTP.
var heldSlowly = []string{"CONC-1", "CONC-2", "CONC-3", "CONC-4", "CONC-6", "HDR-9", "PERMIT-2", "PERMIT-3", "PERMIT-8", "POOL-2", "RATE-6"}

// What the kill table says of plain HTTP is so with nothing but a slow operation
// to hold requests: each fault of these clauses is caught, and the correct server
// is not blamed. Where the cap comes before the bucket, what is to see requests in
// flight finds that their rejections spend nothing, which is CONC-3.
func TestASlowOperationHoldsRequests(t *testing.T) {
	t.Parallel()
	var faults []conformance.Fault
	for _, k := range conformance.Kills() {
		if slices.Contains(heldSlowly, k.Clause) && len(k.By[record.PlainHTTP]) > 0 {
			faults = append(faults, conformance.Fault{Name: k.Fault, Clause: k.Clause})
		}
	}
	require.Greater(t, len(faults), 15)
	open := func(ctx context.Context, name string) (*target.Target, func() error, error) {
		var alter func(*wiring.Parts)
		if name != "" {
			f, err := fault.ByName(name)
			if err != nil {
				return nil, nil, err
			}
			alter = f.Apply
		}
		r, err := slowReference(2*time.Second, alter)
		if err != nil {
			return nil, nil, err
		}
		tgt, err := r.dial(ctx)
		if err != nil {
			return nil, nil, errors.Join(err, r.Close(ctx))
		}
		return tgt, func() error { return errors.Join(tgt.Close(), r.Close(context.WithoutCancel(ctx))) }, nil
	}
	untilTold(t, func() bool {
		st, err := conformance.SelfTest(t.Context(), faults, open, conformance.ItsClause, conformance.Options{Clauses: heldSlowly})
		require.NoError(t, err)
		require.Empty(t, st.Correct)
		faults = nil
		for _, f := range st.Faults {
			shown := slices.ContainsFunc(f.By, func(c record.CaughtBy) bool { return c.Clause == "CONC-3" })
			if !f.Caught && !(f.Name == "concurrency-before-token" && shown) {
				t.Logf("%s is not caught: %s %v", f.Name, f.Reason, f.By)
				faults = append(faults, conformance.Fault{Name: f.Name, Clause: f.Clause})
			}
		}
		return len(faults) == 0
	})
}

// Far away, and behind a proxy that reads uploads whole, a slow operation is what is
// left.
func TestASlowOperationBehindABufferingProxyFarAway(t *testing.T) {
	t.Parallel()
	tgt := slowBehindNginx(t).open(t)
	require.True(t, tgt.Has(contract.NeedHold))
	require.False(t, tgt.Has(contract.NeedUpload))
	c, err := conformance.Run(t.Context(), tgt, conformance.Options{Clauses: append(heldSlowly, "PERMIT-7", "ERR-3")})
	require.NoError(t, err)
	require.Zero(t, falseAlarms(t, c))
	require.Greater(t, c.Counts.Pass, len(heldSlowly)/2)
	for _, cl := range c.Clauses {
		if cl.ID == "PERMIT-7" {
			require.Equal(t, record.NotRun, cl.Verdict)
			require.Contains(t, cl.Reason, string(contract.NeedUpload))
		}
	}
}

// slowBehindNginx is slowReference behind a slow network and an nginx as it comes.
func slowBehindNginx(t *testing.T) reference {
	t.Helper()
	r, err := slowReference(3*time.Second, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	nginx := proxytest.Nginx(t, "127.0.0.1", func(listen string) string {
		return fmt.Sprintf("server { listen %s; location / { proxy_pass %s; proxy_http_version 1.1; proxy_set_header Host $http_host; } }", listen, r.URL())
	})
	oneWay := slownet.Delay{Least: 25 * time.Millisecond, Jitter: 15 * time.Millisecond}
	slow, err := slownet.Start("127.0.0.1", nginx, oneWay, oneWay)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, slow.Close()) })
	r.file.BaseURLs = []string{"http://" + slow.Addr()}
	r.file.Can.Addresses, r.file.Can.Proxy = nil, nil
	r.file.InternalRoutes = nil // nginx passes on what it has made of a path
	return r
}
