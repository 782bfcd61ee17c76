package target_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// A first use of a good key that finds its address's places taken is tried again;
// one of a key that was seen good is not, and one that never gets in is judged.
func TestFirstUsesAreTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		away   int64 // answers before one that lets in
		sent   int64
		status int
		silent bool // no header says whose cap it was
	}{
		"let in":                  {0, 1, 200, false},
		"turned away twice":       {2, 3, 200, false},
		"turned away always":      {99, 4, 429, false},
		"let in without a header": {0, 1, 200, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			var full atomic.Bool
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if n := asked.Add(1); n <= c.away || full.Load() {
					w.Header().Set("Retry-After", "1")
					w.WriteHeader(429)
					_, _ = io.WriteString(w, `{"requestId":"r","errorCode":"CONCURRENCY_LIMIT_EXCEEDED","message":"later"}`)
					return
				}
				if c.silent {
					return
				}
				w.Header().Set("RateLimit-Limit", "10")
				w.Header().Set("RateLimit-Remaining", "9")
				w.Header().Set("RateLimit-Reset", "6")
			}))
			t.Cleanup(s.Close)
			tg := open(t, fileFor(s.URL))
			u := lease(t, tg, "free", 1)
			asked.Store(0)
			e := tg.Send(t.Context(), u, tg.Valid())
			require.NoError(t, e.Err)
			require.Equal(t, c.status, e.Status)
			require.Equal(t, c.sent, asked.Load())
			if c.status == 200 {
				full.Store(true)
				require.Equal(t, 429, tg.Send(t.Context(), u, tg.Valid()).Status)
				require.Equal(t, c.sent+1, asked.Load())
			}
		})
	}
}
