package target_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
)

// counting is a server that begins with a full bucket, on an address of our choice.
func counting(t *testing.T, address string) *httptest.Server {
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	left := 10
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/invoice/calculate" {
			return
		}
		left--
		w.Header().Set(contract.HeaderRequestID, fmt.Sprint(left))
		w.Header().Set(contract.HeaderLimit, "10")
		w.Header().Set(contract.HeaderRemaining, fmt.Sprint(left))
		w.Header().Set(contract.HeaderReset, fmt.Sprint(6*(10-left)))
	})}}
	s.Start()
	return s
}

// Whoever answers after nobody did may have begun anew: of no user is anything known
// then, nor of an address.
func TestNothingIsKnownOnceTheTargetWasGone(t *testing.T) {
	first := counting(t, "127.0.0.1:0")
	f := fileFor(first.URL)
	f.OutsideQuotas = []string{"/health"}
	tg := open(t, f, target.Key{User: "u1", Plan: "free", Secret: target.NewSecret(theKey)}, target.Key{User: "u2", Plan: "free", Secret: target.NewSecret(theKey + "4")})
	one, err := tg.Lease(t.Context(), "free", 1)
	require.NoError(t, err)
	other, err := tg.Lease(t.Context(), "free", 1)
	require.NoError(t, err)
	for range 4 {
		require.Empty(t, tg.Send(t.Context(), one, tg.Valid()).Findings)
	}
	require.Zero(t, tg.Gone())
	first.Close()
	require.ErrorIs(t, tg.Send(t.Context(), other, tg.Valid()).Err, target.ErrAway)
	require.EqualValues(t, 1, tg.Gone())

	second := counting(t, first.Listener.Addr().String())
	defer second.Close()
	e := tg.Send(t.Context(), one, tg.Valid())
	require.NoError(t, e.Err)
	require.Equal(t, "9", e.Header.Get(contract.HeaderRemaining))
	require.Empty(t, e.Findings)
	require.Empty(t, tg.Send(t.Context(), one, tg.Valid()).Findings, "what it says from then on is known")
}
