package target_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/contract/control"
	"github.com/invoicespec/brimline/conformance/target"
)

// TestResetStream: what was in flight has spent its token and leaves nothing
// behind; what was answered is an answer like any other.
func TestResetStream(t *testing.T) {
	tg := openReference(t, control.ClockFrozen)
	require.True(t, tg.Has(contract.NeedHTTP2))
	u := lease(t, tg, "free", 1)
	burst := int(u.Bucket.Allowance().Burst)
	for range burst {
		e := tg.ResetStream(t.Context(), u, tg.Valid())
		require.NoError(t, e.Err)
		require.Zero(t, e.Status, "it was in flight when it was reset")
		require.Empty(t, e.Findings)
	}
	e := tg.ResetStream(t.Context(), u, tg.Valid())
	require.NoError(t, e.Err)
	require.Equal(t, 429, e.Status)
	require.Equal(t, contract.CodeRateLimited, e.Answer.Body.ErrorCode.Value)
	require.Empty(t, e.Findings)
	a, err := tg.UserAudit(t.Context(), u, func(a control.Audit) bool { return len(a.Entries) == burst+1 })
	require.NoError(t, err)
	require.Len(t, a.Entries, burst+1)
	require.Zero(t, a.EngineCalls)
	require.Zero(t, a.Charges)
}

// TestResetStreamNeedsHTTP2: nothing is sent where it is not spoken, nor where
// there is nothing to be half sent.
func TestResetStreamNeedsHTTP2(t *testing.T) {
	s, f := reference(t, control.ClockFrozen, 0)
	f.Can.HTTP2 = false
	tg, err := target.Open(t.Context(), f, target.Options{ControlToken: target.NewSecret(s.ControlToken())})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tg.Close()) })
	require.False(t, tg.Has(contract.NeedHTTP2))
	u := lease(t, tg, "free", 1)
	require.ErrorIs(t, tg.ResetStream(t.Context(), u, tg.Valid()).Err, target.ErrUnsupported)

	tg = openReference(t, control.ClockFrozen)
	u = lease(t, tg, "free", 1)
	r := tg.Valid()
	r.Body = nil
	require.ErrorIs(t, tg.ResetStream(t.Context(), u, r).Err, target.ErrUnsupported)
	require.Zero(t, tg.Charged())
}

// TestSayingHTTP2WhereThereIsNone: nobody is blamed but the target file.
func TestSayingHTTP2WhereThereIsNone(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+theKey {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer s.Close()
	f := fileFor(s.URL)
	f.Can.StalledUpload, f.Can.HTTP2 = true, true
	tg := open(t, f)
	u := lease(t, tg, "free", 1)
	require.False(t, tg.Has(contract.NeedHTTP2))
	require.Equal(t, "can.http2: "+s.URL+" does not speak it", tg.Untrue(contract.NeedHTTP2))
	e := tg.ResetStream(t.Context(), u, tg.Valid())
	require.Error(t, e.Err)
	require.Zero(t, e.Status)
	require.False(t, strings.Contains(e.Err.Error(), theKey))
}
