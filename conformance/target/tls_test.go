package target_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
)

func TestOverTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+theKey {
			w.WriteHeader(401)
			return
		}
		body, err := io.ReadAll(r.Body) // sends 100 Continue
		w.Header().Set("RateLimit-Limit", "10")
		w.Header().Set("RateLimit-Remaining", "9")
		w.Header().Set("RateLimit-Reset", "6")
		if err == nil {
			w.Write(append([]byte(r.Proto+" "), body...))
		}
	}))
	defer s.Close()
	f := fileFor(s.URL)
	f.Can.StalledUpload = true
	tg := open(t, f)
	u := lease(t, tg, "free", 1)
	e := tg.Send(t.Context(), u, tg.Valid())
	require.NoError(t, e.Err)
	require.Equal(t, `HTTP/1.1 {"a":1}`, string(e.Body))

	h, e := tg.Hold(t.Context(), u, tg.Valid(), target.PlaceUpload)
	require.NotNil(t, h, "%v", e.Err)
	e = h.Finish(t.Context())
	require.NoError(t, e.Err)
	require.Equal(t, `HTTP/1.1 {"a":1}`, string(e.Body))
	for _, leave := range []func(*target.Held){(*target.Held).Drop, (*target.Held).Reset} {
		h, e = tg.Hold(t.Context(), u, tg.Valid(), target.PlaceUpload)
		require.NotNil(t, h, "%v", e.Err)
		leave(h)
		require.Error(t, h.Await(t.Context()).Err)
	}
}

func TestACertificateOfSomebodyElse(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	f := fileFor("https://localhost" + s.URL[len("https://127.0.0.1"):])
	_, err := target.Open(t.Context(), f, target.Options{Keys: []target.Key{{User: "u", Plan: "free", Secret: target.NewSecret(theKey)}}})
	require.ErrorIs(t, err, target.ErrAway)
	require.ErrorContains(t, err, "certificate")
}
