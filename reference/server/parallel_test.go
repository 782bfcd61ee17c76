package server_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/invoice"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/wiring"
)

// countingEngine knows the most that ever worked at once.
type countingEngine struct {
	httpapi.Engine
	now, most *atomic.Int64
}

func (e countingEngine) Calculate(ctx context.Context, in invoice.Invoice) (invoice.Result, error) {
	n := e.now.Add(1)
	defer e.now.Add(-1)
	for most := e.most.Load(); n > most && !e.most.CompareAndSwap(most, n); most = e.most.Load() {
	}
	return e.Engine.Calculate(ctx, in)
}

// TestSimultaneousRequests: on a clock that stands, exactly the burst gets past
// the bucket, never more than the cap to the engine, and each request is one
// entry (RATE-9, CONC-6, LOG-1, LOG-4).
func TestSimultaneousRequests(t *testing.T) {
	e := countingEngine{now: new(atomic.Int64), most: new(atomic.Int64)}
	f := start(t, server.Config{Clock: "frozen", Alter: func(p *wiring.Parts) {
		e.Engine = p.Engine
		p.Engine = e
	}})
	u := f.newUser("free")
	const n = 60
	var wg sync.WaitGroup
	begin := make(chan struct{})
	answers := make([]answer, n)
	for i := range n {
		wg.Go(func() {
			<-begin
			answers[i] = f.calculate(u.Keys[i%2])
		})
	}
	close(begin)
	wg.Wait()
	f.idle()
	var ok, overCap, overRate int
	ids := map[string]bool{}
	for _, a := range answers {
		ids[a.Header.Get("X-Request-Id")] = true
		switch {
		case a.StatusCode == http.StatusOK:
			ok++
		case a.code(t) == contract.CodeConcurrencyLimited:
			overCap++
		default:
			require.Equal(t, contract.CodeRateLimited, a.code(t))
			overRate++
		}
	}
	require.Equal(t, 10, ok+overCap, "the burst")
	require.Equal(t, n-10, overRate)
	require.LessOrEqual(t, e.most.Load(), int64(freeCap))
	require.GreaterOrEqual(t, ok, freeCap)
	require.Len(t, ids, n)
	audit := f.audit(u)
	require.Len(t, audit.Entries, n)
	require.EqualValues(t, ok, audit.Charges)
	require.EqualValues(t, ok, audit.EngineCalls)
	require.LessOrEqual(t, audit.KeyLookups, int64(n))
	require.GreaterOrEqual(t, audit.KeyLookups, int64(2), "first uses of a key at once share a lookup, and there are two keys")
	orders := map[uint64]bool{}
	for id := range ids {
		orders[f.logged(id).Decision.Order] = true
	}
	require.Len(t, orders, n, "each decision has a place of its own")
}
