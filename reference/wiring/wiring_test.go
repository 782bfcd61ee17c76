package wiring_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/reference/apilog"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/httpapi"
	"github.com/invoicespec/brimline/reference/invoice"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/store/memory"
	"github.com/invoicespec/brimline/reference/wiring"
)

func parts(plans map[string]policy.Plan) *wiring.Parts {
	c := clock.NewReal()
	store := memory.New(plans, c)
	return wiring.Default(wiring.Needs{
		Clock: c, Plans: plans, Digest: store.Digest, Accounts: store, Ledger: store,
		Limiter: limiter.NewLocal(c, limiter.Config{}), Engine: invoice.Engine{}, Log: apilog.Discard{}, Logger: slog.New(slog.DiscardHandler),
	})
}

// TestNothingIsMissing: a port that is added is also wired. Who operates and what
// outlives the process depends on the store.
func TestNothingIsMissing(t *testing.T) {
	p := parts(nil)
	p.Operator, p.Restart = memory.New(nil, clock.NewReal()), func(context.Context) error { return nil }
	p.Logged = func(context.Context, string) ([]contract.LogEntry, error) { return nil, nil }
	for _, v := range []reflect.Value{reflect.ValueOf(*p), reflect.ValueOf(p.Ports), reflect.ValueOf(p.Bounds)} {
		for i := range v.NumField() {
			require.False(t, v.Field(i).IsZero(), "%s.%s", v.Type(), v.Type().Field(i).Name)
		}
	}
}

func TestGuards(t *testing.T) {
	require.NoError(t, parts(nil).Guarded())
	p := parts(map[string]policy.Plan{"free": {Name: "free", Entitlements: map[policy.Dimension]string{policy.Burst: "10"}}})
	require.EqualError(t, p.Guarded(), `guard plans: plan "free" has no entitlement requests-per-minute`)
	p.Guards = append([]wiring.Guard{{Name: "first", Check: func() error { return errors.New("no") }}}, p.Guards...)
	require.EqualError(t, p.Guarded(), "guard first: no")
}

func TestMintedIDsDiffer(t *testing.T) {
	p := parts(nil)
	seen := map[string]bool{}
	for range 10_000 {
		id := p.MintID()
		require.False(t, seen[id])
		seen[id] = true
	}
}

// TestPartsAreTakenLate: what is replaced before Handler is what requests meet,
// also by links that were listed earlier.
func TestPartsAreTakenLate(t *testing.T) {
	p := parts(nil)
	compose := p.Compose
	p.Compose = func(x *httpapi.Exchange, r httpapi.Reply) httpapi.Answer {
		a := compose(x, r)
		a.Status = http.StatusTeapot
		return a
	}
	p.InScope = func(path string) bool { return path == "/tea" }
	p.Outside["/coffee"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) })
	h := p.Handler()
	for path, want := range map[string]int{"/tea": http.StatusTeapot, "/coffee": http.StatusAccepted, "/v1/invoice": http.StatusNotFound} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		require.Equal(t, want, w.Code, path)
	}
}
