package target_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/conformance/target"
)

const triedFile = `base-urls: [URL]
credential: { header: X-Key, template: "{key}" }
users:
  - { id: ada, plan: free, keys: [{ env: ADA }] }
  - { id: bob, plan: pro, keys: [{ env: BOB }] }
operations:
  valid: { method: POST, path: /api/price, body: x }
allowances:
  free: { requests-per-minute: 10, burst: 10, concurrency: 2 }
  pro: { requests-per-minute: 300, burst: 100, concurrency: 20 }
`

// A file that is wrong is told from a deployment that is.
func TestTryOut(t *testing.T) {
	says := func(status int, code string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"errorCode":%q}`, code)
		}
	}
	free := func(of, others http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Key") == "the-key-of-ada" {
				of.ServeHTTP(w, r)
				return
			}
			others.ServeHTTP(w, r)
		}
	}
	ok := says(200, "")
	for name, tc := range map[string]struct {
		server http.Handler
		want   string
	}{
		"as declared":                   {ok, ""},
		"every key is refused":          {says(401, "WHO"), "t.yaml:4: users[0].keys[0]: user ada's key (ADA) is refused: 401 WHO; accepted: a good key, in the header that credential.header says (X-Key)"},
		"refused by another status":     {says(403, "forbidden"), "is refused: 403 forbidden"},
		"one key is refused":            {free(says(401, "WHO"), ok), ""},
		"another path":                  {says(404, "nope"), "t.yaml:7: operations.valid: POST /api/price is answered with 404 nope, expect says 200"},
		"another success":               {says(201, ""), "is answered with 201"},
		"a refused key, another path":   {free(says(401, "WHO"), says(404, "")), "user ada's key (ADA) is refused"},
		"an empty bucket":               {says(429, "RATE_LIMIT_EXCEEDED"), ""},
		"an empty bucket, another path": {free(says(429, "x"), says(404, "")), ""},
		"a broken server":               {says(500, "ENGINE_FAILURE"), ""},
		"nothing left":                  {says(402, "CAPACITY_EXHAUSTED"), ""},
		"no answer": {http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
			target.ErrAway.Error() + ": no valid request got an answer"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(tc.server)
			defer s.Close()
			dir := folder(t, map[string]string{"t.yaml": strings.Replace(triedFile, "URL", s.URL, 1)})
			f, err := target.ReadFile(filepath.Join(dir, "t.yaml"))
			require.NoError(t, err)
			tgt, err := target.Open(t.Context(), f, target.Options{Environment: func(name string) (string, bool) { return "the-key-of-" + strings.ToLower(name), true }})
			require.NoError(t, err)
			defer tgt.Close()
			before := tgt.Sent()
			err = tgt.TryOut(t.Context())
			require.EqualValues(t, 2, tgt.Sent()-before, "one request a plan")
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), "the-key-of")
		})
	}
}
