package server_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/invoice"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/wiring"
)

var h2c = server.Transport{H2C: true}

// TestPermitIsReleasedOnceOverHTTP2 is TestPermitIsReleasedOnce for the ways in
// which a stream can end.
func TestPermitIsReleasedOnceOverHTTP2(t *testing.T) {
	patient := start(t, server.Config{Transport: h2c, Alter: func(p *wiring.Parts) { p.Bounds.Linger = 100 * time.Millisecond }})
	hasty := start(t, server.Config{Transport: h2c, Alter: func(p *wiring.Parts) {
		quick(p)
		p.Bounds.Upload, p.Bounds.Write = 50*time.Millisecond, 200*time.Millisecond
	}})
	hasty.cutOff = true
	length := func(f *fixture, h *h2, u wire.User, n int) h2answer {
		return h.answer(h.send(operation(u.Keys[0]), strings.Repeat("{", n)))
	}
	opened := func(f *fixture, h *h2, u wire.User, part string) uint32 {
		id := h.open(operation(u.Keys[0], "expect", "100-continue"), true)
		for h.of(id).status != "100" { // the body is being read: the request is in flight
			h.take()
		}
		if part != "" {
			require.NoError(f, h.framer.WriteData(id, false, []byte(part)))
		}
		return id
	}
	heldAt := func(f *fixture, h *h2, u wire.User, place wire.Place) uint32 {
		f.gate(http.MethodPut, u, place)
		id := h.send(operation(u.Keys[0]), goodInvoice)
		f.waiting(u, place, 1)
		return id
	}
	with := func(b wire.Behaviour) func(*fixture, *h2, wire.User) {
		return func(f *fixture, h *h2, u wire.User) {
			f.engine(u, b)
			require.Regexp(f, "^50[04]$", h.answer(h.send(operation(u.Keys[0]), goodInvoice)).status)
			f.engine(u, wire.EngineOK)
		}
	}
	for name, end := range map[string]func(*fixture, *h2, wire.User){
		"success": func(f *fixture, h *h2, u wire.User) {
			require.Equal(f, "200", h.answer(h.send(operation(u.Keys[0]), goodInvoice)).status)
		},
		"validation failure": func(f *fixture, h *h2, u wire.User) { require.Equal(f, "422", length(f, h, u, 2).status) },
		"oversize body": func(f *fixture, h *h2, u wire.User) {
			id := h.open(operation(u.Keys[0]), true)
			h.upload(id, 2<<20)
			require.Equal(f, "422", h.answer(id).status)
		},
		"not found, with a body to come": func(f *fixture, h *h2, u wire.User) {
			a := h.answer(h.open(replaced(operation(u.Keys[0]), fields{":path", "/v1/invoice/x"}), true))
			require.Equal(f, "404", a.status)
		},
		"engine failure":    with(wire.EngineFail),
		"engine panic":      with(wire.EnginePanic),
		"timeout, obeyed":   with(wire.EngineTimeout),
		"timeout, stubborn": with(wire.EngineStubborn),
		"reset at once": func(f *fixture, h *h2, u wire.User) {
			h.reset(h.open(operation(u.Keys[0]), true))
		},
		"reset in the body": func(f *fixture, h *h2, u wire.User) { h.reset(opened(f, h, u, goodInvoice[:10])) },
		"reset at the engine": func(f *fixture, h *h2, u wire.User) {
			h.reset(heldAt(f, h, u, wire.PlaceEngine))
		},
		"reset in the response": func(f *fixture, h *h2, u wire.User) {
			h.reset(heldAt(f, h, u, wire.PlaceResponse))
		},
		"connection cut in the body":     func(f *fixture, h *h2, u wire.User) { opened(f, h, u, "{"); reset(h.conn.(*net.TCPConn)) },
		"connection cut at the engine":   func(f *fixture, h *h2, u wire.User) { heldAt(f, h, u, wire.PlaceEngine); reset(h.conn.(*net.TCPConn)) },
		"connection ended at the engine": func(f *fixture, h *h2, u wire.User) { heldAt(f, h, u, wire.PlaceEngine); h.conn.Close() },
		"goodbye at the engine": func(f *fixture, h *h2, u wire.User) {
			id := heldAt(f, h, u, wire.PlaceEngine)
			require.NoError(f, h.framer.WriteGoAway(0, 0, nil))
			f.gate(http.MethodDelete, u, wire.PlaceEngine)
			require.Equal(f, "200", h.answer(id).status, "it says nothing of what is in flight")
		},
		"hasty: stalled upload": func(f *fixture, h *h2, u wire.User) {
			require.Equal(f, "100 422", h.answer(opened(f, h, u, "{")).status)
		},
		"hasty: unread response": func(f *fixture, _ *h2, u wire.User) {
			h := newH2(f.T, f.dial(), 0)
			require.Equal(f, "200 reset INTERNAL_ERROR", h.answer(h.send(operation(u.Keys[0]), goodInvoice)).status)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := patient.in(t)
			if strings.HasPrefix(name, "timeout") || strings.HasPrefix(name, "hasty") {
				f = hasty.in(t)
			}
			u := f.roomy(f.newUser("free"))
			for range freeCap + 1 {
				h := f.h2("h2c")
				end(f, h, u)
				f.idle()
				for _, place := range []wire.Place{wire.PlaceEngine, wire.PlaceResponse} {
					f.gate(http.MethodDelete, u, place)
				}
				h.conn.Close()
			}
			f.capIs(u, freeCap)
		})
	}
}

// upload sends a body as fast as the windows let it, until it is sent or the
// stream has ended.
func (h *h2) upload(id uint32, size int) {
	h.Helper()
	const frame = 16 << 10
	for connection, stream := 65535, 65535; size > 0 && !h.of(id).ended; {
		if min(connection, stream) < frame {
			c, s := h.windows(id)
			connection, stream = connection+c, stream+s
			continue
		}
		require.NoError(h, h.framer.WriteData(id, size <= frame, make([]byte, min(frame, size))))
		size, connection, stream = size-frame, connection-frame, stream-frame
	}
}

// windows takes one frame in and returns by how much it widens the windows.
func (h *h2) windows(id uint32) (connection, stream int) {
	h.Helper()
	h.widened = [2]int{}
	h.watched = id
	h.take()
	return h.widened[0], h.widened[1]
}

// busyEngine works on for a while whatever its context says, and knows how much
// was in flight at most.
type busyEngine struct {
	httpapi.Engine
	now, most, calls atomic.Int64
}

func (e *busyEngine) Calculate(ctx context.Context, in invoice.Invoice) (invoice.Result, error) {
	e.calls.Add(1)
	n := e.now.Add(1)
	defer e.now.Add(-1)
	for most := e.most.Load(); n > most && !e.most.CompareAndSwap(most, n); most = e.most.Load() {
	}
	time.Sleep(time.Millisecond)
	return e.Engine.Calculate(context.WithoutCancel(ctx), in)
}

// TestRapidReset: streams opened and reset in one breath leave work behind that
// is counted until it has ended, and the connection goes on (PERMIT-7, CONC-6).
func TestRapidReset(t *testing.T) {
	e := &busyEngine{}
	f := start(t, server.Config{Transport: h2c, Alter: func(p *wiring.Parts) { e.Engine, p.Engine = p.Engine, e }})
	u := f.roomy(f.newUser("free"))
	f.control(http.MethodPut, "/users/"+u.ID+"/operations", wire.Operations{Remaining: 10_000}, nil)
	h := f.h2("h2c")
	for range 1000 {
		h.reset(h.send(operation(u.Keys[0]), goodInvoice))
	}
	require.Equal(t, "200", h.answer(h.send(fields{":method", "GET", ":scheme", "http", ":authority", "x", ":path", "/health"}, "")).status)
	f.idle()
	require.Equal(t, "200", h.answer(h.send(operation(u.Keys[0]), goodInvoice)).status, "the connection is as good as before")
	require.LessOrEqual(t, e.most.Load(), int64(freeCap))
	t.Logf("1,000 pairs: %d reached the engine, at most %d at once; %d log entries", e.calls.Load()-1, e.most.Load(), len(f.audit(u).Entries))
	f.capIs(u, freeCap)
}

// TestRejectionEndsAStreamAlone: a client that still uploads has its answer, and
// other streams of its connection do not notice (ERR-3).
func TestRejectionEndsAStreamAlone(t *testing.T) {
	f := start(t, server.Config{Transport: h2c})
	u, other := f.newUser("free"), f.newUser("free")
	f.empty(u)
	h := f.h2("h2c")
	f.gate(http.MethodPut, other, wire.PlaceEngine)
	held := h.send(operation(other.Keys[0]), goodInvoice)
	f.waiting(other, wire.PlaceEngine, 1)
	for range 3 {
		id := h.open(operation(u.Keys[0]), true)
		h.upload(id, 8<<20)
		a := h.answer(id)
		require.Equal(t, "429", a.status, "before anything else")
		require.Contains(t, a.body, contract.CodeRateLimited)
		h.answer(h.send(fields{":method", "GET", ":scheme", "http", ":authority", "x", ":path", "/health"}, ""))
		require.Empty(t, h.of(id).reset, "the upload was taken to its end: proxies lose answers to a reset")
	}
	f.gate(http.MethodDelete, other, wire.PlaceEngine)
	require.Equal(t, "200", h.answer(held).status)
	require.Equal(t, "200", h.answer(h.send(operation(other.Keys[0]), goodInvoice)).status, "the connection takes requests")
}

// TestTimeoutOverHTTP2 is told at once, and leaves the connection as it is.
func TestTimeoutOverHTTP2(t *testing.T) {
	f := start(t, server.Config{Transport: h2c, Alter: quick})
	u := f.newUser("free")
	f.engine(u, wire.EngineStubborn)
	f.gate(http.MethodPut, u, wire.PlaceEngine)
	h := f.h2("h2c")
	id := h.send(operation(u.Keys[0]), goodInvoice)
	for !strings.Contains(h.of(id).body, contract.CodeEngineTimeout) {
		h.take()
	}
	require.Equal(t, "504", h.of(id).status)
	require.False(t, h.of(id).ended, "the stream ends when the work has ended, and the permit with it")
	f.engine(u, wire.EngineOK)
	f.gate(http.MethodDelete, u, wire.PlaceEngine)
	require.Equal(t, "504", h.answer(id).status)
	require.Equal(t, "422", h.answer(h.send(operation(u.Keys[0]), "{}")).status, "on the same connection")
}
