package target_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
)

// plain is a target file for a server that has nothing but HTTP.
func plain(url string) target.File {
	return target.File{
		BaseURLs:      []string{url},
		Credential:    target.Credential{Header: "Authorization", Template: "Bearer {key}"},
		Operations:    target.Operations{Valid: target.Operation{Method: http.MethodPost, Path: "/v1/invoice/x", Body: "{}"}},
		OutsideQuotas: []string{"/health"},
		Allowances:    map[string]target.Allowance{"free": {RequestsPerMinute: 10, Burst: 10, Concurrency: 2}},
	}
}

func TestEveryRequestNamesTheRun(t *testing.T) {
	var agents []string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { agents = append(agents, r.UserAgent()) }))
	defer s.Close()
	runs := map[string]bool{}
	for range 2 {
		agents = nil
		tgt, err := target.Open(t.Context(), plain(s.URL), target.Options{Keys: []target.Key{{User: "u", Plan: "free", Secret: target.NewSecret("k")}}})
		require.NoError(t, err)
		u, err := tgt.Lease(t.Context(), "free", 1)
		require.NoError(t, err)
		require.NoError(t, tgt.Send(t.Context(), u, tgt.Valid()).Err)
		require.Len(t, agents, 2)
		for _, a := range agents {
			require.Regexp(t, regexp.MustCompile(`^brimline/\S+ run/[a-z2-7]{12}$`), a)
			require.Contains(t, a, "run/"+tgt.Run())
		}
		runs[tgt.Run()] = true
		require.NoError(t, tgt.Close())
	}
	require.Len(t, runs, 2, "each opening has a name of its own")
}

func TestPatienceWidensEveryBound(t *testing.T) {
	f := plain("http://127.0.0.1:1")
	f.Limits.Patience = 101
	_, err := target.Open(t.Context(), f, target.Options{})
	require.ErrorContains(t, err, "limits.patience: 101; accepted: 1 to 100 times as long as usual")

	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	for given, want := range map[int64]time.Duration{0: time.Second, 1: time.Second, 7: 7 * time.Second} {
		f := plain(s.URL)
		f.Limits.Patience = given
		tgt, err := target.Open(t.Context(), f, target.Options{Keys: []target.Key{{User: "u", Plan: "free", Secret: target.NewSecret("k")}}})
		require.NoError(t, err)
		require.Equal(t, want, tgt.Patience(time.Second))
		require.NoError(t, tgt.Close())
	}
}
