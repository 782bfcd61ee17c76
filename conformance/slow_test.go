package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/features"
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
	takes func() time.Duration
}

const slowLine = "A big drawing"

func (e slowly) Calculate(ctx context.Context, in invoice.Invoice) (invoice.Result, error) {
	if len(in.Lines) > 0 && in.Lines[0].Description == slowLine {
		timer := time.NewTimer(e.takes())
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return invoice.Result{}, ctx.Err()
		}
	}
	return e.Engine.Calculate(ctx, in)
}

// slowReference is the reference with an operation that takes its time, which is all
// that keeps a request in flight. No clock means no control; where there is one, it
// has no gates.
func slowReference(clock control.ClockMode, takes time.Duration, alter func(*wiring.Parts)) (reference, error) {
	r, err := newReference(clock, nil, func(p *wiring.Parts) {
		p.Engine, p.Bounds.Engine = slowly{p.Engine, func() time.Duration { return takes }}, takes+5*time.Second
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

// withoutGates stands before a control server and says that it has no gates.
func withoutGates(u string) (*httptest.Server, error) {
	to, err := url.Parse(u)
	if err != nil {
		return nil, err
	}
	return httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			text, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			var can control.Capabilities
			if json.Unmarshal(text, &can) == nil && can.Protocol != 0 {
				can.Features = slices.DeleteFunc(can.Features, func(f control.Feature) bool { return f == control.FeatureGates })
				if text, err = json.Marshal(can); err != nil {
					return err
				}
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
			r.Header.Set("Content-Length", strconv.Itoa(len(text)))
			return nil
		},
	}), nil
}

// openSlow opens a reference of slowReference with a fault.
func openSlow(clock control.ClockMode) conformance.OpenFault {
	return func(ctx context.Context, name string) (*target.Target, func() error, error) {
		var alter func(*wiring.Parts)
		if name != "" {
			f, err := fault.ByName(name)
			if err != nil {
				return nil, nil, err
			}
			alter = f.Apply
		}
		r, err := slowReference(clock, 2*time.Second, alter)
		if err != nil {
			return nil, nil, err
		}
		end := func() error { return r.Close(context.WithoutCancel(ctx)) }
		if clock != "" {
			gate, err := withoutGates(r.ControlURL())
			if err != nil {
				return nil, nil, errors.Join(err, end())
			}
			r.file.Can.Control.URL = gate.URL
			end = func() error { gate.Close(); return r.Close(context.WithoutCancel(ctx)) }
		}
		tgt, err := r.dial(ctx)
		if err != nil {
			return nil, nil, errors.Join(err, end())
		}
		return tgt, func() error { return errors.Join(tgt.Close(), end()) }, nil
	}
}

// heldSlowly are the clauses that a slow operation reaches over plain HTTP.
func heldSlowly() []string {
	return []string{"CONC-1", "CONC-2", "CONC-3", "CONC-4", "CONC-6", "HDR-9", "PERMIT-2", "PERMIT-3", "PERMIT-8", "POOL-2", "RATE-6"}
}

// elsewhere is which faults do not show as a breach of their own clause where
// requests are held by a slow operation, but of another one, because of the requests
// that are to see them in flight; empty: not at all, since a rejection's reservation
// is given back at once.
func elsewhere() map[string]string {
	return map[string]string{"concurrency-before-token": "CONC-3", "conc-wrong-code": "RATE-1", "leak-on-success": "CONC-6", "permit-after-capacity": ""}
}

// What the kill table says is so with nothing but a slow operation to hold requests:
// each fault of these clauses is caught, and the correct server is not blamed.
func TestASlowOperationHoldsRequests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		clock   control.ClockMode
		kind    record.Setting
		clauses []string
		least   int
	}{
		"with nothing beside it": {"", record.PlainHTTP, heldSlowly(), 18},
		"with a control server":  {control.ClockReal, record.RealClock, []string{"CONC-5", "PERMIT-2", "PERMIT-4", "PERMIT-5"}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var faults []conformance.Fault
			for _, k := range conformance.Kills() {
				if slices.Contains(c.clauses, k.Clause) && len(k.By[c.kind]) > 0 {
					faults = append(faults, conformance.Fault{Name: k.Fault, Clause: k.Clause})
				}
			}
			require.GreaterOrEqual(t, len(faults), c.least)
			untilTold(t, func() bool {
				st, err := conformance.SelfTest(t.Context(), faults, openSlow(c.clock), conformance.ItsClause, conformance.Options{Clauses: c.clauses})
				require.NoError(t, err)
				require.Empty(t, st.Correct)
				faults = nil
				for _, f := range st.Faults {
					other, is := elsewhere()[f.Name]
					shown := is && (other == "" || slices.ContainsFunc(f.By, func(c record.CaughtBy) bool { return c.Clause == other }))
					if !f.Caught && !shown {
						t.Logf("%s is not caught: %s %v", f.Name, f.Reason, f.By)
						faults = append(faults, conformance.Fault{Name: f.Name, Clause: f.Clause})
					}
				}
				return len(faults) == 0
			})
		})
	}
}

// Far away, and behind a proxy that reads uploads whole, a slow operation is what is
// left.
func TestASlowOperationBehindABufferingProxyFarAway(t *testing.T) {
	t.Parallel()
	tgt := slowBehindNginx(t).open(t)
	require.True(t, tgt.Has(contract.NeedHold))
	require.False(t, tgt.Has(contract.NeedUpload))
	c, err := conformance.Run(t.Context(), tgt, conformance.Options{Clauses: append(heldSlowly(), "PERMIT-7", "ERR-3")})
	require.NoError(t, err)
	require.Zero(t, falseAlarms(t, c))
	require.Greater(t, c.Counts.Pass, len(heldSlowly())/2)
	for _, cl := range c.Clauses {
		if cl.ID == "PERMIT-7" {
			require.Equal(t, record.NotRun, cl.Verdict)
			require.Contains(t, cl.Reason, string(contract.NeedUpload))
		}
	}
}

// What is over before it can be asked about tells nothing: neither that the cap is
// not kept nor that it is.
func TestASlowOperationThatIsOverTooSoonTellsNothing(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	tired := func(p *wiring.Parts) {
		e := p.Engine.(slowly)
		e.takes = func() time.Duration {
			if asked.Add(1) == 1 {
				return 3 * time.Second
			}
			return 85 * time.Millisecond // so that it ends between the look at it and the next request
		}
		p.Engine = e
	}
	for name, c := range map[string]struct {
		takes  time.Duration
		alter  func(*wiring.Parts)
		oneWay time.Duration
	}{
		"so far away":                      {500 * time.Millisecond, nil, 100 * time.Millisecond},
		"and once took as long as it says": {3 * time.Second, tired, 25 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := slowReference("", c.takes, c.alter)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
			tgt := behindSlowNetwork(t, r, slownet.Delay{Least: c.oneWay}).open(t)
			clauses := []string{"CONC-1", "HDR-9", "PERMIT-2"}
			got, err := conformance.Run(t.Context(), tgt, conformance.Options{Clauses: clauses, Workers: 16})
			require.NoError(t, err)
			require.Zero(t, falseAlarms(t, got))
			for _, cl := range got.Clauses {
				if cl.ID == "CONC-1" {
					require.Equal(t, record.Inconclusive, cl.Verdict, "%s %+v", cl.ID, cl.Scenarios)
				}
			}
		})
	}
}

// behindSlowNetwork puts a network between us and a reference.
func behindSlowNetwork(t *testing.T, r reference, oneWay slownet.Delay) reference {
	t.Helper()
	slow, err := slownet.Start("127.0.0.1", hostOf(t, r.file.BaseURLs[0]), oneWay, oneWay)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, slow.Close()) })
	r.file.BaseURLs = []string{"http://" + slow.Addr()}
	r.file.Can.Addresses, r.file.Can.Proxy = nil, nil
	return r
}

// What slow operations and what sees them cost is known before, and the time.
func TestWhatASlowOperationTakesIsKnownBefore(t *testing.T) {
	t.Parallel()
	const takes = 2 * time.Second
	r, err := slowReference("", takes, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	tgt := r.open(t)
	asked := tgt.Charged()
	require.Positive(t, asked, "it was tried")
	clauses := []string{"CONC-1", "CONC-3", "PERMIT-3"}
	p, err := conformance.NewPlan(tgt, features.FS, clauses)
	require.NoError(t, err)
	p, err = conformance.Rehearse(t.Context(), tgt, p, stage, conformance.Options{})
	require.NoError(t, err)
	require.Equal(t, asked, tgt.Charged(), "a rehearsal asks the target nothing")
	require.GreaterOrEqual(t, p.Estimate.Time, 2*takes, "PERMIT-3 fills the cap twice")
	c, err := conformance.Run(t.Context(), tgt, conformance.Options{Clauses: clauses})
	require.NoError(t, err)
	require.Zero(t, falseAlarms(t, c))
	require.LessOrEqual(t, c.Charged-asked, p.Estimate.Operations)
}

// slowBehindNginx is slowReference behind a slow network and an nginx as it comes.
func slowBehindNginx(t *testing.T) reference {
	t.Helper()
	r, err := slowReference("", 3*time.Second, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	nginx := proxytest.Nginx(t, "127.0.0.1", func(listen string) string {
		return fmt.Sprintf("server { listen %s; location / { proxy_pass %s; proxy_http_version 1.1; proxy_set_header Host $http_host; } }", listen, r.URL())
	})
	r.file.BaseURLs = []string{"http://" + nginx}
	r.file.InternalRoutes = nil // nginx passes on what it has made of a path
	return behindSlowNetwork(t, r, slownet.Delay{Least: 25 * time.Millisecond, Jitter: 15 * time.Millisecond})
}
