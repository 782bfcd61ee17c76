package conformance_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
	"github.com/invoicespec/brimline/internal/proxytest"
	"github.com/invoicespec/brimline/reference/fault"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reports/record"
)

// overHTTP2 is the reference, asked in HTTP/2 from the first byte. Servers of its
// own take long to start and have a test of their own.
func overHTTP2(t *testing.T, r reference) reference {
	t.Helper()
	r.file.Protocol, r.file.Can.HTTP2, r.file.Can.Process = target.HTTP2, false, nil
	return r
}

// pair is a certificate for 127.0.0.1 and its key, as files.
func pair(t *testing.T) (certificate, key string) {
	t.Helper()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	private, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)
	return proxytest.File(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))),
		proxytest.File(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
}

// On a frozen clock everything can be told that can be over HTTP/1.1, in the clear
// and over TLS.
func TestReferenceKeepsTheContractOverHTTP2(t *testing.T) {
	t.Parallel()
	judged := func(r reference, clauses ...string) {
		tgt := r.open(t)
		c, err := conformance.Run(t.Context(), tgt, conformance.Options{Clauses: clauses})
		require.NoError(t, err)
		requireKept(t, c)
		require.Contains(t, c.Target.Description, "  HTTP/2  ")
		for _, cl := range c.Clauses {
			for _, s := range cl.Scenarios {
				if s.Verdict != record.Pass {
					require.Regexp(t, "^(needs process|not selected)", s.Reason, "%s %s: %s", cl.ID, s.Name, s.Verdict)
				}
			}
		}
	}
	judged(overHTTP2(t, start(t, control.ClockFrozen, nil)))

	certificate, key := pair(t)
	s, err := newReferenceOver(server.Transport{Certificate: certificate, Key: key}, nil, control.ClockFrozen, nil, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(context.Background())) })
	s.file.TLS = &target.TLS{CAFile: certificate}
	judged(overHTTP2(t, s), "SCOPE-4", "AUTH-1", "RATE-9", "HDR-8", "ERR-3", "CONC-6", "PERMIT-7", "BILL-1")
}

// A server of its own is asked in the same protocol, where it could be.
func TestServersOfTheirOwnOverHTTP2(t *testing.T) {
	t.Parallel()
	r := start(t, control.ClockFrozen, nil)
	r.file.Protocol = target.HTTP2
	r.file.Can.Process.Command = append(r.file.Can.Process.Command, "--h2c")
	clauses := []string{"GUARD-1", "RESTART-1"}
	c, err := conformance.Run(t.Context(), r.open(t), conformance.Options{Clauses: clauses})
	require.NoError(t, err)
	requireKept(t, c)
	require.Equal(t, len(clauses), c.Counts.Pass)
}

// Real nginx speaks HTTP/2 to us and HTTP/1.1 to the server. It never says 100
// Continue in the first. What only the other can express goes out in that.
func TestTheSuiteOverHTTP2ThroughNginx(t *testing.T) {
	t.Parallel()
	r := start(t, control.ClockReal, nil)
	certificate, key := pair(t)
	addr := proxytest.Nginx(t, "127.0.0.1", func(listen string) string {
		return fmt.Sprintf(`server { listen %s ssl http2; ssl_certificate %s; ssl_certificate_key %s;
location / { proxy_pass %s; proxy_http_version 1.1; proxy_request_buffering off; proxy_set_header Host $http_host; } }`, listen, certificate, key, r.URL())
	})
	r.file.BaseURLs, r.file.TLS = []string{"https://" + addr}, &target.TLS{CAFile: certificate}
	r.file.Can.Addresses, r.file.Can.Proxy = nil, nil
	tgt := overHTTP2(t, r).open(t)
	require.True(t, tgt.Has(contract.NeedHTTP1))
	require.False(t, tgt.Has(contract.NeedHTTP2), "nothing shows there that a stream is in flight")
	c, err := conformance.Run(t.Context(), tgt, conformance.Options{Clauses: []string{
		"SCOPE-4", "RATE-9", "HDR-1", "HDR-5", "HDR-8", "CONC-1", "CONC-3", "PERMIT-1", "POOL-2",
	}})
	require.NoError(t, err)
	requireKept(t, c)
	require.Equal(t, "can.stalled-upload: 100 Continue never comes over HTTP/2, so that half a body shows nothing", tgt.Untrue(contract.NeedHTTP2))
	require.Greater(t, c.Counts.Pass, 5, "%+v", c.Counts)
}

// What is wrong is caught in this protocol too.
func TestFaultsAreCaughtOverHTTP2(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"h2-reset-leaks", "no-headers-rate-429", "token-refund-on-conc", "leak-on-disconnect-response", "cap-plus-one"} {
		f, err := fault.ByName(name)
		require.NoError(t, err)
		c, err := conformance.Run(t.Context(), overHTTP2(t, start(t, control.ClockFrozen, f.Apply)).open(t), conformance.Options{Clauses: []string{f.Clause}})
		require.NoError(t, err)
		i := slices.IndexFunc(c.Clauses, func(cl record.Clause) bool { return cl.ID == f.Clause })
		require.Contains(t, []record.Verdict{record.Fail, record.Differs}, c.Clauses[i].Verdict, name)
		require.True(t, slices.ContainsFunc(c.Clauses[i].Scenarios, func(s record.Scenario) bool {
			return slices.ContainsFunc(s.Findings, func(f record.Finding) bool { return strings.Contains(f.Exchange, "curl -i --http2-prior-knowledge ") })
		}), name)
	}
}
