package server_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	wire "github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/wiring"
)

// freeCap is the concurrency of the Free plan.
const freeCap = 2

// roomy gives a user so many tokens that the bucket never answers before the cap.
func (f *fixture) roomy(u wire.User) wire.User {
	f.Helper()
	f.control(http.MethodPut, "/users/"+u.ID+"/overrides/burst", wire.Override{Value: 10_000}, nil)
	return u
}

// reset closes a connection so that the peer sees a reset.
func reset(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}

// TestPermitIsReleasedOnce ends a request in each way there is, as often as the
// cap and once more, and then requires that exactly the cap fits in: a permit
// lost would leave less, one released twice more (PERMIT-2 to PERMIT-8).
func TestPermitIsReleasedOnce(t *testing.T) {
	patient, hasty := start(t, server.Config{}), start(t, server.Config{Alter: quick})
	stalled := func(f *fixture, u wire.User) *net.TCPConn {
		c := f.dial()
		_, err := io.WriteString(c, head(u.Keys[0], len(goodInvoice), "Expect: 100-continue"))
		require.NoError(f, err)
		line, err := bufio.NewReader(c).ReadString('\n')
		require.NoError(f, err)
		require.Equal(f, "HTTP/1.1 100 Continue\r\n", line, "the body is being read: the request is in flight")
		_, err = io.WriteString(c, goodInvoice[:10])
		require.NoError(f, err)
		return c
	}
	heldAt := func(f *fixture, u wire.User, place wire.Place) *net.TCPConn {
		f.gate(http.MethodPut, u, place)
		c := f.hold(u)
		f.waiting(u, place, 1)
		return c
	}
	with := func(b wire.Behaviour) func(*fixture, wire.User) {
		return func(f *fixture, u wire.User) {
			f.engine(u, b)
			require.GreaterOrEqual(f, f.calculate(u.Keys[0]).StatusCode, 500)
			f.engine(u, wire.EngineOK)
		}
	}
	for name, end := range map[string]func(*fixture, wire.User){
		"success":   func(f *fixture, u wire.User) { require.Equal(f, 200, f.calculate(u.Keys[0]).StatusCode) },
		"not found": func(f *fixture, u wire.User) { f.send("GET", "/v1/invoice/x", u.Keys[0], "") },
		"not found, body": func(f *fixture, u wire.User) {
			f.send("POST", "/v1/invoice/x", u.Keys[0], strings.Repeat("x", 300_000))
		},
		"validation failure": func(f *fixture, u wire.User) { f.send("POST", "/v1/invoice/calculate", u.Keys[0], "{}") },
		"oversize body": func(f *fixture, u wire.User) {
			f.send("POST", "/v1/invoice/calculate", u.Keys[0], strings.Repeat(" ", 2<<20))
		},
		"capacity rejection": func(f *fixture, u wire.User) {
			f.control("PUT", "/users/"+u.ID+"/operations", wire.Operations{Remaining: 0}, nil)
			require.Equal(f, 402, f.calculate(u.Keys[0]).StatusCode)
			f.control("PUT", "/users/"+u.ID+"/operations", wire.Operations{Remaining: 100}, nil)
		},
		"engine failure":        with(wire.EngineFail),
		"engine panic":          with(wire.EnginePanic),
		"timeout, obeyed":       with(wire.EngineTimeout),
		"timeout, stubborn":     with(wire.EngineStubborn),
		"gone in the body, FIN": func(f *fixture, u wire.User) { stalled(f, u).Close() },
		"gone in the body, RST": func(f *fixture, u wire.User) { reset(stalled(f, u)) },
		"half-closed in the body": func(f *fixture, u wire.User) {
			c := stalled(f, u)
			require.NoError(f, c.CloseWrite())
			io.Copy(io.Discard, c)
		},
		"gone at the engine, FIN": func(f *fixture, u wire.User) { heldAt(f, u, wire.PlaceEngine).Close(); f.idle() },
		"gone at the engine, RST": func(f *fixture, u wire.User) { reset(heldAt(f, u, wire.PlaceEngine)); f.idle() },
		"gone in the response":    func(f *fixture, u wire.User) { reset(heldAt(f, u, wire.PlaceResponse)); f.idle() },
		"gone at work": func(f *fixture, u wire.User) {
			f.engine(u, wire.EngineTimeout)
			c := f.hold(u)
			f.eventually("the engine is called", func() bool { return f.limiter.SubjectsInFlight() == 1 })
			c.Close()
			f.idle()
			f.engine(u, wire.EngineOK)
		},
		"keep-alive, pipelined": func(f *fixture, u wire.User) {
			c := f.dial()
			_, err := io.WriteString(c, strings.Repeat(head(u.Keys[0], len(goodInvoice))+goodInvoice, 3))
			require.NoError(f, err)
			r := bufio.NewReader(c)
			for range 3 {
				resp, err := http.ReadResponse(r, nil)
				require.NoError(f, err)
				require.Equal(f, 200, finish(f.T, resp).StatusCode)
			}
		},
		"refused by the cap": func(f *fixture, u wire.User) {
			f.gate(http.MethodPut, u, wire.PlaceEngine)
			held := []*net.TCPConn{f.hold(u), f.hold(u)}
			f.waiting(u, wire.PlaceEngine, freeCap)
			for range 3 {
				require.Equal(f, contract.CodeConcurrencyLimited, f.calculate(u.Keys[1]).code(f.T))
			}
			f.gate(http.MethodDelete, u, wire.PlaceEngine)
			for _, c := range held {
				require.Equal(f, 200, readAnswer(f.T, c).StatusCode)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := patient.in(t)
			if strings.HasPrefix(name, "timeout") {
				f = hasty.in(t)
			}
			u := f.roomy(f.newUser("free"))
			for range freeCap + 1 {
				end(f, u)
				f.idle()
				for _, place := range []wire.Place{wire.PlaceEngine, wire.PlaceResponse} {
					f.gate(http.MethodDelete, u, place)
				}
			}
			f.capIs(u, freeCap)
		})
	}
}

// TestConcurrencyRejection: the cap answers before anything is looked at, and
// says nothing of itself in the headers of the bucket (CONC-1 to CONC-5, HDR-9).
func TestConcurrencyRejection(t *testing.T) {
	f := start(t, server.Config{})
	u := f.newUser("free")
	f.gate(http.MethodPut, u, wire.PlaceEngine)
	f.hold(u)
	f.hold(u)
	f.waiting(u, wire.PlaceEngine, freeCap)
	for i, a := range []answer{
		f.calculate(u.Keys[1]),
		f.send("POST", "/v1/invoice/calculate", u.Keys[1], "{}"),
		f.send("GET", "/v1/invoice/x", u.Keys[0], ""),
	} {
		require.Equal(t, http.StatusTooManyRequests, a.StatusCode)
		require.Equal(t, contract.CodeConcurrencyLimited, a.code(t))
		require.Equal(t, "1", a.Header.Get("Retry-After"))
		require.Equal(t, []string{"7", "6", "5"}[i], a.Header.Get("RateLimit-Remaining"), "its token stays spent")
		e := f.logged(a.Header.Get("X-Request-Id"))
		require.Equal(t, contract.LogRejected, e.Outcome)
		require.EqualValues(t, freeCap, e.Decision.InFlight)
	}
	for range 5 {
		f.calculate(u.Keys[0])
	}
	a := f.calculate(u.Keys[0])
	require.Equal(t, contract.CodeRateLimited, a.code(t), "an empty bucket comes before a full cap")
	require.Zero(t, f.audit(u).EngineCalls)
	f.gate(http.MethodDelete, u, wire.PlaceEngine)
	f.idle()
	require.EqualValues(t, 2, f.audit(u).EngineCalls)
	require.EqualValues(t, 2, f.audit(u).Charges)
}

// TestPermitIsHeldWhileTheResponseStreams: PERMIT-1.
func TestPermitIsHeldWhileTheResponseStreams(t *testing.T) {
	f := start(t, server.Config{})
	u := f.newUser("free")
	f.gate(http.MethodPut, u, wire.PlaceResponse)
	c := f.hold(u)
	f.waiting(u, wire.PlaceResponse, 1)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err, "the head and the first byte are there")
	require.Equal(t, http.StatusOK, resp.StatusCode)
	f.hold(u)
	f.waiting(u, wire.PlaceResponse, 2)
	require.Equal(t, 2, f.gate(http.MethodGet, u, wire.PlaceResponse).Waiting)
	require.EqualValues(t, 2, f.audit(u).Charges, "the work is done and its entry written")
	require.Len(t, f.audit(u).Entries, 2)
	f.gate(http.MethodPut, u, wire.PlaceEngine)
	f.refused(u)
	f.gate(http.MethodDelete, u, wire.PlaceResponse)
	require.Contains(t, finish(t, resp).body, `"gross":"11.89"`)
	f.gate(http.MethodDelete, u, wire.PlaceEngine)
	f.idle()
}

// refused requires that the cap refuses one more request, without holding it at
// a closed response gate.
func (f *fixture) refused(u wire.User) {
	f.Helper()
	a := f.calculate(u.Keys[1])
	require.Equal(f, contract.CodeConcurrencyLimited, a.code(f.T))
}

// TestTimeoutIsAnsweredAtOnceAndHeldToTheEnd: PERMIT-6.
func TestTimeoutIsAnsweredAtOnceAndHeldToTheEnd(t *testing.T) {
	f := start(t, server.Config{Alter: quick})
	u := f.newUser("free")
	f.engine(u, wire.EngineStubborn)
	f.gate(http.MethodPut, u, wire.PlaceEngine)
	for range freeCap {
		a := f.calculate(u.Keys[0])
		require.Equal(t, contract.CodeEngineTimeout, a.code(t))
		require.True(t, a.Close, "the connection is not for further requests")
		require.Zero(t, f.logged(a.Header.Get("X-Request-Id")).Charged)
	}
	f.waiting(u, wire.PlaceEngine, freeCap)
	f.engine(u, wire.EngineOK)
	f.refused(u)
	f.gate(http.MethodDelete, u, wire.PlaceEngine)
	f.idle()
	require.Equal(t, http.StatusOK, f.calculate(u.Keys[0]).StatusCode)
	require.EqualValues(t, 1, f.audit(u).Charges)
}

// TestClientGoneIsStillCharged: what the engine did is charged, though nobody
// waits for it (LOG-7).
func TestClientGoneIsStillCharged(t *testing.T) {
	began := make(chan struct{})
	f := start(t, server.Config{Alter: func(p *wiring.Parts) {
		p.Bounds.Engine = time.Hour
		p.Engine = deafEngine{p.Engine, began}
		p.Ledger = remoteLedger{p.Ledger}
	}})
	u := f.newUser("free")
	c := f.hold(u)
	<-began
	c.Close()
	f.idle()
	a := f.audit(u)
	require.EqualValues(t, 1, a.EngineCalls)
	require.EqualValues(t, 1, a.Charges)
	require.Len(t, a.Entries, 1)
}

// TestClientGoneBeforeTheWork: what the engine did not do is given back (LOG-7).
func TestClientGoneBeforeTheWork(t *testing.T) {
	f := start(t, server.Config{Alter: func(p *wiring.Parts) {
		p.Ledger = remoteLedger{p.Ledger}
		p.Log = remoteLog{p.Log}
	}})
	u := f.newUser("free")
	f.control("PUT", "/users/"+u.ID+"/operations", wire.Operations{Remaining: 1}, nil)
	f.gate(http.MethodPut, u, wire.PlaceEngine)
	c := f.hold(u)
	f.waiting(u, wire.PlaceEngine, 1)
	require.Equal(t, http.StatusPaymentRequired, f.calculate(u.Keys[0]).StatusCode, "the only operation is reserved")
	c.Close()
	f.idle()
	a := f.audit(u)
	require.Equal(t, 499, a.Entries[0].Status)
	require.Zero(t, a.Charges)
	f.gate(http.MethodDelete, u, wire.PlaceEngine)
	require.Equal(t, http.StatusOK, f.calculate(u.Keys[0]).StatusCode)
}

// TestBodyThatNeverArrives: a slow client is given up after a time (PERMIT-7).
func TestBodyThatNeverArrives(t *testing.T) {
	f := start(t, server.Config{Alter: func(p *wiring.Parts) { p.Bounds.Upload = 50 * time.Millisecond }})
	u := f.newUser("free")
	c := f.dial()
	_, err := io.WriteString(c, head(u.Keys[0], 1000)+"{")
	require.NoError(t, err)
	a := readAnswer(t, c)
	require.Equal(t, contract.CodeValidationFailed, a.code(t))
	require.Contains(t, a.body, "did not arrive within 50ms")
	require.True(t, a.Close)
	f.idle()
}

// TestPanicInALink: the connection ends, the permit and the entry do not get lost.
func TestPanicInALink(t *testing.T) {
	f := start(t, server.Config{Users: 1, Alter: func(p *wiring.Parts) {
		p.Links = p.Links.Before(httpapi.LinkRoute, httpapi.Link{Name: "panic", Wrap: func(*httpapi.Ports, http.Handler) http.Handler {
			return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a mistake in a link") })
		}})
	}})
	key := f.Users()[0].Keys[0].Reveal()
	for range 30 {
		c := f.dial()
		_, err := io.WriteString(c, head(key, 2)+"{}")
		require.NoError(t, err)
		_, err = http.ReadResponse(bufio.NewReader(c), nil)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		f.idle()
	}
	var a wire.Audit
	f.control(http.MethodGet, "/users/"+f.Users()[0].ID+"/audit", nil, &a)
	require.Len(t, a.Entries, 30)
	require.Equal(t, http.StatusInternalServerError, a.Entries[0].Status)
}
