package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/invoice"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/store/memory"
	"github.com/invoicespec/brimline/reference/wiring"
)

// These tests run in virtual time over pipes without buffers, so that hours pass
// at once and a write ends when its reader has it, not when a socket took it.

const pipedInvoice = `{"currency":"EUR","lines":[{"description":"x","quantity":1,"unitPrice":1,"taxRate":1}]}`

// pipes is a listener whose connections are made by dial.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

// entryLog keeps entries.
type entryLog struct {
	mu      sync.Mutex
	entries []contract.LogEntry
}

func (l *entryLog) Write(_ context.Context, e contract.LogEntry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
	return nil
}

func (l *entryLog) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries)
}

// engineFunc is an engine made of one function.
type engineFunc func(context.Context) error

func (f engineFunc) Calculate(ctx context.Context, in invoice.Invoice) (invoice.Result, error) {
	if err := f(ctx); err != nil {
		return invoice.Result{}, err
	}
	return invoice.Calculate(in)
}

// piped is a server in virtual time with one user.
type piped struct {
	*testing.T
	*pipes
	limiter *limiter.Local
	log     *entryLog
	key     string
}

// inVirtualTime runs a test against a server whose engine is e.
func inVirtualTime(t *testing.T, e engineFunc, test func(*piped)) {
	withBounds(t, wiring.DefaultBounds(), e, test)
}

func withBounds(t *testing.T, b httpapi.Bounds, e engineFunc, test func(*piped)) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewReal()
		store := memory.New(DefaultPlans(), c)
		_, keys, err := store.CreateUser(t.Context(), "free", 1)
		require.NoError(t, err)
		p := &piped{
			T:       t,
			pipes:   &pipes{conns: make(chan net.Conn), done: make(chan struct{})},
			limiter: limiter.NewLocal(c, limiter.Config{}),
			log:     &entryLog{},
			key:     keys[0].Reveal(),
		}
		logger := slog.New(slog.DiscardHandler)
		parts := wiring.Default(wiring.Needs{
			Clock: c, Plans: DefaultPlans(), Digest: store.Digest, Accounts: store, Ledger: store,
			Limiter: p.limiter, Engine: e, Log: p.log, Logger: logger,
		})
		parts.Bounds = b
		h := newHTTPServer(t.Context(), parts.Handler(), parts.Bounds, logger)
		_, err = Transport{H2C: true}.secure(h, logger)
		require.NoError(t, err)
		go h.Serve(p.pipes)
		test(p)
		require.NoError(t, h.Close())
		time.Sleep(time.Minute) // HTTP/2 takes a second to end a connection
		synctest.Wait()
		require.Zero(t, p.limiter.SubjectsInFlight(), "every permit is released")
	})
}

func (p *piped) request(body string, length int) net.Conn {
	p.Helper()
	c := p.dial()
	_, err := fmt.Fprintf(c, "POST /v1/invoice/calculate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", p.key, length, body)
	require.NoError(p, err)
	return c
}

func (p *piped) calculate() net.Conn { return p.request(pipedInvoice, len(pipedInvoice)) }

// held reports whether the permit is taken, once everything has come to rest.
func (p *piped) held() bool {
	synctest.Wait()
	return p.limiter.SubjectsInFlight() > 0
}

// heldFor requires that the permit is held for exactly d more.
func (p *piped) heldFor(d time.Duration) {
	p.Helper()
	time.Sleep(d - time.Nanosecond)
	require.True(p, p.held(), "just before %v", d)
	time.Sleep(2 * time.Nanosecond)
	require.False(p, p.held(), "just after %v", d)
}

func readPiped(t *testing.T, c net.Conn) *http.Response {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	return resp
}

func atOnce(context.Context) error { return nil }

// workFor is an engine that takes so long, and stops when it is told.
func workFor(d time.Duration) engineFunc {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// cleanUpFor is an engine that works until it is told to stop, and then needs so
// long for that.
func cleanUpFor(d time.Duration) engineFunc {
	return func(ctx context.Context) error {
		<-ctx.Done()
		time.Sleep(d)
		return ctx.Err()
	}
}

func TestPermitIsHeldUntilTheResponseIsWritten(t *testing.T) {
	inVirtualTime(t, atOnce, func(p *piped) {
		c := p.calculate()
		time.Sleep(time.Minute)
		require.True(t, p.held(), "the client has not read a byte yet")
		require.Equal(t, 1, p.log.count(), "the entry was written before")
		require.Equal(t, http.StatusOK, readPiped(t, c).StatusCode)
		require.False(t, p.held())
	})
}

func TestClientThatNeverReads(t *testing.T) {
	inVirtualTime(t, atOnce, func(p *piped) {
		p.calculate()
		p.heldFor(wiring.DefaultBounds().Write)
	})
}

func TestBodyThatStalls(t *testing.T) {
	inVirtualTime(t, atOnce, func(p *piped) {
		c := p.request("{", 1000)
		time.Sleep(wiring.DefaultBounds().Upload - time.Nanosecond)
		require.True(t, p.held())
		resp := readPiped(t, c)
		require.Equal(t, http.StatusUnprocessableEntity, resp.StatusCode)
		require.True(t, resp.Close)
		require.False(t, p.held())
	})
}

func TestBodyThatTrickles(t *testing.T) {
	inVirtualTime(t, atOnce, func(p *piped) {
		c := p.request("", 1000)
		for range 59 {
			time.Sleep(time.Second)
			_, err := io.WriteString(c, " ")
			require.NoError(t, err)
		}
		require.True(t, p.held())
		require.Equal(t, http.StatusUnprocessableEntity, readPiped(t, c).StatusCode, "each byte is no new lease")
	})
}

func TestHeadThatStalls(t *testing.T) {
	inVirtualTime(t, atOnce, func(p *piped) {
		c := p.dial()
		_, err := io.WriteString(c, "POST /v1/invoice/calculate HTTP/1.1\r\nHost: x\r\nX-Slow: ")
		require.NoError(t, err)
		began := time.Now()
		_, err = io.Copy(io.Discard, c)
		require.NoError(t, err)
		require.Equal(t, wiring.DefaultBounds().Head, time.Since(began))
		require.False(t, p.held())
		require.Zero(t, p.log.count(), "no handler was entered")
	})
}

func TestConnectionThatIdles(t *testing.T) {
	inVirtualTime(t, atOnce, func(p *piped) {
		c := p.calculate()
		r := bufio.NewReader(c)
		resp, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		began := time.Now()
		_, err = io.Copy(io.Discard, r)
		require.NoError(t, err)
		require.Equal(t, wiring.DefaultBounds().Idle, time.Since(began))
	})
}

func TestEngineThatObeysItsDeadline(t *testing.T) {
	obedient := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	inVirtualTime(t, obedient, func(p *piped) {
		c, began := p.calculate(), time.Now()
		require.Equal(t, http.StatusGatewayTimeout, readPiped(t, c).StatusCode)
		require.Equal(t, wiring.DefaultBounds().Engine, time.Since(began))
		require.False(t, p.held())
	})
}

func TestEngineThatWorksOnForAnHour(t *testing.T) {
	stubborn := func(context.Context) error { time.Sleep(time.Hour); return nil }
	inVirtualTime(t, stubborn, func(p *piped) {
		c, began := p.calculate(), time.Now()
		require.Equal(t, http.StatusGatewayTimeout, readPiped(t, c).StatusCode)
		require.Equal(t, wiring.DefaultBounds().Engine, time.Since(began), "the client is told at once")
		p.heldFor(time.Hour - wiring.DefaultBounds().Engine)
		require.Equal(t, 1, p.log.count())
		require.Zero(t, p.log.entries[0].Charged, "what was answered as a timeout is not charged")
	})
}

// TestWorkLongerThanAnUpload: the time for the body says nothing of the work.
func TestWorkLongerThanAnUpload(t *testing.T) {
	b := wiring.DefaultBounds()
	b.Engine, b.Write = 2*time.Hour, 3*time.Hour
	withBounds(t, b, workFor(time.Hour), func(p *piped) {
		c := p.calculate()
		require.Equal(t, http.StatusOK, readPiped(t, c).StatusCode)
		require.EqualValues(t, 1, p.log.entries[0].Charged)
	})
}

func TestClientThatLeavesWhileTheEngineCleansUp(t *testing.T) {
	inVirtualTime(t, cleanUpFor(2*time.Minute), func(p *piped) {
		c := p.calculate()
		time.Sleep(time.Second)
		require.NoError(t, c.Close())
		p.heldFor(2 * time.Minute)
		require.Equal(t, 499, p.log.entries[0].Status)
	})
}

// TestRejectionOfAnExpectation: a client that was to be asked for its body, and
// was refused instead, does not keep its connection by doing nothing.
func TestRejectionOfAnExpectation(t *testing.T) {
	inVirtualTime(t, atOnce, func(p *piped) {
		c := p.dial()
		began := time.Now()
		_, err := fmt.Fprintf(c, "POST /v1/invoice/calculate HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n")
		require.NoError(t, err)
		r := bufio.NewReader(c)
		resp, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
		require.Equal(t, began, time.Now())
		_, err = io.Copy(io.Discard, r)
		require.NoError(t, err)
		require.Less(t, time.Since(began), 2*wiring.DefaultBounds().Linger)
	})
}

func TestRejectionLingersForAClientThatUploads(t *testing.T) {
	inVirtualTime(t, atOnce, func(p *piped) {
		c := p.dial()
		_, err := fmt.Fprintf(c, "POST /v1/invoice/calculate HTTP/1.1\r\nHost: x\r\nContent-Length: 999999\r\n\r\n")
		require.NoError(t, err)
		r := bufio.NewReader(c)
		resp, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
		_, err = io.WriteString(c, strings.Repeat("x", 900_000))
		require.NoError(t, err, "it is still read from, more than net/http does by itself")
		began := time.Now()
		_, err = io.Copy(io.Discard, r)
		require.NoError(t, err)
		require.Less(t, time.Since(began), 2*wiring.DefaultBounds().Linger, "but not for ever")
	})
}
