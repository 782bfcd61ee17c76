package conformance_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/internal/proxytest"
	"github.com/invoicespec/brimline/reference/fault"
	"github.com/invoicespec/brimline/reference/wiring"
	"github.com/invoicespec/brimline/reports/record"
)

// behindNginx is the reference over plain HTTP behind an nginx, which answers 100
// Continue by itself.
func behindNginx(t *testing.T, buffering string, alter func(*wiring.Parts)) reference {
	t.Helper()
	r := start(t, "", alter)
	addr := proxytest.Nginx(t, "127.0.0.1", func(listen string) string {
		return fmt.Sprintf("server { listen %s; location / { proxy_pass %s; proxy_http_version 1.1; proxy_request_buffering %s; proxy_set_header Host $http_host; } }", listen, r.URL(), buffering)
	})
	r.file.BaseURLs = []string{"http://" + addr}
	r.file.Can.Addresses, r.file.Can.Proxy, r.file.Can.HTTP2, r.file.Can.Process = nil, nil, false, nil
	return r
}

// It is not run beside others: what is left of a bucket tells the less, the longer
// an answer takes.
func TestTheLedgerIsTheWitnessBehindAProxy(t *testing.T) {
	clauses := []string{"CONC-1", "CONC-2", "CONC-3", "CONC-6", "POOL-2", "POOL-3", "HDR-9"}
	untilTold(t, func() bool {
		tgt := behindNginx(t, "off", nil).open(t)
		if !tgt.Has(contract.NeedHold) {
			return false
		}
		c, err := conformance.Run(t.Context(), tgt, conformance.Options{Clauses: clauses})
		require.NoError(t, err)
		requireKept(t, c)
		return c.Counts.Pass > len(clauses)/2
	})
	for _, name := range []string{"cap-plus-one", "no-concurrency-cap"} {
		f, err := fault.ByName(name)
		require.NoError(t, err)
		untilTold(t, func() bool {
			c, err := conformance.Run(t.Context(), behindNginx(t, "off", f.Apply).open(t), conformance.Options{Clauses: []string{f.Clause}})
			if errors.Is(err, conformance.ErrSelection) {
				return false // no hold is offered
			}
			require.NoError(t, err)
			i := slices.IndexFunc(c.Clauses, func(cl record.Clause) bool { return cl.ID == f.Clause })
			require.NotEqual(t, record.Pass, c.Clauses[i].Verdict, name)
			return c.Clauses[i].Verdict == record.Fail
		})
	}
}

// untilTold asks again where a busy machine left too little to be told. That it is
// told in the end is what the test is about.
func untilTold(t *testing.T, told func() bool) {
	t.Helper()
	for range 5 {
		if told() {
			return
		}
	}
	t.Fatal("it could not be told, however often it was asked")
}

func TestAProxyThatBuffersUploadsHoldsNothing(t *testing.T) {
	t.Parallel()
	tgt := behindNginx(t, "on", nil).open(t)
	require.False(t, tgt.Has(contract.NeedHold))
	c, err := conformance.Run(t.Context(), tgt, conformance.Options{Clauses: []string{"CONC-1", "RATE-1", "RATE-4", "HDR-5", "ERR-3"}})
	require.NoError(t, err)
	for _, cl := range c.Clauses {
		require.NotContains(t, []record.Verdict{record.Fail, record.SetupFailed}, cl.Verdict, "%s %+v", cl.ID, cl)
		if cl.ID == "CONC-1" {
			require.True(t, strings.Contains(cl.Reason, "100 Continue comes to everybody"), cl.Reason)
		}
	}
	require.Positive(t, c.Counts.Pass)
}
