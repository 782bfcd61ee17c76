package conformance_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance"
	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
)

// An API that lives elsewhere is asked where it lives, and nowhere else.
func TestAnotherPrefix(t *testing.T) {
	r := start(t, control.ClockFrozen, nil)
	back, err := url.Parse(r.file.BaseURLs[0])
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(back) }}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch rest, ours := strings.CutPrefix(q.URL.Path, "/api"); {
		case ours:
			q.URL.Path = contract.ScopePrefix + rest
			proxy.ServeHTTP(w, q)
		case strings.HasPrefix(q.URL.Path, contract.ScopePrefix):
			http.Error(w, "nothing is here", http.StatusNotFound)
		default:
			proxy.ServeHTTP(w, q)
		}
	}))
	t.Cleanup(front.Close)
	r.file.BaseURLs = []string{front.URL}
	r.file.Operations.Valid.Path, r.file.Operations.Invalid.Path = "/api/calculate", "/api/calculate"
	r.file.Can = target.Can{Control: r.file.Can.Control}
	tgt := r.open(t)
	require.Contains(t, tgt.Describe(), "limited: /api in place of /v1/invoice")
	c, err := conformance.Run(t.Context(), tgt, conformance.Options{Clauses: []string{"SCOPE-1", "SCOPE-3", "POOL-1", "RATE-4", "HDR-1", "ERR-1"}})
	require.NoError(t, err)
	require.Zero(t, c.Counts.Fail+c.Counts.Differs)
	require.NotZero(t, c.Counts.Pass)
}
